#include <forebay/base/contract.hpp>
#include <forebay/cuda/launch.hpp>
#include <forebay/optimizer/cuda_update.hpp>
#include <forebay/optimizer/gradient_norm.hpp>
#include <forebay/optimizer/kernel_bodies.hpp>

namespace forebay {
namespace {

class kernels_of_update final : public device_update {
 public:
  void update(stream& on, std::span<float> parameter, std::span<const float> gradient, std::span<float> m,
              std::span<float> v, const adamw_coefficients& c) override {
    FOREBAY_EXPECTS(parameter.size() == gradient.size() && parameter.size() == m.size() && parameter.size() == v.size(),
                    "parameter, gradient, m and v have one length");
    launch_elements(native_stream(on), parameter.size(),
                    kernels::adamw_step{parameter.data(), gradient.data(), m.data(), v.data(), c});
  }

  void leaf_sums(stream& on, std::span<const float> gradient, std::span<double> leaves) override {
    FOREBAY_EXPECTS(leaves.size() == norm_leaves(gradient.size()), "there is room for each leaf's sum");
    launch_teams(native_stream(on), leaves.size(), kernels::norm_leaf{gradient.data(), gradient.size(), leaves.data()});
  }
};

}  // namespace

std::unique_ptr<device_update> cuda_update() { return std::make_unique<kernels_of_update>(); }

void cuda_scale(stream& on, std::span<const float> from, float factor, std::span<float> to) {
  FOREBAY_EXPECTS(from.size() == to.size(), "both spans have one length");
  launch_elements(native_stream(on), to.size(), kernels::scale_step{from.data(), factor, to.data()});
}

void cuda_cast(stream& on, std::span<const float> from, std::span<bf16> to) {
  FOREBAY_EXPECTS(from.size() == to.size(), "both spans have one length");
  launch_elements(native_stream(on), to.size(), kernels::cast_to_bf16{from.data(), to.data()});
}

void cuda_cast(stream& on, std::span<const bf16> from, std::span<float> to) {
  FOREBAY_EXPECTS(from.size() == to.size(), "both spans have one length");
  launch_elements(native_stream(on), to.size(), kernels::cast_from_bf16{from.data(), to.data()});
}

}  // namespace forebay
