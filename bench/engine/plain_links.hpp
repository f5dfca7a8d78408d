#pragma once

// The links' rates by plain loops, both directions at once: what the rated links and their pacing really give.

#include <filesystem>
#include <future>
#include <vector>

#include <forebay/memory/host_arena.hpp>
#include <forebay/store/page_store.hpp>

#include "layered_model.hpp"

namespace forebay::bench {

inline double seconds_since(time_point start) { return to_seconds(std::chrono::steady_clock::now() - start); }

// Both directions of the device link at once, plain copies.
inline double measured_link_rate(const regime& r) {
  const auto device = emulated_device(
      {.capacity = 2 * block, .h2d_bytes_per_second = r.link_rate, .d2h_bytes_per_second = r.link_rate});
  std::vector<std::byte> host(2 * block);
  const auto down = device->make_stream(stream_kind::host_to_device);
  const auto up = device->make_stream(stream_kind::device_to_host);
  constexpr int rounds = 24;
  const time_point start = std::chrono::steady_clock::now();
  for (int i = 0; i < rounds; ++i) {
    down->copy(device->arena().data(), host.data(), block, copy_direction::host_to_device);
    up->copy(host.data() + block, device->arena().data() + block, block, copy_direction::device_to_host);
  }
  down->synchronize();
  up->synchronize();
  return static_cast<double>(rounds * block) / seconds_since(start);
}

struct waited_transfer : page_transfer {
  std::promise<void> done;
  void run(page_store& into, io::operation_kind what, page_id p, std::uint64_t c, std::byte* at) {
    kind = what;
    page = p;
    chunk = c;
    memory = at;
    owner = this;
    complete = [](page_transfer& self, std::exception_ptr) noexcept {
      static_cast<waited_transfer&>(self).done.set_value();
    };
    into.submit(*this);
  }
};

// Reads and writes of the storage path at once, chunk by chunk, everything in flight.
inline double measured_storage_rate(const regime& r, const std::filesystem::path& directory) {
  page_store_options o;
  o.paths.push_back({directory, 0, r.storage_rate, r.storage_rate});
  page_store store(o);
  const byte_count bytes = 4 * block;
  store.reserve(2 * bytes);
  const page_id from = store.allocate(bytes, "from");
  const page_id to = store.allocate(bytes, "to");
  host_arena memory(2 * bytes);
  const std::uint64_t chunks = store.chunk_count(from);
  const auto move_all = [&](bool both) {
    std::vector<waited_transfer> transfers(2 * chunks);
    for (std::uint64_t c = 0; c < chunks; ++c) {
      std::byte* at = memory.memory().data() + c * store.chunk_bytes();
      transfers[2 * c].run(store, both ? io::operation_kind::read : io::operation_kind::write, from, c, at);
      transfers[2 * c + 1].run(store, io::operation_kind::write, to, c, at + bytes);
    }
    for (waited_transfer& t : transfers) {
      t.done.get_future().wait();
    }
  };
  move_all(false);
  const time_point start = std::chrono::steady_clock::now();
  constexpr int rounds = 3;
  for (int i = 0; i < rounds; ++i) {
    move_all(true);
  }
  return static_cast<double>(rounds * bytes) / seconds_since(start);
}

}  // namespace forebay::bench
