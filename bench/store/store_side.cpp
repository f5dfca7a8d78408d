#include "store_side.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace forebay::store_bench {
namespace {

page_store_options options_of(const settings& s) {
  page_store_options o;
  for (const std::filesystem::path& path : s.paths) {
    o.paths.push_back({path});
  }
  o.chunk = s.chunk == 0 ? o.chunk : s.chunk;
  o.checksums = s.checksums;
  o.io.kind = s.io;
  o.io.depth = s.depth == 0 ? o.io.depth : s.depth;
  o.io.merge = s.merge == 0 ? o.io.merge : s.merge;
  return o;
}

}  // namespace

store_side::store_side(const settings& s, std::span<std::byte> memory)
    : memory_(memory), window_(s.window), store_(options_of(s)) {
  store_.register_memory(memory);
  store_.reserve(memory.size());
}

byte_count store_side::granule() const { return std::min(store_.chunk_bytes(), tensor_); }

void store_side::lay_out(byte_count total, byte_count tensor) {
  for (const page_id page : pages_) {
    store_.free(page);
  }
  pages_.clear();
  transfers_.clear();
  tensor_ = tensor;
  for (byte_count at = 0; at < total; at += tensor) {
    pages_.push_back(store_.allocate(tensor, fmt::format("tensor {}", at / tensor)));
    for (std::uint64_t c = 0; c < store_.chunk_count(pages_.back()); ++c) {
      page_transfer t;
      t.page = pages_.back();
      t.chunk = c;
      t.memory = memory_.data() + at + c * store_.chunk_bytes();
      t.owner = this;
      t.complete = &store_side::completed;
      transfers_.push_back(t);
    }
  }
}

void store_side::run(std::span<const piece> pieces) {
  const byte_count chunks_per_tensor = ceil_div(tensor_, store_.chunk_bytes());
  byte_count submitted = 0;
  for (const piece& p : pieces) {
    if (window_ != 0 && submitted + p.bytes > window_) {
      // Refilled a quarter at a time, so that the submitting thread does not wake for every transfer.
      flight_.wait_for(window_ - window_ / 4 - std::min(p.bytes, window_ - window_ / 4));
      submitted = flight_.level();
    }
    page_transfer& t = transfers_[p.offset / tensor_ * chunks_per_tensor + p.offset % tensor_ / store_.chunk_bytes()];
    t.kind = p.reads ? io::operation_kind::read : io::operation_kind::write;
    flight_.submitted(p.bytes);
    submitted += p.bytes;
    store_.submit(t);
  }
  flight_.wait_for(0);
  if (failure_ != nullptr) {
    std::rethrow_exception(std::exchange(failure_, nullptr));
  }
}

void store_side::completed(page_transfer& t, std::exception_ptr failure) noexcept {
  auto& self = *static_cast<store_side*>(t.owner);
  if (failure != nullptr) {
    const std::scoped_lock lock(self.failure_mutex_);
    self.failure_ = failure;
  }
  self.flight_.completed(std::min(self.tensor_ - t.chunk * self.store_.chunk_bytes(), self.store_.chunk_bytes()));
}

}  // namespace forebay::store_bench
