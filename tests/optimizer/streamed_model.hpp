#pragma once

#include <stdlib.h>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <forebay/device/emulated_device.hpp>
#include <forebay/engine/engine.hpp>
#include <forebay/optimizer/adamw.hpp>
#include <forebay/optimizer/gradient_norm.hpp>

#include "adamw_reference.hpp"

namespace forebay::testing_optimizer {

/// A folder that goes away with it.
class scratch_folder {
 public:
  scratch_folder() {
    std::string name = (std::filesystem::temp_directory_path() / "forebay-optimizer-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) {
      throw std::filesystem::filesystem_error("mkdtemp", name, std::error_code(errno, std::generic_category()));
    }
    path_ = name;
  }
  ~scratch_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  scratch_folder(const scratch_folder&) = delete;
  scratch_folder& operator=(const scratch_folder&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// Twelve tensors from 3 to 300,000 elements.
inline const std::vector<std::size_t>& twelve_sizes() {
  static const std::vector<std::size_t> sizes{3, 17, 64, 4096, 300'000, 5, 40'000, 1000, 4097, 12'289, 90'001, 31};
  return sizes;
}

/// A number in [-1, 1) that depends on where and when alone.
inline float noise(std::size_t tensor, std::size_t element, std::uint64_t when) {
  std::uint64_t x =
      (tensor * 0x9e3779b97f4a7c15ULL) ^ (element * 0xc2b2ae3d27d4eb4fULL) ^ (when * 0x165667b19e3779f9ULL);
  x ^= x >> 31U;
  x *= 0xbf58476d1ce4e5b9ULL;
  x ^= x >> 29U;
  return static_cast<float>(static_cast<double>(x >> 40U) * 0x1p-23 - 1.0);
}

/// What the "backward pass" of micro-batch `when` adds to a gradient: depends on the parameter, so that one wrong bit
/// spreads.
inline float slope(float parameter, std::size_t tensor, std::size_t element, std::uint64_t when) {
  return 0.25F * parameter + noise(tensor, element, when);
}

/// Room for everything in both tiers.
inline constexpr tier_bytes plenty{64_MiB, 64_MiB, 0};

/// What happens to a gradient besides.
struct disturbance {
  std::uint64_t iteration = ~std::uint64_t{0};
  std::size_t tensor = 0;
  std::size_t element = 0;
  float value = 0.0F;
};

struct model_options {
  std::vector<std::size_t> sizes = twelve_sizes();
  unsigned micro_batches = 1;
  bool storage = true;
  std::optional<tier_bytes> capacity;  ///< none: exactly minimum_capacity
  adamw_options adam;
  std::vector<disturbance> disturbances;
  bool zero_gradients = false;
  telemetry::timeline* timeline = nullptr;
  bool recorded = false;  ///< the order is recorded in the first iteration instead of declared
};

/// Trains the twelve tensors through an engine.
class streamed_model {
 public:
  explicit streamed_model(model_options options) : options_(std::move(options)) {
    build(options_.capacity.value_or(plenty));
    if (!options_.capacity) {
      build(engine_->minimum_capacity(order_));
    }
    if (!options_.recorded) {
      engine_->set_order(order_);
    }
    for (std::size_t k = 0; k < options_.sizes.size(); ++k) {
      engine_->write<float>(parameters_[k], initial(k));
    }
  }

  [[nodiscard]] std::vector<float> initial(std::size_t k) const {
    std::vector<float> values(options_.sizes[k]);
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = noise(k, i, 1'000'000);
    }
    return values;
  }

  update_report iterate(std::uint64_t number) {
    iteration it = options_.recorded && number == 0 ? engine_->record(number) : engine_->begin(number);
    stream& on = engine_->compute_stream();
    for (unsigned micro = 0; micro < options_.micro_batches; ++micro) {
      for (std::size_t back = options_.sizes.size(); back-- > 0;) {
        const lease held = options_.recorded ? it.acquire(name(micro, back), accesses(micro, back), on)
                                             : it.acquire(steps_[micro * options_.sizes.size() + back], on);
        on.launch([this, number, micro, back, p = held.data<float>(parameters_[back]),
                   g = held.data<float>(gradients_[back])] { backward(number, micro, back, p, g); });
      }
    }
    const update_report report = optimizer_->update(it);
    last_ = it.finish();
    return report;
  }

  [[nodiscard]] std::vector<float> parameter(std::size_t k) { return contents(parameters_[k]); }
  [[nodiscard]] std::vector<float> m(std::size_t k) { return contents(optimizer_->first_moment(parameters_[k])); }
  [[nodiscard]] std::vector<float> v(std::size_t k) { return contents(optimizer_->second_moment(parameters_[k])); }
  void set_parameter(std::size_t k, const std::vector<float>& values) { engine_->write<float>(parameters_[k], values); }
  void set_moments(std::size_t k, const std::vector<float>& first, const std::vector<float>& second) {
    engine_->write<float>(optimizer_->first_moment(parameters_[k]), first);
    engine_->write<float>(optimizer_->second_moment(parameters_[k]), second);
  }
  [[nodiscard]] model_options& options() { return options_; }
  [[nodiscard]] adamw& optimizer() { return *optimizer_; }
  [[nodiscard]] const iteration_report& last_iteration() const { return last_; }
  [[nodiscard]] forebay::engine& owner() { return *engine_; }
  [[nodiscard]] const order& steps() const { return order_; }

 private:
  void build(tier_bytes capacity) {
    optimizer_.reset();
    engine_.reset();
    engine_options o;
    o.device = emulated_device({.capacity = capacity.device});
    o.host.capacity = capacity.host;
    o.chunk = 64_KiB;
    o.timeline = options_.timeline;
    if (options_.storage) {
      o.storage.push_back({folder_.path(), 64_MiB, 0, 0});
    }
    engine_ = std::make_unique<forebay::engine>(std::move(o));
    parameters_.clear();
    gradients_.clear();
    std::vector<adamw_parameter> trained;
    for (std::size_t k = 0; k < options_.sizes.size(); ++k) {
      const std::vector<std::uint64_t> shape{options_.sizes[k]};
      parameters_.push_back(engine_->add({"p" + std::to_string(k), dtype::f32, shape, role::parameter}));
      gradients_.push_back(engine_->add({"g" + std::to_string(k), dtype::f32, shape, role::gradient}));
      trained.push_back({parameters_.back(), gradients_.back(), k % 2 == 0});
    }
    optimizer_ = std::make_unique<adamw>(*engine_, trained, options_.adam);
    describe();
  }

  void describe() {
    order_ = order();
    steps_.clear();
    for (unsigned micro = 0; micro < options_.micro_batches; ++micro) {
      steps_.resize(steps_.size() + options_.sizes.size());
      for (std::size_t back = options_.sizes.size(); back-- > 0;) {
        steps_[micro * options_.sizes.size() + back] =
            order_.step(name(micro, back), accesses(micro, back), {.phase = "backward"});
      }
    }
    if (!options_.recorded) {
      optimizer_->append_to(order_);
    }
  }

  [[nodiscard]] static std::string name(unsigned micro, std::size_t k) {
    return "backward " + std::to_string(micro) + "." + std::to_string(k);
  }
  [[nodiscard]] std::vector<access> accesses(unsigned micro, std::size_t k) const {
    return {reads(parameters_[k]), micro == 0 ? creates(gradients_[k]) : writes(gradients_[k])};
  }

  void backward(std::uint64_t number, unsigned micro, std::size_t k, std::span<const float> p, std::span<float> g) {
    for (std::size_t i = 0; i < p.size(); ++i) {
      const float add = options_.zero_gradients ? 0.0F : slope(p[i], k, i, number * options_.micro_batches + micro);
      g[i] = micro == 0 ? add : g[i] + add;
    }
    for (const disturbance& d : options_.disturbances) {
      if (d.iteration == number && d.tensor == k) {
        g[d.element] = d.value;
      }
    }
  }

  [[nodiscard]] std::vector<float> contents(tensor_id tensor) {
    std::vector<float> values(engine_->spec(tensor).elements());
    engine_->read<float>(tensor, std::span(values));
    return values;
  }

  model_options options_;
  scratch_folder folder_;
  std::unique_ptr<forebay::engine> engine_;
  std::unique_ptr<adamw> optimizer_;
  std::vector<tensor_id> parameters_;
  std::vector<tensor_id> gradients_;
  std::vector<step_id> steps_;
  order order_;
  iteration_report last_;
};

/// The same training on plain vectors.
class plain_model {
 public:
  explicit plain_model(const streamed_model& like, const model_options& options)
      : options_(options), state(initial(like, options)) {}

  /// Returns the norm before clipping.
  double iterate(std::uint64_t number) {
    std::vector<std::vector<float>> gradients(options_.sizes.size());
    std::vector<double> sums;
    for (std::size_t k = 0; k < gradients.size(); ++k) {
      gradients[k].resize(options_.sizes[k]);
      for (unsigned micro = 0; micro < options_.micro_batches; ++micro) {
        for (std::size_t i = 0; i < gradients[k].size(); ++i) {
          const float add = slope(state.parameters[k][i], k, i, number * options_.micro_batches + micro);
          gradients[k][i] = micro == 0 ? add : gradients[k][i] + add;
        }
      }
      sums.push_back(sum_of_squares(gradients[k], simd_level::scalar));
    }
    const double norm = std::sqrt(tree_sum(sums));
    const adamw_options& a = options_.adam;
    reference_options o{a.lr, a.beta1, a.beta2, a.eps, a.weight_decay, 1.0F};
    if (a.clip_norm > 0.0F && norm > static_cast<double>(a.clip_norm)) {
      o.clip = static_cast<float>(static_cast<double>(a.clip_norm) / norm);
    }
    ++steps;
    for (std::size_t k = 0; k < gradients.size(); ++k) {
      o.weight_decay = k % 2 == 0 ? a.weight_decay : 0.0F;
      state.step_tensor(k, gradients[k], o, steps);
    }
    return norm;
  }

 private:
  static std::vector<std::vector<float>> initial(const streamed_model& like, const model_options& options) {
    std::vector<std::vector<float>> all;
    for (std::size_t k = 0; k < options.sizes.size(); ++k) {
      all.push_back(like.initial(k));
    }
    return all;
  }

  model_options options_;

 public:
  plain_adamw state;
  std::uint64_t steps = 0;
};

}  // namespace forebay::testing_optimizer
