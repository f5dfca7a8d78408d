#include "workload.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <forebay/plan/packing.hpp>

namespace plan_model {
namespace {

using forebay::byte_count;
using forebay::place;
using forebay::uses;
using forebay::plan::item_access;
using forebay::plan::item_index;
using forebay::plan::trace_step;

using items = std::vector<item_index>;

constexpr byte_count logit_bytes = 4;  // the loss is computed in fp32

/// Writes the steps down one after the other.
class writer {
 public:
  writer(const training& t, const compute_speed& speed, const granularity& g)
      : t_(t), speed_(speed), cut_(g), blocks_(steps_of(t, g)), tokens_(tokens_of_micro_batch(t)) {}

  workload write() {
    add_parameters();
    for (std::uint64_t j = 0; j < t_.micro_batches; ++j) {
      forward(j);
      loss(j);
      backward(j);
    }
    updates();
    return std::move(out_);
  }

 private:
  item_index item(std::string name, byte_count bytes) {
    out_.trace.item_bytes.push_back(forebay::align_up(bytes, forebay::plan::block_alignment));
    out_.item_names.push_back(std::move(name));
    return static_cast<item_index>(out_.item_names.size() - 1);
  }

  /// Activations, in equal pieces that are small beside the device tier.
  items pieces(const std::string& name, byte_count bytes) {
    const std::uint64_t count = bytes == 0 ? 0 : forebay::ceil_div(bytes, cut_.device_part);
    items all;
    for (std::uint64_t i = 0; i < count; ++i) {
      all.push_back(
          item(count == 1 ? name : fmt::format("{} {}/{}", name, i + 1, count), forebay::ceil_div(bytes, count)));
    }
    return all;
  }

  [[nodiscard]] byte_count elements(std::uint64_t per_token) const {
    return per_token * tokens_ * forebay::size_of(t_.type);
  }

  [[nodiscard]] std::uint64_t pieces_of(const block& b) const {
    const byte_count weights = b.parameters * forebay::size_of(t_.type);
    const byte_count state = b.parameters * state_bytes(t_);
    return std::max(
        {std::uint64_t{1}, forebay::ceil_div(weights, cut_.device_part), forebay::ceil_div(state, cut_.host_part)});
  }

  void add_parameters() {
    for (const block& b : blocks_) {
      parameter_items p;
      const std::uint64_t pieces = b.parameters == 0 ? 0 : pieces_of(b);
      for (std::uint64_t i = 0; i < pieces; ++i) {
        const std::uint64_t count = b.parameters * (i + 1) / pieces - b.parameters * i / pieces;
        const std::string part = pieces == 1 ? "" : fmt::format(" {}/{}", i + 1, pieces);
        p.counts.push_back(count);
        p.weights.push_back(item(b.name + " weights" + part, count * forebay::size_of(t_.type)));
        p.gradients.push_back(item(b.name + " gradient" + part, count * forebay::size_of(t_.type)));
        if (state_bytes(t_) > 0) {
          p.states.push_back(item(b.name + " state" + part, count * state_bytes(t_)));
        }
      }
      parameters_.push_back(std::move(p));
    }
    if (tied(t_.model)) {
      parameters_.back() = parameters_.front();
    }
  }

  trace_step& step(std::string name, const char* phase, place where, double seconds, byte_count workspace = 0) {
    trace_step s;
    s.where = where;
    s.seconds = seconds;
    s.workspace = workspace;
    s.phase = phase;
    out_.trace.steps.push_back(std::move(s));
    out_.step_names.push_back(std::move(name));
    return out_.trace.steps.back();
  }

  static void use(trace_step& s, const items& all, uses how) {
    for (const item_index i : all) {
      s.accesses.push_back({i, how});
    }
  }

  [[nodiscard]] double device_seconds(double flops_per_token) const {
    return flops_per_token * static_cast<double>(tokens_) / speed_.flops;
  }

  [[nodiscard]] std::string of_batch(std::uint64_t j) const {
    return t_.micro_batches == 1 ? "" : fmt::format(", micro-batch {}", j);
  }

  void forward(std::uint64_t j) {
    const byte_count stream = elements(t_.model.width);
    inputs_.clear();
    saved_.clear();
    for (std::size_t b = 0; b + 1 < blocks_.size(); ++b) {
      const block& it = blocks_[b];
      trace_step& s = step("forward of " + it.name + of_batch(j), "forward", place::device,
                           device_seconds(it.forward_flops), elements(it.widest));
      use(s, parameters_[b].weights, uses::read);
      if (b > 0) {
        use(s, inputs_.back(), uses::read);
      }
      inputs_.push_back(pieces("output of " + it.name + of_batch(j), stream));
      saved_.push_back(pieces("activations of " + it.name + of_batch(j), elements(it.saved)));
      use(s, inputs_.back(), uses::create);
      use(s, saved_.back(), uses::create);
    }
  }

  [[nodiscard]] uses adds_gradient(std::uint64_t j) const { return j == 0 ? uses::create : uses::write; }

  void loss(std::uint64_t j) {
    const block& it = blocks_.back();
    trace_step& s = step("loss" + of_batch(j), "backward", place::device, device_seconds(3.0 * it.forward_flops),
                         it.widest * tokens_ * logit_bytes);
    use(s, parameters_.back().weights, uses::read);
    use(s, parameters_.back().gradients, adds_gradient(j));
    use(s, inputs_.back(), uses::read | uses::free);
    gradient_ = pieces("gradient of activations" + of_batch(j), elements(t_.model.width));
    use(s, gradient_, uses::create);
  }

  void backward(std::uint64_t j) {
    const bool again = t_.again == recompute::all;
    for (std::size_t b = blocks_.size() - 2; b > 0; --b) {
      const block& it = blocks_[b];
      // Gradients of two temporaries; where the forward step is done again also everything that it gives.
      const std::uint64_t scratch = 2 * it.widest + (again ? layer_elements() : 0);
      trace_step& s = step("backward of " + it.name + of_batch(j), "backward", place::device,
                           device_seconds((again ? 3.0 : 2.0) * it.forward_flops), elements(scratch));
      use(s, parameters_[b].weights, uses::read);
      use(s, parameters_[b].gradients, adds_gradient(j));
      use(s, inputs_[b - 1], uses::read | uses::free);
      use(s, saved_[b], uses::read | uses::free);
      use(s, gradient_, uses::write);
    }
    trace_step& s = step("backward of embedding" + of_batch(j), "backward", place::device, 0.0);
    use(s, parameters_.front().gradients, tied(t_.model) ? uses::write : adds_gradient(j));
    use(s, gradient_, uses::read | uses::free);
  }

  /// What one layer saves without recomputing.
  [[nodiscard]] std::uint64_t layer_elements() const {
    const std::vector<block> all = half_layers(t_.model);
    return all[0].saved + t_.model.width + all[1].saved;
  }

  void updates() {
    const double rate = t_.update == place::host ? speed_.update_bytes : speed_.device_bytes;
    for (std::size_t b = blocks_.size(); b-- > 0;) {
      const parameter_items& p = parameters_[b];
      if (b + 1 == blocks_.size() && tied(t_.model)) {
        continue;  // the embedding's
      }
      for (std::size_t i = 0; i < p.counts.size(); ++i) {
        const double seconds = static_cast<double>(p.counts[i] * update_bytes(t_)) / rate;
        const std::string part = p.counts.size() == 1 ? "" : fmt::format(" {}/{}", i + 1, p.counts.size());
        trace_step& s = step("update of " + blocks_[b].name + part, "update", t_.update, seconds);
        s.accesses.push_back({p.weights[i], uses::write});
        s.accesses.push_back({p.gradients[i], uses::read | uses::free});
        if (!p.states.empty()) {
          s.accesses.push_back({p.states[i], uses::write});
        }
      }
    }
  }

  struct parameter_items {
    std::vector<std::uint64_t> counts;  // of parameters, by piece
    items weights, gradients, states;
  };

  const training& t_;
  const compute_speed& speed_;
  const granularity& cut_;
  std::vector<block> blocks_;
  std::uint64_t tokens_;
  std::vector<parameter_items> parameters_;  // by block
  std::vector<items> inputs_;                // of one micro-batch: what each block gives, and the next one takes
  std::vector<items> saved_;
  items gradient_;
  workload out_;
};

/// "layer 3" of its two halves, "layers 4 to 7" of eight.
[[nodiscard]] std::string merged_name(std::uint64_t first_half, std::uint64_t halves) {
  const std::uint64_t first = first_half / 2;
  const std::uint64_t last = (first_half + halves - 1) / 2;
  return first == last ? fmt::format("layer {}", first) : fmt::format("layers {} to {}", first, last);
}

}  // namespace

std::vector<block> steps_of(const training& t, const granularity& g) {
  const std::vector<block> halves = half_layers(t.model);
  std::vector<block> all{embedding(t.model)};
  for (std::size_t first = 0; first < halves.size(); first += g.half_layers) {
    const std::size_t count = std::min<std::size_t>(g.half_layers, halves.size() - first);
    block merged = halves[first];
    for (std::size_t i = 1; i < count; ++i) {
      const block& next = halves[first + i];
      merged.parameters += next.parameters;
      merged.forward_flops += next.forward_flops;
      merged.saved += t.model.width + next.saved;
      merged.widest = std::max(merged.widest, next.widest);
    }
    if (count > 1) {
      merged.name = merged_name(first, count);
    }
    if (t.again == recompute::all) {
      merged.saved = (count - 1) / 2 * t.model.width;  // the inputs of all its layers but the first, which it is given
    }
    all.push_back(std::move(merged));
  }
  all.push_back(output(t.model));
  return all;
}

workload as_recorded(const forebay::plan::trace& order) {
  workload w{order, {}, {}};
  for (std::size_t s = 0; s < order.steps.size(); ++s) {
    const std::string& phase = order.steps[s].phase;
    w.step_names.push_back(phase.empty() ? fmt::format("step {}", s) : fmt::format("step {} ({})", s, phase));
  }
  for (std::size_t i = 0; i < order.item_bytes.size(); ++i) {
    w.item_names.push_back(fmt::format("item {}", i));
  }
  return w;
}

workload build_workload(const training& t, const compute_speed& speed, const granularity& g) {
  return writer(t, speed, g).write();
}

}  // namespace plan_model
