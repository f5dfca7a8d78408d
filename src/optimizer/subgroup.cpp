#include <algorithm>
#include <cmath>
#include <unordered_set>

#include <fmt/format.h>

#include <forebay/optimizer/detail/subgroup.hpp>
#include <forebay/optimizer/gradient_norm.hpp>
#include <forebay/plan/packing.hpp>

namespace forebay::detail {

namespace {

void check_pair(const engine& owner, const adamw_parameter& p) {
  const tensor_spec& parameter = owner.spec(p.parameter);
  const tensor_spec& gradient = owner.spec(p.gradient);
  for (const tensor_spec* spec : {&parameter, &gradient}) {
    if (spec->type != dtype::f32) {
      throw usage_error(
          fmt::format("adamw: '{}' is {}; parameters and gradients are F32", spec->name, to_string(spec->type)));
    }
  }
  if (parameter.shape != gradient.shape) {
    throw usage_error(fmt::format("adamw: '{}' has shape [{}], its gradient '{}' [{}]; they must be equal",
                                  parameter.name, fmt::join(parameter.shape, ", "), gradient.name,
                                  fmt::join(gradient.shape, ", ")));
  }
}

void check_distinct(const engine& owner, const std::vector<adamw_parameter>& parameters) {
  std::unordered_set<tensor_id> seen;
  for (const adamw_parameter& p : parameters) {
    for (const tensor_id tensor : {p.parameter, p.gradient}) {
      if (!seen.insert(tensor).second) {
        throw usage_error(fmt::format("adamw: '{}' was given twice", owner.spec(tensor).name));
      }
    }
  }
}

void check_free_names(const engine& owner, const std::vector<adamw_parameter>& parameters) {
  std::unordered_set<std::string> taken;
  for (const tensor_id tensor : owner.tensors()) {
    taken.insert(owner.spec(tensor).name);
  }
  for (const adamw_parameter& p : parameters) {
    for (const char* suffix : {".m", ".v"}) {
      if (!taken.insert(owner.spec(p.parameter).name + suffix).second) {
        throw usage_error(fmt::format("adamw: '{}{}' is the name of another tensor; a parameter has one optimizer",
                                      owner.spec(p.parameter).name, suffix));
      }
    }
  }
}

tensor_id add_zero(engine& owner, const tensor_spec& parameter, const char* suffix) {
  const tensor_id state =
      owner.add({parameter.name + suffix, dtype::f32, parameter.shape, forebay::role::optimizer_state});
  owner.zero(state);
  return state;
}

void describe_steps(subgroup& group, const std::vector<adamw_entry>& entries, std::size_t number,
                    const subgroup_options& how) {
  step_options options;
  options.where = group.where;
  options.phase = "update";
  group.norm = {fmt::format("norm {}", number), {}, options, {}};
  group.update = {fmt::format("update {}", number), {}, options, {}};
  group.discard = {fmt::format("discard {}", number), {}, options, {}};
  for (std::size_t i = group.first; i < group.first + group.count; ++i) {
    const adamw_entry& e = entries[i];
    group.norm.accesses.push_back(reads(e.gradient));
    group.update.accesses.insert(
        group.update.accesses.end(),
        {writes(e.parameter), {e.gradient, uses::read | uses::free}, writes(e.m), writes(e.v)});
    group.discard.accesses.push_back(frees(e.gradient));
    if (how.device_leaves && group.where == place::device) {
      group.norm.options.workspace += e.leaves * sizeof(double);
    }
  }
}

}  // namespace

std::vector<adamw_entry> register_states(engine& owner, const std::vector<adamw_parameter>& parameters) {
  for (const adamw_parameter& p : parameters) {
    check_pair(owner, p);
  }
  check_distinct(owner, parameters);
  check_free_names(owner, parameters);
  std::vector<adamw_entry> entries;
  entries.reserve(parameters.size());
  for (const adamw_parameter& p : parameters) {
    // A copy: registering tensors may move the engine's own.
    const tensor_spec spec = owner.spec(p.parameter);
    adamw_entry e;
    e.parameter = p.parameter;
    e.gradient = p.gradient;
    e.m = add_zero(owner, spec, ".m");
    e.v = add_zero(owner, spec, ".v");
    e.decay = p.decay;
    e.bytes = 4 * spec.bytes();
    e.leaves = norm_leaves(spec.bytes() / sizeof(float));
    e.gradient_name = owner.spec(p.gradient).name;
    entries.push_back(std::move(e));
  }
  return entries;
}

void check_options(const adamw_options& options) {
  const auto expect = [](bool good, const char* name, float value, const char* range) {
    if (!good) {
      throw usage_error(fmt::format("adamw: {} is {}; it must be {}", name, value, range));
    }
  };
  const auto not_negative = [](float x) { return std::isfinite(x) && x >= 0.0F; };
  expect(not_negative(options.lr), "lr", options.lr, "finite and at least 0");
  expect(options.beta1 >= 0.0F && options.beta1 < 1.0F, "beta1", options.beta1, "in [0, 1)");
  expect(options.beta2 >= 0.0F && options.beta2 < 1.0F, "beta2", options.beta2, "in [0, 1)");
  expect(not_negative(options.eps), "eps", options.eps, "finite and at least 0");
  expect(not_negative(options.weight_decay), "weight_decay", options.weight_decay, "finite and at least 0");
  expect(options.device_share >= 0.0 && options.device_share <= 1.0, "device_share",
         static_cast<float>(options.device_share), "in [0, 1]");
  expect(not_negative(options.clip_norm), "clip_norm", options.clip_norm, "finite and at least 0 (0: no clipping)");
}

std::vector<subgroup> make_subgroups(const std::vector<adamw_entry>& entries, const subgroup_options& options) {
  std::vector<subgroup> groups;
  byte_count held = 0;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (groups.empty() || held + entries[i].bytes > options.limit) {
      groups.push_back({i, 0, place::host, {}, {}, {}});
      held = 0;
    }
    ++groups.back().count;
    held += entries[i].bytes;
  }
  for (std::size_t k = 0; k < groups.size(); ++k) {
    const auto before = [&](std::size_t n) { return std::floor(static_cast<double>(n) * options.device_share + 1e-9); };
    groups[k].where = before(k + 1) > before(k) ? place::device : place::host;
    describe_steps(groups[k], entries, k, options);
  }
  return groups;
}

bool fits_device(engine& owner, const order& steps) {
  // As if nothing were packed: each tensor, and the workspace, starts a block of its own.
  const auto padded = [](byte_count bytes) { return align_up(bytes, plan::block_alignment); };
  byte_count need = 0;
  for (const tensor_id tensor : owner.tensors()) {
    need += padded(owner.spec(tensor).bytes());
  }
  byte_count workspace = 0;
  for (const order_step& step : steps.steps()) {
    if (step.options.where == place::device) {
      workspace = std::max(workspace, step.options.workspace);
    }
  }
  return need + padded(workspace) <= owner.capacity().device;
}

}  // namespace forebay::detail
