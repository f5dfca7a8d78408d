#include "store/page_table.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <forebay/base/contract.hpp>
#include <forebay/base/error.hpp>

namespace forebay::store_detail {

page_table::page_table(std::vector<path_space> paths, byte_count chunk, byte_count unit, std::vector<double> weights)
    : paths_(std::move(paths)),
      chunk_(chunk),
      unit_(unit),
      weights_(std::move(weights)),
      dealer_(paths_.size(), chunk, unit) {
  byte_count total = 0;
  for (const path_space& path : paths_) {
    total += path.holes.capacity();
  }
  account_ = std::make_unique<ledger>("storage", total);
}

page_table::~page_table() {
  for (const auto& entry : entries_) {
    if (entry->live) {
      account_->release(align_up(entry->bytes, unit_));
    }
  }
}

void page_table::reserve(byte_count bytes) {
  const byte_count need = align_up(bytes, unit_);
  byte_count room = 0;
  for (const path_space& path : paths_) {
    room += path.retired ? path.used() : path.holes.capacity();
  }
  if (need > room) {
    throw capacity_error(
        fmt::format("the storage tier has room for {} and {} are needed; raise the capacity or add a path{}",
                    format_bytes(room), format_bytes(need), describe_paths()));
  }
  const byte_count before = std::exchange(reserved_, std::max(reserved_, need));
  // Preallocated is enough for the need, no more: where the weights have changed since, each path's lack gets its part.
  byte_count have = 0;
  byte_count lack = 0;
  const std::vector<double> part = shares();
  const auto movable = static_cast<double>(expected_on(writable()));
  std::vector<byte_count> wanted(paths_.size(), 0);
  for (std::size_t i = 0; i < paths_.size(); ++i) {
    const path_space& path = paths_[i];
    have += path.retired ? path.used() : path.preallocated;
    if (!path.retired) {
      const auto share = align_up(static_cast<byte_count>(std::ceil(part[i] * movable)), unit_);
      wanted[i] = std::max(std::min(share, path.holes.capacity()), path.preallocated) - path.preallocated;
      lack += wanted[i];
    }
  }
  if (have >= need) {
    return;
  }
  const double scale = std::min(1.0, static_cast<double>(need - have) / static_cast<double>(std::max(lack, unit_)));
  for (byte_count& more : wanted) {
    more = align_up(static_cast<byte_count>(std::ceil(static_cast<double>(more) * scale)), unit_);
  }
  try {
    preallocate_shares(wanted, need - have);
  } catch (...) {
    reserved_ = before;
    throw;
  }
}

/// Extends the files by about `wanted` each. What one disk refuses goes to the others, as far as they have it.
/// \throws the first refusal when `missing` bytes in all could not be had.
void page_table::preallocate_shares(const std::vector<byte_count>& wanted, byte_count missing) {
  refusal_ = nullptr;
  for (std::size_t i = 0; i < paths_.size(); ++i) {
    const auto path = static_cast<std::uint32_t>(i);
    const byte_count more = std::min(wanted[i], paths_[i].holes.capacity() - paths_[i].preallocated);
    if (more > 0 && has_disk_space(path, paths_[i].preallocated + more)) {
      missing -= std::min(missing, more);
    }
  }
  for (std::size_t i = 0; i < paths_.size() && missing > 0 && refusal_ != nullptr; ++i) {
    const auto path = static_cast<std::uint32_t>(i);
    const byte_count room = paths_[i].retired ? 0 : paths_[i].holes.capacity() - paths_[i].preallocated;
    const byte_count more = std::min(room, align_up(missing, unit_));
    if (more > 0 && has_disk_space(path, paths_[i].preallocated + more)) {
      missing -= std::min(missing, more);
    }
  }
  if (missing > 0 && refusal_ != nullptr) {
    std::rethrow_exception(std::exchange(refusal_, nullptr));
  }
}

page_id page_table::allocate(byte_count bytes, std::string name) {
  FOREBAY_EXPECTS(bytes > 0, "a page has at least one byte");
  page_id id;
  page_entry& entry = fresh_entry(id);
  entry.name = std::move(name);
  entry.bytes = bytes;
  const auto count = static_cast<std::size_t>(ceil_div(bytes, chunk_));
  const byte_count padded = align_up(bytes, unit_);
  bool counted = false;
  try {
    entry.chunks.assign(count, {});
    counted = account_->try_reserve(padded);
    if (!counted) {
      throw capacity_error(full_message(entry, account_->free()));
    }
    place(entry);
  } catch (...) {
    if (counted) {
      account_->release(padded);
    }
    unused_.push_back(id.index);
    throw;
  }
  entry.live = true;
  return id;
}

page_entry& page_table::fresh_entry(page_id& id) {
  if (unused_.empty()) {
    entries_.push_back(std::make_unique<page_entry>());
    unused_.reserve(entries_.size());  // so that giving an index back never throws
    id.index = static_cast<std::uint32_t>(entries_.size() - 1);
  } else {
    id.index = unused_.back();
    unused_.pop_back();
  }
  page_entry& entry = *entries_[id.index];
  id.generation = ++entry.generation;
  return entry;
}

void page_table::free(page_id page) {
  page_entry& entry = at(page);
  FOREBAY_EXPECTS(entry.in_flight.load() == 0, "a page with transfers in flight cannot be freed");
  give_back(entry);
  account_->release(align_up(entry.bytes, unit_));
  entry.live = false;
  unused_.push_back(page.index);
}

page_entry* page_table::find(page_id page) noexcept {
  if (page.index >= entries_.size()) {
    return nullptr;
  }
  page_entry* entry = entries_[page.index].get();
  return entry->live && entry->generation == page.generation ? entry : nullptr;
}

page_entry& page_table::at(page_id page) {
  page_entry* entry = find(page);
  if (entry == nullptr) {
    throw usage_error(fmt::format("page {}.{} does not exist (any more)", page.index, page.generation));
  }
  return *entry;
}

page_entry& page_table::chunk_at(page_id page, std::uint64_t chunk) {
  page_entry& entry = at(page);
  if (chunk >= entry.chunks.size()) {
    throw usage_error(fmt::format("page '{}' has {} chunks, and no chunk {}", entry.name, entry.chunks.size(), chunk));
  }
  return entry;
}

byte_count page_table::chunk_bytes(const page_entry& entry, std::uint64_t chunk) const noexcept {
  return std::min(chunk_, entry.bytes - chunk * chunk_);
}

byte_count page_table::padded_chunk(const page_entry& entry, std::uint64_t chunk) const noexcept {
  return align_up(chunk_bytes(entry, chunk), unit_);
}

std::string page_table::full_message(const page_entry& entry, byte_count free) const {
  return fmt::format("the storage tier is full: page '{}' needs {} and {} of {} are free{}", entry.name,
                     format_bytes(align_up(entry.bytes, unit_)), format_bytes(free), format_bytes(account_->capacity()),
                     describe_paths());
}

std::string page_table::describe_paths() const {
  std::string text;
  for (const path_space& path : paths_) {
    text += fmt::format("; {}: {} free of {}, largest hole {}{}", path.directory(),
                        format_bytes(path.holes.free_bytes()), format_bytes(path.holes.capacity()),
                        format_bytes(path.holes.largest_hole()), path.retired ? ", retired for writing" : "");
  }
  return text;
}

}  // namespace forebay::store_detail
