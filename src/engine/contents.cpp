// engine.write, engine.read and engine.zero: contents outside of steps, streamed.
#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <mutex>

#include <fmt/format.h>

#include "engine/impl.hpp"

namespace forebay {
namespace {

/// One chunk to or from storage, waited for.
class chunk_transfer {
 public:
  void run(page_store& store, io::operation_kind kind, page_id page, std::uint64_t chunk, std::byte* memory) {
    transfer_.kind = kind;
    transfer_.page = page;
    transfer_.chunk = chunk;
    transfer_.memory = memory;
    transfer_.owner = this;
    transfer_.complete = [](page_transfer& t, std::exception_ptr failure) noexcept {
      auto& self = *static_cast<chunk_transfer*>(t.owner);
      const std::scoped_lock lock(self.mutex_);
      self.failure_ = std::move(failure);
      self.done_ = true;
      self.ended_.notify_one();
    };
    done_ = false;
    store.submit(transfer_);
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [this] { return done_; });
    if (failure_ != nullptr) {
      std::rethrow_exception(failure_);
    }
  }

 private:
  page_transfer transfer_;
  std::mutex mutex_;
  std::condition_variable ended_;
  std::exception_ptr failure_;
  bool done_ = false;
};

/// Ends the exclusive access on every way out.
class access_guard {
 public:
  access_guard(detail::scheduler& s, std::uint32_t block, bool writes)
      : sched_(s), block_(block), access_(s.begin_in_place(block, writes)) {}
  ~access_guard() { sched_.end_in_place(block_, access_, wrote_); }
  access_guard(const access_guard&) = delete;
  access_guard& operator=(const access_guard&) = delete;

  [[nodiscard]] const detail::in_place_access& operator*() const { return access_; }
  void wrote() { wrote_ = true; }

 private:
  detail::scheduler& sched_;
  std::uint32_t block_;
  detail::in_place_access access_;
  bool wrote_ = false;
};

}  // namespace

void engine::impl::copy_on_device(std::byte* to, const std::byte* from, byte_count bytes, copy_direction direction) {
  in_place_stream->copy(to, from, bytes, direction);
  in_place_stream->synchronize();
}

void engine::impl::write_to_storage(std::uint32_t block, const detail::in_place_access& access,
                                    std::span<const std::byte> contents, byte_count offset) {
  const bool stored = access.where == detail::in_place_access::source::storage;
  byte_count block_bytes = 0;
  {
    const std::scoped_lock lock(sched->mutex());
    block_bytes = sched->block(block).bytes;
  }
  chunk_transfer transfer;
  const byte_count chunk = options.chunk;
  for (byte_count start = 0; start < block_bytes; start += chunk) {
    const byte_count from = std::max(start, offset);
    const byte_count to = std::min({start + chunk, block_bytes, offset + contents.size()});
    if (from >= to && stored) {
      continue;
    }
    if (stored) {
      transfer.run(*store, io::operation_kind::read, access.page, start / chunk, access.staging);
    } else {
      std::memset(access.staging, 0, chunk);  // a block that held nothing: its other tensors read as zero
    }
    if (from < to) {
      std::memcpy(access.staging + (from - start), contents.data() + (from - offset), to - from);
    }
    transfer.run(*store, io::operation_kind::write, access.page, start / chunk, access.staging);
  }
}

void engine::impl::read_from_storage(const detail::in_place_access& access, std::span<std::byte> contents,
                                     byte_count offset) {
  chunk_transfer transfer;
  const byte_count chunk = options.chunk;
  byte_count done = 0;
  while (done < contents.size()) {
    const byte_count at = offset + done;
    const byte_count inside = at % chunk;
    const byte_count n = std::min<byte_count>(chunk - inside, contents.size() - done);
    transfer.run(*store, io::operation_kind::read, access.page, at / chunk, access.staging);
    std::memcpy(contents.data() + done, access.staging + inside, n);
    done += n;
  }
}

void engine::impl::copy_in(tensor_id tensor, std::span<const std::byte> contents, byte_count offset) {
  materialise(tensor);
  tensor_record t;
  {
    const std::scoped_lock lock(sched->mutex());
    t = sched->tensor(tensor.index);
  }
  access_guard guard(*sched, t.block, true);
  const detail::in_place_access& access = *guard;
  const byte_count at = t.offset + offset;
  if (access.where == detail::in_place_access::source::host) {
    std::memcpy(access.memory + at, contents.data(), contents.size());
  } else if (access.where == detail::in_place_access::source::device) {
    copy_on_device(access.memory + at, contents.data(), contents.size(), copy_direction::host_to_device);
  } else {
    write_to_storage(t.block, access, contents, at);
  }
  guard.wrote();
  const std::scoped_lock lock(sched->mutex());
  sched->mark_initialised(tensor.index);
}

void engine::impl::copy_out(tensor_id tensor, std::span<std::byte> contents, byte_count offset) {
  tensor_record t;
  {
    const std::scoped_lock lock(sched->mutex());
    t = sched->tensor(tensor.index);
  }
  if (!t.initialised) {
    throw usage_error(fmt::format("tensor '{}' holds nothing that could be read", t.name));
  }
  const access_guard guard(*sched, t.block, false);
  const detail::in_place_access& access = *guard;
  const byte_count at = t.offset + offset;
  switch (access.where) {
    case detail::in_place_access::source::host:
      std::memcpy(contents.data(), access.memory + at, contents.size());
      break;
    case detail::in_place_access::source::device:
      copy_on_device(contents.data(), access.memory + at, contents.size(), copy_direction::device_to_host);
      break;
    case detail::in_place_access::source::storage:
      read_from_storage(access, contents, at);
      break;
    case detail::in_place_access::source::zero:
    case detail::in_place_access::source::nothing:
      std::memset(contents.data(), 0, contents.size());
      break;
  }
}

namespace {

void check_range(const tensor_spec& spec, byte_count offset, byte_count bytes) {
  if (offset > spec.bytes() || bytes > spec.bytes() - offset) {
    throw usage_error(
        fmt::format("bytes [{}, {}) are outside tensor '{}' of {} B", offset, offset + bytes, spec.name, spec.bytes()));
  }
}

}  // namespace

void engine::write(tensor_id tensor, std::span<const std::byte> contents, byte_count offset) {
  check_range(spec(tensor), offset, contents.size());
  impl_->copy_in(tensor, contents, offset);
}

void engine::read(tensor_id tensor, std::span<std::byte> contents, byte_count offset) {
  check_range(spec(tensor), offset, contents.size());
  impl_->copy_out(tensor, contents, offset);
}

void engine::zero(tensor_id tensor) {
  const byte_count bytes = spec(tensor).bytes();
  impl_->materialise(tensor);
  std::uint32_t block = no_block;
  {
    const std::scoped_lock lock(impl_->sched->mutex());
    block = impl_->sched->tensor(tensor.index).block;
  }
  if (impl_->sched->zero_block(block, tensor.index)) {
    return;
  }
  const std::vector<std::byte> zeros(std::min<byte_count>(bytes, 64_KiB));
  for (byte_count done = 0; done < bytes; done += zeros.size()) {
    impl_->copy_in(tensor, std::span(zeros).first(std::min<byte_count>(zeros.size(), bytes - done)), done);
  }
}

}  // namespace forebay
