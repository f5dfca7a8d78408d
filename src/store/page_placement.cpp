// Which path takes which chunk, and at which offset.
#include <algorithm>

#include <forebay/base/contract.hpp>
#include <forebay/base/error.hpp>

#include "store/page_table.hpp"

namespace forebay::store_detail {
namespace {

constexpr byte_count growth_step = 16_MiB;

}  // namespace

/// Calls `visit(path, extent)` for each run of chunks that lie side by side.
template <typename Visit>
void page_table::for_each_run(const page_entry& entry, Visit&& visit) const {
  std::vector<extent> runs(paths_.size());
  for (std::size_t i = 0; i < entry.chunks.size(); ++i) {
    const chunk_place& at = entry.chunks[i].place;
    if (at.offset == nowhere) {
      continue;
    }
    extent& run = runs[at.path];
    if (run.bytes > 0 && run.end() == at.offset) {
      run.bytes += padded_chunk(entry, i);
      continue;
    }
    if (run.bytes > 0) {
      visit(at.path, run);
    }
    run = {at.offset, padded_chunk(entry, i)};
  }
  for (std::uint32_t path = 0; path < runs.size(); ++path) {
    if (runs[path].bytes > 0) {
      visit(path, runs[path]);
    }
  }
}

void page_table::give_back(page_entry& entry) {
  for_each_run(entry, [this](std::uint32_t path, extent run) { paths_[path].holes.free(run); });
  for (chunk_record& chunk : entry.chunks) {
    chunk.place = {};
  }
}

/// Undoes `give_back`: nobody has taken anything since.
void page_table::take_again(page_entry& entry, const std::vector<chunk_record>& chunks) {
  entry.chunks = chunks;
  for_each_run(entry, [this](std::uint32_t path, extent run) {
    const bool taken = paths_[path].holes.allocate_at(run);
    FOREBAY_ASSERT(taken);
  });
}

std::vector<byte_count> page_table::pieces(const page_entry& entry) const {
  std::vector<byte_count> result;
  result.reserve(entry.chunks.size());
  for (std::size_t i = 0; i < entry.chunks.size(); ++i) {
    result.push_back(padded_chunk(entry, i));
  }
  return result;
}

std::vector<byte_count> page_table::bytes_on_paths(const page_entry& entry) const {
  std::vector<byte_count> result(paths_.size(), 0);
  for (std::size_t i = 0; i < entry.chunks.size(); ++i) {
    result[entry.chunks[i].place.path] += padded_chunk(entry, i);
  }
  return result;
}

page_table::path_set page_table::writable() const {
  path_set open;
  for (const path_space& path : paths_) {
    open.push_back(!path.retired);
  }
  return open;
}

/// What the run will have on these paths, in bytes.
byte_count page_table::expected_on(const path_set& open) const {
  byte_count elsewhere = 0;
  for (std::size_t i = 0; i < paths_.size(); ++i) {
    elsewhere += open[i] ? 0 : paths_[i].used();
  }
  const byte_count all = std::max(reserved_, account_->used());
  return all - std::min(all, elsewhere);
}

std::vector<double> page_table::shares_among(const path_set& open) const {
  std::vector<double> weights = weights_.values();
  std::vector<byte_count> capacities;
  for (std::size_t i = 0; i < paths_.size(); ++i) {
    weights[i] = open[i] ? weights[i] : 0.0;
    capacities.push_back(paths_[i].holes.capacity());
  }
  return bounded_shares(weights, capacities, expected_on(open));
}

std::vector<double> page_table::shares() const { return shares_among(writable()); }

/// \throws capacity_error when the page fits nowhere; the entry is as before then.
void page_table::place(page_entry& entry) {
  refusal_ = nullptr;
  if (place_by_shares(entry) || place_scattered(entry)) {
    return;
  }
  if (refusal_ != nullptr) {
    std::rethrow_exception(std::exchange(refusal_, nullptr));
  }
  throw capacity_error(full_message(entry, account_->free() + align_up(entry.bytes, unit_)));  // it is counted already
}

/// Dealt among all paths that take writes; without those that turn out to be full, again.
bool page_table::place_by_shares(page_entry& entry) {
  path_set open = writable();
  const std::vector<byte_count> sizes = pieces(entry);
  for (;;) {
    const std::vector<double> part = shares_among(open);
    if (std::none_of(part.begin(), part.end(), [](double share) { return share > 0; })) {
      return false;
    }
    std::uint32_t failed = 0;
    if (place_as(entry, dealer_.deal(sizes, part), failed)) {
      dealer_.note(bytes_on_paths(entry), part);
      return true;
    }
    open[failed] = false;
  }
}

/// The last resort: each chunk where there is room, the emptiest path first.
bool page_table::place_scattered(page_entry& entry) {
  path_set open = writable();
  for (std::size_t i = 0; i < entry.chunks.size();) {
    std::size_t roomiest = paths_.size();
    for (std::size_t p = 0; p < paths_.size(); ++p) {
      const bool more_room =
          roomiest == paths_.size() || paths_[p].holes.largest_hole() > paths_[roomiest].holes.largest_hole();
      roomiest = open[p] && more_room ? p : roomiest;
    }
    if (roomiest == paths_.size()) {
      give_back(entry);
      return false;
    }
    const auto path = static_cast<std::uint32_t>(roomiest);
    if (const std::optional<extent> taken = take(path, padded_chunk(entry, i))) {
      entry.chunks[i++].place = {path, taken->offset};
    } else {
      open[roomiest] = false;
    }
  }
  return true;
}

/// Chunk i on path `wanted[i]`. False: everything is given back, and `failed` had no room.
bool page_table::place_as(page_entry& entry, const std::vector<std::uint32_t>& wanted, std::uint32_t& failed) {
  for (std::uint32_t path = 0; path < paths_.size(); ++path) {
    if (!place_on(entry, wanted, path)) {
      give_back(entry);
      failed = path;
      return false;
    }
  }
  return true;
}

/// A path's chunks of a page, side by side where there is such a hole.
bool page_table::place_on(page_entry& entry, const std::vector<std::uint32_t>& wanted, std::uint32_t path) {
  byte_count share = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    share += wanted[i] == path ? padded_chunk(entry, i) : 0;
  }
  if (share == 0) {
    return true;
  }
  if (share > paths_[path].holes.free_bytes()) {
    return false;
  }
  const std::optional<extent> whole = take(path, share);
  byte_count offset = whole ? whole->offset : 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] != path) {
      continue;
    }
    if (!whole) {
      const std::optional<extent> single = take(path, padded_chunk(entry, i));
      if (!single) {
        return false;
      }
      offset = single->offset;
    }
    entry.chunks[i].place = {path, offset};
    offset += padded_chunk(entry, i);
  }
  return true;
}

/// Room in a path's account and on its disk.
std::optional<extent> page_table::take(std::uint32_t path, byte_count bytes) {
  std::optional<extent> found = paths_[path].holes.allocate(bytes);
  if (!found || found->end() <= paths_[path].preallocated) {
    return found;
  }
  // A path whose share has grown will take more pages: not one call of the file system for each.
  const byte_count step = reserved_ > 0 ? growth_step : 0;
  const byte_count generous = std::min(paths_[path].holes.capacity(), paths_[path].preallocated + step);
  const std::exception_ptr refused_before = refusal_;
  if (generous > found->end() && has_disk_space(path, generous)) {
    return found;
  }
  refusal_ = refused_before;
  if (!has_disk_space(path, found->end())) {
    paths_[path].holes.free(*found);
    found.reset();
  }
  return found;
}

/// Makes sure that the path's file has its blocks up to `end`; a refusal is kept for the error that may follow.
bool page_table::has_disk_space(std::uint32_t path, byte_count end) {
  path_space& space = paths_[path];
  if (end <= space.preallocated) {
    return true;
  }
  try {
    space.file.preallocate(end);
    space.preallocated = end;
    return true;
  } catch (const error&) {
    refusal_ = refusal_ == nullptr ? std::current_exception() : refusal_;
    return false;
  }
}

}  // namespace forebay::store_detail
