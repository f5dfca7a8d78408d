#include "device_trainer.hpp"

#include <algorithm>
#include <cmath>
#include <forebay/base/bytes.hpp>
#include <forebay/base/clock.hpp>
#include <forebay/optimizer/adamw.hpp>
#include <forebay/optimizer/gradient_norm.hpp>

#include "initialise.hpp"
#include "interrupt.hpp"

namespace train_gpt {
namespace {

constexpr forebay::byte_count alignment = 256;

/// Cuts an arena into pieces; without one it only counts.
class cutter {
 public:
  explicit cutter(std::span<std::byte> arena) : arena_(arena) {}
  std::span<std::byte> take(forebay::byte_count bytes) {
    const forebay::byte_count begin = used_;
    used_ += forebay::align_up(bytes, alignment);
    return arena_.empty() ? std::span<std::byte>{} : arena_.subspan(begin, bytes);
  }
  [[nodiscard]] forebay::byte_count used() const { return used_; }

 private:
  std::span<std::byte> arena_;
  forebay::byte_count used_ = 0;
};

struct places {
  std::vector<std::span<std::byte>> tensors, m, v, leaves;
  std::span<std::byte> workspace;
};

places cut(const model<float>& model, cutter& from) {
  places p;
  const std::vector<forebay::tensor_spec>& specs = model.tensors().specs();
  for (const forebay::tensor_spec& spec : specs) {
    p.tensors.push_back(from.take(spec.bytes()));
  }
  for (tensor_index i = 0; i < model.tensors().parameters().size(); ++i) {
    p.m.push_back(from.take(specs[i].bytes()));
    p.v.push_back(from.take(specs[i].bytes()));
    p.leaves.push_back(from.take(forebay::norm_leaves(specs[i].elements()) * sizeof(double)));
  }
  std::size_t largest = 0;
  for (const model_step& step : model.steps()) {
    largest = std::max(largest, step.workspace);
  }
  p.workspace = from.take(largest);
  return p;
}

[[nodiscard]] forebay::byte_count bytes_of(const model<float>& model) {
  cutter count{{}};
  static_cast<void>(cut(model, count));
  return count.used();
}

template <typename T>
[[nodiscard]] std::span<T> as(std::span<std::byte> bytes) {
  return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
}

}  // namespace

device_trainer::device_trainer(const model<float>& model, const optimizer_settings& optimizer, std::uint64_t seed,
                               const device_maker& make)
    : model_(model),
      optimizer_(optimizer),
      device_(make(bytes_of(model))),
      stream_(device_->make_stream(forebay::stream_kind::compute)) {
  cutter arena(device_->arena());
  places p = cut(model, arena);
  tensors_ = std::move(p.tensors);
  m_ = std::move(p.m);
  v_ = std::move(p.v);
  leaves_ = std::move(p.leaves);
  workspace_ = p.workspace;
  device_->fill(device_->arena().data(), std::byte{0}, arena.used() - forebay::align_up(workspace_.size(), alignment));
  initialise_parameters(model.tensors(), seed,
                        [this](tensor_index t, std::span<const float> values, std::size_t offset) {
                          stream_->copy(tensors_[t].data() + offset * sizeof(float), std::as_bytes(values).data(),
                                        values.size_bytes(), forebay::copy_direction::host_to_device);
                          stream_->synchronize();
                        });
}

template <typename T>
std::vector<T> device_trainer::read(std::span<std::byte> from) {
  std::vector<T> values(from.size() / sizeof(T));
  stream_->copy(std::as_writable_bytes(std::span(values)).data(), from.data(), from.size(),
                forebay::copy_direction::device_to_host);
  stream_->synchronize();
  return values;
}

void device_trainer::run_model(const step_text& text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::span<std::byte> to = tensors_[model_.tensors().tokens[i]];
    stream_->copy(to.data(), std::as_bytes(std::span(text[i])).data(), to.size(),
                  forebay::copy_direction::host_to_device);
  }
  for (const model_step& step : model_.steps()) {
    throw_if_interrupted();
    std::vector<std::span<std::byte>> buffers;
    for (const model_access& access : step.accesses) {
      buffers.push_back(tensors_[access.tensor]);
    }
    model_.compute().run_on(*stream_, [&step, buffers = std::move(buffers), all = workspace_] {
      step.run(step_memory(step.accesses, buffers, all.first(step.workspace)));
    });
  }
}

step_result device_trainer::run(std::uint64_t step, const step_text& text) {
  const forebay::time_point start = forebay::steady_clock::instance().now();
  run_model(text);
  step_result result;
  result.gradient_norm = gradient_norm(result.non_finite_tensor);
  if (result.non_finite_tensor.empty()) {
    update(forebay::clip_scale(result.gradient_norm, optimizer_.clip));
  }
  result.loss = values(model_.tensors().loss)[0];
  result.cost.number = step;
  result.cost.seconds = forebay::to_seconds(forebay::steady_clock::instance().now() - start);
  return result;
}

double device_trainer::gradient_norm(std::string& non_finite_tensor) {
  const tensor_table& tensors = model_.tensors();
  for (tensor_index p = 0; p < leaves_.size(); ++p) {
    optimizer_.kernels->leaf_sums(*stream_, as<float>(tensors_[tensors.gradient(p)]), as<double>(leaves_[p]));
  }
  std::vector<double> sums;
  for (tensor_index p = 0; p < leaves_.size(); ++p) {
    std::vector<double> leaves = read<double>(leaves_[p]);
    sums.push_back(forebay::tree_sum(leaves));
    if (!std::isfinite(sums.back()) && non_finite_tensor.empty()) {
      non_finite_tensor = tensors.specs()[tensors.gradient(p)].name;
    }
  }
  return std::sqrt(forebay::tree_sum(sums));
}

void device_trainer::update(float clip) {
  const forebay::adamw_options defaults;  // what the engine's optimizer uses for the rest
  forebay::adamw_hyperparameters h{optimizer_.lr, defaults.beta1, defaults.beta2, defaults.eps, 0.0F};
  ++updates_;
  const forebay::adamw_coefficients without_decay = forebay::make_adamw_coefficients(h, updates_, clip);
  h.weight_decay = optimizer_.weight_decay;
  const forebay::adamw_coefficients with_decay = forebay::make_adamw_coefficients(h, updates_, clip);
  const std::vector<parameter_info>& parameters = model_.tensors().parameters();
  for (tensor_index p = 0; p < parameters.size(); ++p) {
    optimizer_.kernels->update(*stream_, as<float>(tensors_[p]), as<float>(tensors_[model_.tensors().gradient(p)]),
                               as<float>(m_[p]), as<float>(v_[p]), parameters[p].decay ? with_decay : without_decay);
  }
}

std::vector<forebay::tensor_source> device_trainer::state() {
  const tensor_table& tensors = model_.tensors();
  std::vector<forebay::tensor_source> all;
  const auto add = [&](tensor_index p, const char* suffix, std::span<const std::byte> contents) {
    const forebay::tensor_spec& spec = tensors.specs()[p];
    all.push_back({spec.name + suffix, spec.type, spec.shape,
                   [this, contents](forebay::byte_count offset, std::span<std::byte> out) {
                     stream_->copy(out.data(), contents.data() + offset, out.size(),
                                   forebay::copy_direction::device_to_host);
                     stream_->synchronize();
                   }});
  };
  for (tensor_index p = 0; p < m_.size(); ++p) {
    add(p, "", tensors_[p]);
  }
  for (tensor_index p = 0; p < m_.size(); ++p) {
    add(p, ".m", m_[p]);
    add(p, ".v", v_[p]);
  }
  return all;
}

}  // namespace train_gpt
