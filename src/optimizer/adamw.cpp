#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <utility>

#include <forebay/base/clock.hpp>
#include <forebay/optimizer/adamw.hpp>
#include <forebay/optimizer/detail/pieces.hpp>
#include <forebay/optimizer/detail/subgroup.hpp>
#include <forebay/optimizer/gradient_norm.hpp>

namespace forebay {

using detail::adamw_entry;
using detail::norm_item;
using detail::subgroup;
using detail::subgroup_step;
using detail::update_item;

struct adamw::impl {
  impl(engine& owner_, const std::vector<adamw_parameter>& parameters, const adamw_options& options_);
  ~impl();
  impl(const impl&) = delete;
  impl& operator=(const impl&) = delete;

  void decide_place(const order& steps);
  [[nodiscard]] static bool on_device(const subgroup_step& step) { return step.options.where == place::device; }
  /// Whether the device's memory is out of the host's reach, so that `options.kernels` compute there.
  [[nodiscard]] bool beyond_host() const { return !owner.device().host_addressable(); }
  [[nodiscard]] bool by_kernels(const subgroup& group) const { return group.where == place::device && beyond_host(); }
  [[nodiscard]] lease acquire(iteration& in, const subgroup_step& step);
  template <typename Work>
  void compute(const subgroup_step& step, Work work);
  void wait_for_device();
  void sum_gradients(iteration& in);
  void enqueue_leaf_sums(const subgroup& group, const lease& held);
  void discard_gradients(iteration& in);
  void update_parameters(iteration& in, float clip);
  void update_subgroup(iteration& in, const subgroup& group);
  [[nodiscard]] const adamw_entry& entry_of(tensor_id parameter) const;

  engine& owner;
  adamw_options options;
  std::vector<adamw_entry> entries;
  std::unordered_map<tensor_id, std::size_t> index;
  detail::update_pool pool;
  std::vector<subgroup> groups;
  std::vector<double> sums;    ///< of squares, one a gradient
  std::vector<double> leaves;  ///< of all gradients, in order, where kernels sum them
  std::vector<std::size_t> first_leaf;
  adamw_coefficients with_decay;
  adamw_coefficients without_decay;
  std::uint64_t steps_done = 0;
  telemetry::timeline* timeline = nullptr;
  telemetry::lane_id lane = 0;
};

adamw::impl::impl(engine& owner_, const std::vector<adamw_parameter>& parameters, const adamw_options& options_)
    : owner(owner_), options(options_), pool(options_.threads), timeline(owner_.timeline()) {
  detail::check_options(options);
  if (options.where == adamw_options::location::device && beyond_host() && options.kernels == nullptr) {
    throw unsupported_error("adamw: the host cannot compute in the memory of " + owner.device().name() +
                            "; give it kernels, or use location::host or automatic");
  }
  entries = detail::register_states(owner, parameters);
  sums.resize(entries.size());
  std::size_t leaf_count = 0;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    index.emplace(entries[i].parameter, i);
    first_leaf.push_back(leaf_count);
    leaf_count += entries[i].leaves;
  }
  if (beyond_host()) {
    leaves.resize(leaf_count);
  }
  if (timeline != nullptr) {
    lane = timeline->lane("optimizer");
  }
}

adamw::impl::~impl() {
  try {
    wait_for_device();
  } catch (...) {
    // The stream's failure is the iteration's to report.
  }
}

void adamw::impl::decide_place(const order& steps) {
  const bool able = !beyond_host() || options.kernels != nullptr;
  const bool device =
      options.where == adamw_options::location::device ||
      (options.where == adamw_options::location::automatic && able && detail::fits_device(owner, steps));
  groups =
      detail::make_subgroups(entries, {options.subgroup_bytes, device ? options.device_share : 0.0, beyond_host()});
}

/// By its place in the engine's order where it has one, by its description otherwise (while recording, or when the
/// order was made without it).
lease adamw::impl::acquire(iteration& in, const subgroup_step& step) {
  if (step.id.valid()) {
    return on_device(step) ? in.acquire(step.id, owner.compute_stream()) : in.acquire(step.id);
  }
  return on_device(step) ? in.acquire(step.name, step.accesses, owner.compute_stream(), step.options)
                         : in.acquire(step.name, step.accesses, step.options);
}

/// Runs `work` at once on the host, or in the order of the compute stream.
template <typename Work>
void adamw::impl::compute(const subgroup_step& step, Work work) {
  auto timed = [this, name = step.name, work = std::move(work)]() mutable {
    const time_point start = steady_clock::instance().now();
    work();
    if (timeline != nullptr) {
      timeline->record({lane, name, start, steady_clock::instance().now(), 0});
    }
  };
  if (on_device(step)) {
    owner.compute_stream().launch(std::move(timed));
  } else {
    timed();
  }
}

void adamw::impl::wait_for_device() {
  const auto on_it = [](const subgroup& group) { return group.where == place::device; };
  if (std::any_of(groups.begin(), groups.end(), on_it)) {
    owner.compute_stream().synchronize();
  }
}

/// In the order of registration: the backward pass ends with the first layers, so their gradients are the near ones.
void adamw::impl::sum_gradients(iteration& in) {
  for (const subgroup& group : groups) {
    const lease held = acquire(in, group.norm);
    if (by_kernels(group)) {
      enqueue_leaf_sums(group, held);
      continue;
    }
    std::vector<norm_item> items;
    items.reserve(group.count);
    for (std::size_t i = group.first; i < group.first + group.count; ++i) {
      items.push_back({held.data<float>(entries[i].gradient), &sums[i]});
    }
    compute(group.norm, [this, items = std::move(items)] { detail::norm_all(items, pool); });
  }
  wait_for_device();
  for (const subgroup& group : groups) {
    for (std::size_t i = group.first; by_kernels(group) && i < group.first + group.count; ++i) {
      sums[i] = tree_sum(std::span(leaves).subspan(first_leaf[i], entries[i].leaves));
    }
  }
}

/// The leaves are summed where the gradients are; the trees above them, a few kilobytes, on the host.
void adamw::impl::enqueue_leaf_sums(const subgroup& group, const lease& held) {
  stream& on = owner.compute_stream();
  const std::span<std::byte> workspace = held.workspace();
  const std::span<double> room(reinterpret_cast<double*>(workspace.data()), workspace.size() / sizeof(double));
  const std::size_t first = first_leaf[group.first];
  std::size_t count = 0;
  for (std::size_t i = group.first; i < group.first + group.count; ++i) {
    options.kernels->leaf_sums(on, held.data<float>(entries[i].gradient), room.subspan(count, entries[i].leaves));
    count += entries[i].leaves;
  }
  on.copy(std::as_writable_bytes(std::span(leaves).subspan(first, count)).data(), workspace.data(),
          count * sizeof(double), copy_direction::device_to_host);
}

void adamw::impl::discard_gradients(iteration& in) {
  for (auto group = groups.rbegin(); group != groups.rend(); ++group) {
    acquire(in, group->discard).release();
  }
}

/// Backwards: from the gradients that were read last, to the parameters that the next forward pass reads first.
void adamw::impl::update_parameters(iteration& in, float clip) {
  adamw_hyperparameters h{options.lr, options.beta1, options.beta2, options.eps, 0.0F};
  without_decay = make_adamw_coefficients(h, steps_done + 1, clip);
  h.weight_decay = options.weight_decay;
  with_decay = make_adamw_coefficients(h, steps_done + 1, clip);
  for (auto group = groups.rbegin(); group != groups.rend(); ++group) {
    update_subgroup(in, *group);
  }
  ++steps_done;
}

void adamw::impl::update_subgroup(iteration& in, const subgroup& group) {
  const lease held = acquire(in, group.update);
  if (by_kernels(group)) {
    for (std::size_t i = group.first; i < group.first + group.count; ++i) {
      const adamw_entry& e = entries[i];
      options.kernels->update(owner.compute_stream(), held.data<float>(e.parameter), held.data<float>(e.gradient),
                              held.data<float>(e.m), held.data<float>(e.v), e.decay ? with_decay : without_decay);
    }
    return;
  }
  std::vector<update_item> items;
  items.reserve(group.count);
  for (std::size_t i = group.first; i < group.first + group.count; ++i) {
    const adamw_entry& e = entries[i];
    items.push_back({held.data<float>(e.parameter), held.data<float>(e.gradient), held.data<float>(e.m),
                     held.data<float>(e.v), e.decay ? &with_decay : &without_decay});
  }
  compute(group.update, [this, items = std::move(items)] { detail::update_all(items, pool); });
}

const adamw_entry& adamw::impl::entry_of(tensor_id parameter) const {
  const auto found = index.find(parameter);
  FOREBAY_EXPECTS(found != index.end(), "this optimizer does not update that tensor");
  return entries[found->second];
}

adamw::adamw(engine& owner, std::vector<adamw_parameter> parameters, adamw_options options)
    : impl_(std::make_unique<impl>(owner, parameters, options)) {}
adamw::~adamw() = default;
adamw::adamw(adamw&&) noexcept = default;
adamw& adamw::operator=(adamw&&) noexcept = default;

void adamw::append_to(order& steps) {
  impl_->decide_place(steps);
  std::vector<subgroup>& groups = impl_->groups;
  for (subgroup& group : groups) {
    group.norm.id = steps.step(group.norm.name, group.norm.accesses, group.norm.options);
  }
  for (auto group = groups.rbegin(); group != groups.rend(); ++group) {
    group->update.id = steps.step(group->update.name, group->update.accesses, group->update.options);
  }
}

update_report adamw::update(iteration& in) {
  if (impl_->groups.empty()) {
    impl_->decide_place({});
  }
  impl_->sum_gradients(in);
  update_report report;
  const std::vector<double>& sums = impl_->sums;
  const auto bad = std::find_if(sums.begin(), sums.end(), [](double sum) { return !std::isfinite(sum); });
  std::vector<double> tree = sums;
  report.gradient_norm = std::sqrt(tree_sum(tree));
  if (bad != sums.end()) {
    report.skipped = true;
    report.non_finite_tensor = impl_->entries[static_cast<std::size_t>(bad - sums.begin())].gradient_name;
    impl_->discard_gradients(in);
  } else {
    report.clip_scale = clip_scale(report.gradient_norm, impl_->options.clip_norm);
    impl_->update_parameters(in, report.clip_scale);
  }
  report.step = impl_->steps_done;
  return report;
}

tensor_id adamw::first_moment(tensor_id parameter) const { return impl_->entry_of(parameter).m; }
tensor_id adamw::second_moment(tensor_id parameter) const { return impl_->entry_of(parameter).v; }
std::uint64_t adamw::step() const noexcept { return impl_->steps_done; }
void adamw::set_step(std::uint64_t step) noexcept { impl_->steps_done = step; }
void adamw::set_lr(float lr) noexcept { impl_->options.lr = lr; }

}  // namespace forebay
