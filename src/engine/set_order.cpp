// The order: which tensors share blocks, what each tier needs for it, and taking it over.
#include <algorithm>

#include <fmt/format.h>

#include <forebay/plan/minimum_capacity.hpp>

#include "engine/impl.hpp"

namespace forebay {

byte_count engine::impl::home_padding(byte_count bytes) const {
  const byte_count padded = align_up(bytes, plan::block_alignment);
  return store == nullptr ? padded : std::max(padded, store->padded_bytes(padded));
}

// Chunks do not straddle paths: what is left of each path but the last may be smaller than a chunk when the next one
// comes.
byte_count engine::impl::striping_slack() const { return (store->path_count() - 1) * options.chunk; }

void engine::impl::check_tensors(const order& steps) const {
  for (const order_step& s : steps.steps()) {
    for (const access& a : s.accesses) {
      static_cast<void>(spec_of(a.tensor));
    }
  }
}

detail::layout engine::impl::lay_out(const order& steps, const order& packed_by) {
  const std::scoped_lock setup(setup_mutex);
  check_tensors(steps);
  const std::scoped_lock lock(sched->mutex());
  detail::layout l;
  l.first_fresh = sched->block_count();
  l.block_of.assign(specs.size(), no_block);
  l.tensors_in.assign(l.first_fresh, 0);
  for (std::uint32_t i = 0; i < l.first_fresh; ++i) {
    const block_record& b = sched->block(i);
    l.trace.item_bytes.push_back(b.scratch ? 0 : b.bytes);
    l.tensors_in[i] = static_cast<std::uint32_t>(b.tensors.size());
  }
  std::vector<plan::packable_tensor> loose;
  for (std::uint32_t i = 0; i < specs.size(); ++i) {
    l.block_of[i] = sched->tensor(i).block;
    if (l.block_of[i] == no_block) {
      loose.push_back({{i, identity}, specs[i].bytes(), static_cast<std::uint8_t>(specs[i].role)});
    }
  }
  l.fresh = plan::pack(loose, packed_by, options.packed_block_bytes);
  for (plan::packed_block& b : l.fresh) {
    b.bytes = home_padding(b.bytes);
    for (const tensor_id t : b.tensors) {
      l.block_of[t.index] = static_cast<std::uint32_t>(l.trace.item_bytes.size());
    }
    l.trace.item_bytes.push_back(b.bytes);
    l.tensors_in.push_back(static_cast<std::uint32_t>(b.tensors.size()));
  }
  for (const order_step& s : steps.steps()) {
    plan::trace_step t;
    t.where = s.options.where;
    t.seconds = s.options.seconds;
    t.workspace = home_padding(s.options.workspace);
    t.phase = s.options.phase;
    for (const detail::block_access& a : detail::accesses_by_block(s.accesses, l.block_of, l.tensors_in)) {
      t.accesses.push_back({a.block, a.how});
    }
    l.trace.steps.push_back(std::move(t));
  }
  return l;
}

tier_bytes engine::impl::needs_of(const detail::layout& l) const {
  const bool stored = store != nullptr;
  const plan::capacity_needs needs = plan::minimum_capacity(l.trace, stored ? options.chunk : 0);
  tier_bytes result;
  result.device = needs.device.bytes;
  if (stored) {
    result.host = std::max(needs.host.bytes, options.chunk);
    result.storage = needs.home + striping_slack();
    return result;
  }
  byte_count workspace = 0;
  for (const plan::trace_step& s : l.trace.steps) {
    workspace = std::max(workspace, s.where == place::host ? s.workspace : 0);
  }
  result.host = needs.home + workspace;
  return result;
}

void engine::impl::check_capacity(const detail::layout& l, const order& steps) const {
  const plan::capacity_needs needs = plan::minimum_capacity(l.trace, store != nullptr ? options.chunk : 0);
  const tier_bytes least = needs_of(l);
  const auto check = [&](tier t, byte_count capacity, const plan::tier_need& need, std::string_view remark) {
    if (least[t] <= capacity) {
      return;
    }
    const std::string step =
        need.step ? fmt::format("step '{}' needs {} B", steps.steps()[*need.step].name, need.bytes) : "no step decides";
    throw capacity_error(
        fmt::format("the {} tier is too small: {}{}; in all it takes at least {} B ({}), the capacity is {} B ({})",
                    to_string(t), step, remark, least[t], format_bytes(least[t]), capacity, format_bytes(capacity)));
  };
  check(tier::device, device_account.capacity(), needs.device, "");
  check(tier::host, host_account.capacity(), needs.host,
        store == nullptr ? ", and without storage every tensor has its home there" : ", one transfer chunk included");
}

void engine::impl::add_blocks(const std::vector<plan::packed_block>& fresh) {
  const std::scoped_lock lock(sched->mutex());
  for (const plan::packed_block& f : fresh) {
    const tensor_id first = f.tensors.front();
    block_record b;
    b.name = specs[first.index].name;
    if (f.tensors.size() > 1) {
      b.name += fmt::format(" (and {} more)", f.tensors.size() - 1);
    }
    b.bytes = f.bytes;
    b.activation = specs[first.index].role == role::activation;
    for (const tensor_id t : f.tensors) {
      b.tensors.push_back(t.index);
    }
    const std::uint32_t block = sched->add_block(std::move(b));
    for (std::size_t i = 0; i < f.tensors.size(); ++i) {
      tensor_record& t = sched->tensor(f.tensors[i].index);
      t.block = block;
      t.offset = f.offsets[i];
    }
  }
}

void engine::impl::materialise(tensor_id tensor) {
  const std::scoped_lock setup(setup_mutex);
  {
    const std::scoped_lock lock(sched->mutex());
    if (sched->tensor(tensor.index).block != no_block) {
      return;
    }
  }
  const byte_count bytes = home_padding(specs[tensor.index].bytes());
  if (store != nullptr) {
    home_bytes += store->padded_bytes(bytes);
    store->reserve(home_bytes + striping_slack());
  }
  add_blocks({{{tensor}, {0}, bytes}});
}

detail::step_plan engine::impl::plan_step(const order_step& s, const detail::layout& l, std::uint32_t position) const {
  detail::step_plan p;
  p.name = s.name;
  p.where = s.options.where;
  p.workspace = s.options.workspace;
  p.tensors = s.accesses;
  p.blocks = detail::accesses_by_block(s.accesses, l.block_of, l.tensors_in);
  p.position = position;
  return p;
}

void engine::impl::adopt(order steps, std::vector<recomputation> made_again) {
  const std::scoped_lock setup(setup_mutex);
  check_tensors(steps);
  check_recomputations(steps, made_again);
  // Blocks serve every choice: tensors share one when they are accessed alike with all recomputations.
  const std::size_t n = made_again.size();
  detail::recomputed_order everything = with_recomputations(steps, made_again, std::vector<bool>(n, true));
  detail::recomputed_order first = options.recompute == recompute_policy::all
                                       ? everything
                                       : with_recomputations(steps, made_again, std::vector<bool>(n, false));
  const detail::layout l = lay_out(first.steps, everything.steps);
  check_capacity(l, first.steps);
  if (store != nullptr) {
    byte_count home = 0;
    for (const byte_count bytes : l.trace.item_bytes) {
      home += store->padded_bytes(bytes);
    }
    home_bytes = std::max(home_bytes, home);
    store->reserve(home_bytes + striping_slack());
  }
  add_blocks(l.fresh);
  take_over(std::move(first), l);
  current = std::move(steps);
  again = std::move(made_again);
  has_order = true;
  start_choosing();
}

/// The steps that are run from now on. All their tensors have blocks.
void engine::impl::take_over(detail::recomputed_order steps, const detail::layout& l) {
  std::vector<detail::step_plan> plans;
  for (std::uint32_t i = 0; i < steps.steps.steps().size(); ++i) {
    plans.push_back(plan_step(steps.steps.steps()[i], l, i));
  }
  const std::scoped_lock lock(sched->mutex());
  if (store != nullptr && sched->staging_chunks() < options.staging_chunks) {
    // More staging only from what no step needs, and never more than an eighth of the tier.
    const byte_count spare = std::min(host_account.capacity() - needs_of(l).host, host_account.capacity() / 8);
    const std::size_t wanted = std::min<std::size_t>(options.staging_chunks, 1 + spare / options.chunk);
    if (wanted > sched->staging_chunks()) {
      sched->add_staging(wanted - sched->staging_chunks());
    }
  }
  sched->set_order(std::move(plans), plan::next_use(l.trace));
  running = std::move(steps);
  plan::machine capacities;
  capacities.device_capacity = device_account.capacity();
  capacities.host_capacity = host_account.capacity() - sched->staging_chunks() * options.chunk;
  capacities.storage.resize(store == nullptr ? 0 : store->path_count());
  outlook = detail::forecast(l.trace, capacities);
  expected = {};
  forget_plan(l);
  remember_plan();
}

tier_bytes engine::minimum_capacity(const order& steps, const std::vector<recomputation>& again) const {
  const std::scoped_lock setup(impl_->setup_mutex);
  impl_->check_tensors(steps);
  impl_->check_recomputations(steps, again);
  const detail::recomputed_order everything =
      impl_->with_recomputations(steps, again, std::vector<bool>(again.size(), true));
  const bool all = impl_->options.recompute == recompute_policy::all;
  return impl_->needs_of(impl_->lay_out(all ? everything.steps : steps, everything.steps));
}

void engine::set_order(order steps, std::vector<recomputation> again) {
  FOREBAY_EXPECTS(!impl_->iterating, "the order can't change during an iteration");
  FOREBAY_EXPECTS(!steps.steps().empty(), "an order needs at least one step");
  impl_->expect_idle();
  impl_->adopt(std::move(steps), std::move(again));
}

const order& engine::current_order() const { return impl_->current; }

}  // namespace forebay
