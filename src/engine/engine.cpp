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
  FOREBAY_EXPECTS(o.planning_effort >= 0.0 && o.planning_effort <= 1000.0,
                  "options.planning_effort must be from 0 to 1000");
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
  r.host_pages = impl_->host.describe();
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
    const storage_tuning tuning = impl_->store->tuning();
    r.storage_depth = tuning.depth;
    r.storage_transfer_bytes = tuning.merge;
    r.storage_paths = impl_->store->measured_rates();
    r.checksum_seconds = impl_->store->checksum_seconds();
    append(impl_->store->degradations());
  }
  return r;
}

}  // namespace forebay
