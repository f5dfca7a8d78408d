#include "store/page_store_impl.hpp"

#include <atomic>
#include <cerrno>

#include <fmt/format.h>

#include <forebay/base/contract.hpp>
#include <forebay/base/error.hpp>

#include "store/checksum.hpp"

namespace forebay {
namespace {

using store_detail::chunk_state;

/// Whether nothing but what the caller has just done was left of the transfer.
bool is_last_part(page_transfer& t) noexcept {
  return std::atomic_ref(t.parts_left).fetch_sub(1, std::memory_order_acq_rel) == 1;
}

constexpr byte_count hash_in_place = 16_KiB;  // at most a microsecond: less than the hop to a worker

}  // namespace

bool page_store::impl::buffered(const page_transfer& t) const noexcept {
  return !table->paths()[t.path].file.layout().direct;
}

bool page_store::impl::checked(const page_transfer& t) const noexcept {
  return options.checksums && t.entry != nullptr;
}

byte_count page_store::impl::real_bytes(const page_transfer& t) const noexcept {
  return table->chunk_bytes(*t.entry, t.chunk);
}

void page_store::impl::submit(page_store& store, page_transfer& t) noexcept {
  // Once for the transfer, and once for this call, which may still run when the transfer has ended.
  FOREBAY_ASSERT(inside.enter(2));
  t.store = &store;
  if (timeline != nullptr) {
    t.submitted = std::chrono::steady_clock::now();
  }
  if (!prepare(t)) {
    t.unhashed = false;
    workers->post(t);  // completes on a thread of the store, never inside submit
  } else if (t.unhashed && buffered(t)) {
    workers->post(t);  // one queue at a time: the window's comes after the worker's
  } else if (t.unhashed) {
    // The memory stays as it is until the transfer is complete, so the drive and the checksum need not wait for each
    // other; the transfer is over when both are.
    t.parts_left = 2;
    start_io(t);
    workers->post(t);
  } else {
    start_io(t);
  }
  inside.leave();
}

/// Fills the operation in; false with a failure noted when there is no such chunk or nothing to read.
bool page_store::impl::prepare(page_transfer& t) noexcept {
  t.rereads = 0;
  t.rerouted = false;
  t.next = nullptr;
  t.outcome = {};
  t.failure = nullptr;
  const bool reads = t.kind == io::operation_kind::read;
  try {
    const std::scoped_lock lock(table_mutex);
    t.entry = nullptr;
    store_detail::page_entry& entry = table->chunk_at(t.page, t.chunk);
    if (reads && entry.chunks[t.chunk].state != chunk_state::written) {
      throw usage_error(fmt::format(
          "chunk {} of page '{}' is read, but {}", t.chunk, entry.name,
          entry.chunks[t.chunk].state == chunk_state::never_written ? "was never written" : "its last write failed"));
    }
    if (!reads && table->paths()[entry.chunks[t.chunk].place.path].retired) {
      static_cast<void>(table->move_chunk(entry, t.chunk));  // else where it is: the path may take it all the same
    }
    t.entry = &entry;
    entry.in_flight.fetch_add(1);
  } catch (...) {
    t.failure = std::current_exception();
    return false;
  }
  t.unhashed = !reads && checked(t);
  t.parts_left = 1;
  t.operation = {};
  t.operation.kind = t.kind;
  aim(t);
  t.operation.memory = t.memory;
  t.operation.bytes = align_up(real_bytes(t), table->unit());
  t.operation.alignment = table->unit();
  t.operation.urgency = t.urgency;
  t.operation.complete = &impl::io_completed;
  t.operation.context = &t;
  return true;
}

/// Points the operation at the chunk's place.
void page_store::impl::aim(page_transfer& t) noexcept {
  const store_detail::chunk_place place = t.entry->chunks[t.chunk].place;
  t.path = place.path;
  t.operation.file = table->paths()[place.path].file.descriptor();
  t.operation.offset = place.offset;
  // The cache makes one large folio of one large transfer, and drops no part of a folio: each goes alone there.
  t.operation.mergeable = !buffered(t);
}

std::uint64_t page_store::impl::checksum(const page_transfer& t) noexcept {
  const byte_count bytes = real_bytes(t);
  return hashing.measure(bytes, [&] { return store_detail::checksum_of(t.memory, bytes); });
}

void page_store::impl::work(page_transfer& t) noexcept {
  if (!t.unhashed) {
    conclude(t);
    return;
  }
  t.unhashed = false;
  t.entry->chunks[t.chunk].sum = checksum(t);
  if (buffered(t)) {
    start_io(t);
  } else if (is_last_part(t)) {
    conclude(t);
  }
}

void page_store::impl::start_io(page_transfer& t) noexcept {
  if (!buffered(t) || window.enter(t)) {
    give_to_backend(t);
  }
}

void page_store::impl::give_to_backend(page_transfer& t) noexcept {
  meters[t.path].begin(&std::chrono::steady_clock::now);
  backend->submit(t.operation);
}

void page_store::impl::take_from_backend(page_transfer& t) noexcept {
  meters[t.path].end(t.kind, t.outcome.bytes, &std::chrono::steady_clock::now);
}

void page_store::impl::leave_window(const page_transfer& t) noexcept {
  window.leave(t.operation.bytes, [this](page_transfer& waiting) { give_to_backend(waiting); });
}

void page_store::impl::io_completed(io::operation& op, io::result outcome) noexcept {
  auto& t = *static_cast<page_transfer*>(op.context);
  impl& self = of(t);
  (op.kind == io::operation_kind::read ? self.bytes_read : self.bytes_written).fetch_add(outcome.bytes);
  t.outcome = outcome;
  if (!self.buffered(t)) {
    self.take_from_backend(t);
  }
  if (!is_last_part(t)) {
    return;  // its checksum is not done; who computes it concludes
  }
  if (self.needs_worker_after(t)) {
    self.workers->post(t);
  } else {
    self.conclude(t);
  }
}

bool page_store::impl::needs_worker_after(const page_transfer& t) const noexcept {
  const bool hashes = t.kind == io::operation_kind::read && checked(t) && real_bytes(t) > hash_in_place;
  return hashes || buffered(t) || t.outcome.error_number != 0 || t.outcome.bytes != t.operation.bytes;
}

/// After the I/O: drops the cache of a buffered file, verifies, reads once more on a mismatch, and completes.
void page_store::impl::conclude(page_transfer& t) noexcept {
  if (t.entry == nullptr) {
    finish(t);
    return;
  }
  const bool in_window = buffered(t);
  if (in_window) {
    const int failure = store_detail::drop_from_cache(t.operation);
    if (t.outcome.error_number == 0 && failure != 0) {
      t.outcome.error_number = failure;
    }
    take_from_backend(t);
  }
  const bool complete = t.outcome.error_number == 0 && t.outcome.bytes == t.operation.bytes;
  if (complete && t.kind == io::operation_kind::read && checked(t) && t.rereads == 0 &&
      checksum(t) != t.entry->chunks[t.chunk].sum) {
    ++t.rereads;  // the fault may lie in the transfer, not on the drive
    t.parts_left = 1;
    give_to_backend(t);
    return;
  }
  if (!complete && t.kind == io::operation_kind::write && go_elsewhere(t)) {
    return;
  }
  try {
    judge(t);
  } catch (...) {
    t.failure = std::current_exception();
  }
  if (t.kind == io::operation_kind::write) {
    t.entry->chunks[t.chunk].state = t.failure == nullptr ? chunk_state::written : chunk_state::write_failed;
  }
  if (in_window) {
    leave_window(t);
  }
  finish(t);
}

void page_store::impl::finish(page_transfer& t) noexcept {
  if (t.entry != nullptr) {
    if (timeline != nullptr) {
      record(t);
    }
    t.entry->in_flight.fetch_sub(1);
  }
  t.complete(t, std::move(t.failure));  // `t` may be gone from here on
  inside.leave();
}

void page_store::impl::record(const page_transfer& t) noexcept {
  const bool reads = t.kind == io::operation_kind::read;
  try {
    timeline->record_in_order({(reads ? read_lanes : write_lanes)[t.path], t.entry->name, t.submitted,
                               std::chrono::steady_clock::now(), t.outcome.bytes});
  } catch (...) {  // out of memory: the timeline is a service, the transfer is not
  }
}

}  // namespace forebay
