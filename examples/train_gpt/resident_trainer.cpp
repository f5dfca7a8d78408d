#include "resident_trainer.hpp"

#include <algorithm>
#include <cmath>
#include <forebay/base/clock.hpp>
#include <forebay/optimizer/adamw.hpp>
#include <forebay/optimizer/gradient_norm.hpp>
#include <span>

#include "initialise.hpp"
#include "interrupt.hpp"
#include "parallel.hpp"

namespace train_gpt {
namespace {

[[nodiscard]] std::vector<std::size_t> parameter_sizes(const tensor_table& tensors) {
  std::vector<std::size_t> sizes;
  for (tensor_index p = 0; p < tensors.parameters().size(); ++p) {
    sizes.push_back(tensors.specs()[p].bytes());
  }
  return sizes;
}

}  // namespace

resident_trainer::resident_trainer(const model<float>& model, const optimizer_settings& optimizer, std::uint64_t seed,
                                   forebay::telemetry::timeline* timeline)
    : model_(model),
      optimizer_(optimizer),
      memory_(model),
      m_(parameter_sizes(model.tensors())),
      v_(parameter_sizes(model.tensors())),
      timeline_(timeline) {
  initialise_parameters(model.tensors(), seed,
                        [this](tensor_index t, std::span<const float> values, std::size_t offset) {
                          std::copy(values.begin(), values.end(), memory_.of<float>(t).subspan(offset).begin());
                        });
  if (timeline_ != nullptr) {
    compute_lane_ = timeline_->lane("compute");
    optimizer_lane_ = timeline_->lane("optimizer");
  }
}

template <typename Work>
void resident_trainer::timed(forebay::telemetry::lane_id lane, const std::string& name, const Work& work) {
  const forebay::time_point start = forebay::steady_clock::instance().now();
  work();
  if (timeline_ != nullptr) {
    timeline_->record({lane, name, start, forebay::steady_clock::instance().now(), 0});
  }
}

step_result resident_trainer::run(std::uint64_t step, const step_text& text) {
  const forebay::time_point start = forebay::steady_clock::instance().now();
  const tensor_table& tensors = model_.tensors();
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::copy(text[i].begin(), text[i].end(), memory_.of<std::uint8_t>(tensors.tokens[i]).begin());
  }
  for (const model_step& s : model_.steps()) {
    throw_if_interrupted();
    timed(compute_lane_, s.name, [&] { memory_.run(s); });
  }
  step_result result;
  result.loss = memory_.of<float>(tensors.loss)[0];
  timed(optimizer_lane_, "norm", [&] { result.gradient_norm = gradient_norm(result.non_finite_tensor); });
  if (result.non_finite_tensor.empty()) {
    timed(optimizer_lane_, "update", [&] { update(forebay::clip_scale(result.gradient_norm, optimizer_.clip)); });
  }
  result.cost.number = step;
  result.cost.seconds = forebay::to_seconds(forebay::steady_clock::instance().now() - start);
  return result;
}

double resident_trainer::gradient_norm(std::string& non_finite_tensor) {
  const tensor_table& tensors = model_.tensors();
  std::vector<double> sums;
  for (tensor_index p = 0; p < tensors.parameters().size(); ++p) {
    const std::span<const float> gradient = memory_.of<float>(tensors.gradient(p));
    leaves_.resize(forebay::norm_leaves(gradient.size()));
    parallel_for(leaves_.size(), forebay::norm_leaf_elements, [&](std::size_t begin, std::size_t end) {
      for (std::size_t leaf = begin; leaf < end; ++leaf) {
        const std::size_t first = leaf * forebay::norm_leaf_elements;
        const std::size_t count = std::min(forebay::norm_leaf_elements, gradient.size() - first);
        leaves_[leaf] = forebay::leaf_sum_of_squares(gradient.subspan(first, count));
      }
    });
    sums.push_back(forebay::tree_sum(leaves_));
    if (!std::isfinite(sums.back()) && non_finite_tensor.empty()) {
      non_finite_tensor = tensors.specs()[tensors.gradient(p)].name;
    }
  }
  return std::sqrt(forebay::tree_sum(sums));
}

void resident_trainer::update(float clip) {
  const forebay::adamw_options defaults;  // what the engine's optimizer uses for the rest
  forebay::adamw_hyperparameters h{optimizer_.lr, defaults.beta1, defaults.beta2, defaults.eps, 0.0F};
  ++updates_;
  const forebay::adamw_coefficients without_decay = forebay::make_adamw_coefficients(h, updates_, clip);
  h.weight_decay = optimizer_.weight_decay;
  const forebay::adamw_coefficients with_decay = forebay::make_adamw_coefficients(h, updates_, clip);
  const std::vector<parameter_info>& parameters = model_.tensors().parameters();
  for (tensor_index p = 0; p < parameters.size(); ++p) {
    update(p, parameters[p].decay ? with_decay : without_decay);
  }
}

void resident_trainer::update(tensor_index parameter, const forebay::adamw_coefficients& coefficients) {
  const std::span<float> p = memory_.of<float>(parameter);
  const std::span<const float> g = memory_.of<float>(model_.tensors().gradient(parameter));
  const std::span<float> m = m_.of<float>(parameter);
  const std::span<float> v = v_.of<float>(parameter);
  parallel_for(p.size(), 1, [&](std::size_t begin, std::size_t end) {
    const std::size_t n = end - begin;
    forebay::adamw_update(p.subspan(begin, n), g.subspan(begin, n), m.subspan(begin, n), v.subspan(begin, n),
                          coefficients);
  });
}

std::vector<forebay::tensor_source> resident_trainer::state() {
  const tensor_table& tensors = model_.tensors();
  std::vector<forebay::tensor_source> all;
  const auto add = [&](tensor_index p, const char* suffix, std::span<const std::byte> contents) {
    const forebay::tensor_spec& spec = tensors.specs()[p];
    all.push_back(forebay::memory_source(spec.name + suffix, spec.type, spec.shape, contents));
  };
  for (tensor_index p = 0; p < tensors.parameters().size(); ++p) {
    add(p, "", std::as_bytes(memory_.of<float>(p)));
  }
  for (tensor_index p = 0; p < tensors.parameters().size(); ++p) {
    add(p, ".m", m_.of<std::byte>(p));
    add(p, ".v", v_.of<std::byte>(p));
  }
  return all;
}

}  // namespace train_gpt
