#include <forebay/engine/engine.hpp>

#include <algorithm>
#include <atomic>
#include <fstream>

#include <fmt/format.h>

#include <forebay/memory/host_limits.hpp>
#include <forebay/plan/minimum_capacity.hpp>

#include "engine/impl.hpp"

namespace forebay {
namespace {

// What the process needs beside the tiers: code, stacks, the caller's own data.
constexpr byte_count process_margin = 96_MiB;

// Memory set aside for huge pages, which no count of available memory contains.
byte_count idle_huge_pages() {
  std::ifstream in("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages");
  byte_count pages = 0;
  return in >> pages ? pages * 2_MiB : 0;
}

byte_count host_capacity_of(const host_options& o, const forebay::device& device) {
  const host_limit limit = available_host_memory();
  if (o.capacity != 0) {
    const byte_count available = limit.available + idle_huge_pages();
    if (o.capacity > available) {
      throw capacity_error(fmt::format("a host tier of {} B ({}) is more than this process can have: {} B ({}) by {}",
                                       o.capacity, format_bytes(o.capacity), available, format_bytes(available),
                                       limit.source));
    }
    return o.capacity;
  }
  // An emulated device's memory comes out of the same pool, and has hardly been touched yet.
  const byte_count taken =
      std::max(limit.available / 8, process_margin) + (device.host_addressable() ? device.arena().size() : 0);
  if (limit.available <= taken) {
    throw capacity_error(fmt::format("{} ({} B by {}) leaves nothing for a host tier beside the process and the device",
                                     format_bytes(limit.available), limit.available, limit.source));
  }
  return align_down(limit.available - taken, plan::block_alignment);
}

engine_options checked(engine_options o) {
  FOREBAY_EXPECTS(is_power_of_two(o.chunk) && o.chunk >= 4_KiB,
                  "options.chunk must be a power of two of at least 4 KiB");
  FOREBAY_EXPECTS(o.staging_chunks >= 1, "options.staging_chunks must be at least 1");
  FOREBAY_EXPECTS(o.stall_limit.count() > 0, "options.stall_limit must be positive");
  o.stall_limit = std::min<std::chrono::milliseconds>(o.stall_limit, std::chrono::hours(24 * 365));
  return o;
}

std::unique_ptr<forebay::device> checked(std::unique_ptr<forebay::device> device) {
  FOREBAY_EXPECTS(device != nullptr, "options.device is empty: give it a device, such as emulated_device(...)");
  return device;
}

std::unique_ptr<page_store> make_store(const engine_options& o) {
  if (o.storage.empty()) {
    return nullptr;
  }
  page_store_options s;
  s.paths = o.storage;
  s.chunk = o.chunk;
  s.checksums = o.checksums;
  s.direct = o.direct_io;
  s.io = o.io;
  return std::make_unique<page_store>(std::move(s), o.timeline);
}

std::uint32_t next_identity() {
  // Ids of one engine must not pass for another's; a process-wide count is the only way to tell them apart.
  static std::atomic<std::uint32_t> count{0};
  return ++count;
}

}  // namespace

// Life

engine::impl::impl(engine_options o)
    : device(checked(std::move(o.device))),
      options(checked(std::move(o))),
      host(host_capacity_of(options.host, *device), {options.host.huge_pages, &machine}),
      device_account("device", device->arena().size()),
      host_account("host", host.size()),
      store(make_store(options)),
      compute(device->make_stream(stream_kind::compute)),
      in_place_stream(device->make_stream(stream_kind::compute)),
      identity(next_identity()) {
  pin();
  try {
    start();
  } catch (...) {
    unpin();
    throw;
  }
}

void engine::impl::pin() {
  if (options.host.pin) {
    pinned = device->pin(host.memory());
    if (options.host.require_pinned && !pinned.refusal.empty()) {
      device->unpin(host.memory());
      throw capacity_error(pinned.refusal);
    }
  }
}

void engine::impl::unpin() noexcept {
  if (options.host.pin) {
    device->unpin(host.memory());
  }
}

void engine::impl::start() {
  // Registering takes all the pages at once: right for a tier whose size somebody chose, not for all that a machine
  // has.
  if (store != nullptr && options.host.capacity != 0) {
    store->register_memory(host.memory());
  }
  detail::scheduler::parts p;
  p.on = device.get();
  p.store = store.get();
  p.host = host.memory();
  p.device_account = &device_account;
  p.host_account = &host_account;
  p.granularity = home_padding(1);
  p.chunk = options.chunk;
  p.prefetch = options.prefetch;
  p.poison = options.poison_freed_memory;
  p.stall_limit = options.stall_limit;
  p.timeline = options.timeline;
  sched = std::make_unique<detail::scheduler>(p);
  if (store != nullptr) {
    sched->add_staging(1);
    if (sched->staging_chunks() == 0) {
      throw capacity_error(
          fmt::format("the host tier of {} B has no room for one transfer chunk of {} B", host.size(), options.chunk));
    }
  }
}

engine::impl::~impl() {
  try {
    sched->join();
  } catch (...) {  // a failed stream: its work is over all the same
  }
  sched.reset();
  store.reset();
  unpin();
}

engine::engine(engine_options options) : impl_(std::make_unique<impl>(std::move(options))) {}
engine::~engine() = default;

// Tensors

namespace {

// Above this no sum of sizes is at risk of 64 bits, and no machine has it.
constexpr byte_count largest_tensor = byte_count{1} << 56U;

void check_size(const tensor_spec& spec) {
  byte_count bytes = size_of(spec.type);
  for (const std::uint64_t extent : spec.shape) {
    if (extent != 0 && bytes > largest_tensor / extent) {
      throw usage_error(
          fmt::format("tensor '{}' is larger than {}: is its shape right?", spec.name, format_bytes(largest_tensor)));
    }
    bytes *= extent;
  }
}

}  // namespace

tensor_id engine::add(tensor_spec spec) {
  FOREBAY_EXPECTS(!spec.name.empty(), "a tensor needs a name");
  check_size(spec);
  const std::scoped_lock setup(impl_->setup_mutex);
  if (spec.bytes() == 0) {
    throw usage_error(
        fmt::format("tensor '{}' has no elements: every extent of its shape must be positive", spec.name));
  }
  const auto index = static_cast<std::uint32_t>(impl_->specs.size());
  if (!impl_->by_name.emplace(spec.name, index).second) {
    throw usage_error(fmt::format("a tensor named '{}' is registered already", spec.name));
  }
  {
    const std::scoped_lock lock(impl_->sched->mutex());
    tensor_record& t = impl_->sched->add_tensor();
    t.name = spec.name;
    t.bytes = spec.bytes();
  }
  impl_->specs.push_back(std::move(spec));
  return {index, impl_->identity};
}

const tensor_spec& engine::impl::spec_of(tensor_id tensor) const {
  const std::scoped_lock setup(setup_mutex);
  FOREBAY_EXPECTS(tensor.valid() && tensor.generation == identity && tensor.index < specs.size(),
                  "the tensor id is not of this engine");
  return specs[tensor.index];
}

const tensor_spec& engine::spec(tensor_id tensor) const { return impl_->spec_of(tensor); }

std::vector<tensor_id> engine::tensors() const {
  std::vector<tensor_id> all;
  for (std::uint32_t i = 0; i < impl_->specs.size(); ++i) {
    all.push_back({i, impl_->identity});
  }
  return all;
}

// The order

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

detail::layout engine::impl::lay_out(const order& steps) {
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
  l.fresh = plan::pack(loose, steps, options.packed_block_bytes);
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

void engine::impl::adopt(order steps) {
  const std::scoped_lock setup(setup_mutex);
  const detail::layout l = lay_out(steps);
  check_capacity(l, steps);
  if (store != nullptr) {
    byte_count home = 0;
    for (const byte_count bytes : l.trace.item_bytes) {
      home += store->padded_bytes(bytes);
    }
    home_bytes = std::max(home_bytes, home);
    store->reserve(home_bytes + striping_slack());
  }
  add_blocks(l.fresh);
  std::vector<detail::step_plan> plans;
  for (std::uint32_t i = 0; i < steps.steps().size(); ++i) {
    plans.push_back(plan_step(steps.steps()[i], l, i));
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
  current = std::move(steps);
  has_order = true;
  plan::machine capacities;
  capacities.device_capacity = device_account.capacity();
  capacities.host_capacity = host_account.capacity() - sched->staging_chunks() * options.chunk;
  capacities.storage.resize(store == nullptr ? 0 : store->path_count());
  outlook = detail::forecast(l.trace, capacities);
  expected = {};
}

tier_bytes engine::minimum_capacity(const order& steps) const { return impl_->needs_of(impl_->lay_out(steps)); }

void engine::set_order(order steps) {
  FOREBAY_EXPECTS(!impl_->iterating, "the order can't change during an iteration");
  FOREBAY_EXPECTS(!steps.steps().empty(), "an order needs at least one step");
  impl_->expect_idle();
  impl_->adopt(std::move(steps));
}

const order& engine::current_order() const { return impl_->current; }

// Views

stream& engine::compute_stream() { return *impl_->compute; }
forebay::device& engine::device() { return *impl_->device; }
telemetry::timeline* engine::timeline() const { return impl_->options.timeline; }

tier_bytes engine::capacity() const {
  return {impl_->device_account.capacity(), impl_->host_account.capacity(),
          impl_->store == nullptr ? 0 : impl_->store->capacity()};
}

tier_bytes engine::used() const {
  return {impl_->device_account.used(), impl_->host_account.used(), impl_->store == nullptr ? 0 : impl_->store->used()};
}

tier_bytes engine::peak() const {
  return {impl_->device_account.peak(), impl_->host_account.peak(), impl_->store == nullptr ? 0 : impl_->store->peak()};
}

engine_report engine::report() const {
  engine_report r;
  r.device = impl_->device->name();
  r.io_backend = impl_->store == nullptr ? "none" : impl_->store->backend_name();
  r.capacity = capacity();
  r.used = used();
  r.peak = peak();
  r.pinned_bytes = impl_->pinned.pinned_bytes;
  const auto append = [&](const std::vector<std::string>& more) {
    r.degradations.insert(r.degradations.end(), more.begin(), more.end());
  };
  append(impl_->host.degradations());
  if (!impl_->pinned.refusal.empty()) {
    r.degradations.push_back(impl_->pinned.refusal);
  }
  if (impl_->store != nullptr) {
    append(impl_->store->degradations());
  }
  return r;
}

}  // namespace forebay
