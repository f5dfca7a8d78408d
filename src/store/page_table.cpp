#include "store/page_table.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include <forebay/base/contract.hpp>
#include <forebay/base/error.hpp>

namespace forebay::store_detail {

page_table::page_table(std::vector<path_space> paths, byte_count chunk, byte_count unit)
    : paths_(std::move(paths)), chunk_(chunk), unit_(unit) {
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
  byte_count rest = align_up(bytes, unit_);
  if (rest > account_->capacity()) {
    throw capacity_error(
        fmt::format("the storage tier ({}{}) has a capacity of {} and {} are needed; raise the "
                    "capacity or add a path",
                    paths_.front().file.path().parent_path().string(),
                    paths_.size() > 1 ? fmt::format(" and {} more", paths_.size() - 1) : "",
                    format_bytes(account_->capacity()), format_bytes(rest)));
  }
  // Equal shares, as striping makes them; what the small paths cannot take goes to the larger ones.
  std::vector<std::size_t> by_capacity(paths_.size());
  std::iota(by_capacity.begin(), by_capacity.end(), std::size_t{0});
  std::sort(by_capacity.begin(), by_capacity.end(),
            [&](std::size_t a, std::size_t b) { return paths_[a].holes.capacity() < paths_[b].holes.capacity(); });
  std::size_t left = paths_.size();
  for (const std::size_t i : by_capacity) {
    path_space& path = paths_[i];
    const byte_count share = std::min(path.holes.capacity(), align_up(ceil_div(rest, left), unit_));
    if (share > path.preallocated) {
      path.file.preallocate(share);
      path.preallocated = share;
    }
    rest -= std::min(rest, share);
    --left;
  }
}

page_id page_table::allocate(byte_count bytes, std::string name) {
  FOREBAY_EXPECTS(bytes > 0, "a page has at least one byte");
  page_id id;
  page_entry& entry = fresh_entry(id);
  entry.name = std::move(name);
  entry.bytes = bytes;
  const auto count = static_cast<std::size_t>(ceil_div(bytes, chunk_));
  entry.chunks.assign(count, {});
  entry.sums.assign(count, 0);
  entry.states.assign(count, chunk_state::never_written);
  const byte_count padded = align_up(bytes, unit_);
  const bool counted = account_->try_reserve(padded);
  if (!counted || (!place_striped(entry) && !place_scattered(entry))) {
    std::string message = full_message(entry);
    if (counted) {
      account_->release(padded);
    }
    unused_.push_back(id.index);
    throw capacity_error(message);
  }
  try {
    preallocate_for(entry);
  } catch (...) {
    give_back(entry);
    account_->release(padded);
    unused_.push_back(id.index);
    throw;
  }
  entry.live = true;
  rotation_ += count;
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

bool page_table::place_striped(page_entry& entry) {
  std::vector<bool> too_full(paths_.size(), false);
  for (;;) {
    std::vector<std::uint32_t> stripe;
    for (std::uint32_t i = 0; i < paths_.size(); ++i) {
      const auto path = static_cast<std::uint32_t>((rotation_ + i) % paths_.size());
      if (!too_full[path]) {
        stripe.push_back(path);
      }
    }
    if (stripe.empty()) {
      return false;
    }
    if (place_on(entry, stripe, too_full)) {
      return true;
    }
  }
}

/// One contiguous extent per path of the stripe. On failure everything is given back and the full path is marked.
bool page_table::place_on(page_entry& entry, const std::vector<std::uint32_t>& stripe, std::vector<bool>& too_full) {
  std::vector<byte_count> shares(stripe.size(), 0);
  for (std::size_t i = 0; i < entry.chunks.size(); ++i) {
    shares[i % stripe.size()] += align_up(chunk_bytes(entry, i), unit_);
  }
  std::vector<byte_count> offsets(stripe.size(), 0);
  for (std::size_t k = 0; k < stripe.size() && shares[k] > 0; ++k) {
    const std::optional<extent> place = paths_[stripe[k]].holes.allocate(shares[k]);
    if (!place) {
      too_full[stripe[k]] = true;
      give_back(entry);
      return false;
    }
    entry.extents.push_back({stripe[k], *place});
    offsets[k] = place->offset;
  }
  for (std::size_t i = 0; i < entry.chunks.size(); ++i) {
    const std::size_t k = i % stripe.size();
    entry.chunks[i] = {stripe[k], offsets[k]};
    offsets[k] += align_up(chunk_bytes(entry, i), unit_);
  }
  return true;
}

/// The last resort: each chunk where there is room, the emptiest path first.
bool page_table::place_scattered(page_entry& entry) {
  for (std::size_t i = 0; i < entry.chunks.size(); ++i) {
    const byte_count bytes = align_up(chunk_bytes(entry, i), unit_);
    const auto roomiest = std::max_element(paths_.begin(), paths_.end(), [](const path_space& a, const path_space& b) {
      return a.holes.largest_hole() < b.holes.largest_hole();
    });
    const std::optional<extent> place = roomiest->holes.allocate(bytes);
    if (!place) {
      give_back(entry);
      return false;
    }
    const auto path = static_cast<std::uint32_t>(roomiest - paths_.begin());
    entry.extents.push_back({path, *place});
    entry.chunks[i] = {path, place->offset};
  }
  return true;
}

void page_table::give_back(page_entry& entry) {
  for (const path_extent& taken : entry.extents) {
    paths_[taken.path].holes.free(taken.place);
  }
  entry.extents.clear();
}

void page_table::preallocate_for(const page_entry& entry) {
  for (const path_extent& taken : entry.extents) {
    path_space& path = paths_[taken.path];
    if (taken.place.end() > path.preallocated) {
      path.file.preallocate(taken.place.end());
      path.preallocated = taken.place.end();
    }
  }
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

std::string page_table::full_message(const page_entry& entry) const {
  std::string message = fmt::format("the storage tier is full: page '{}' needs {} and {} of {} are free", entry.name,
                                    format_bytes(align_up(entry.bytes, unit_)), format_bytes(account_->free()),
                                    format_bytes(account_->capacity()));
  for (const path_space& path : paths_) {
    message += fmt::format("; {}: {} free of {}, largest hole {}", path.file.path().parent_path().string(),
                           format_bytes(path.holes.free_bytes()), format_bytes(path.holes.capacity()),
                           format_bytes(path.holes.largest_hole()));
  }
  return message;
}

}  // namespace forebay::store_detail
