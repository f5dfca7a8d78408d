// Pages and chunks that change their places: renewed at a rewrite, or driven off a path that failed.
#include <algorithm>

#include <forebay/base/contract.hpp>

#include "store/page_table.hpp"

namespace forebay::store_detail {

/// Pages that move leave holes of odd sizes behind. True while whole chunks are left for twice what the run still has
/// to place: then that always finds its room.
bool page_table::leaves_room() const {
  const byte_count to_come = reserved_ - std::min(reserved_, account_->used());
  byte_count whole = 0;
  for (const path_space& path : paths_) {
    for (const auto& [offset, bytes] : path.holes.holes()) {
      whole += path.retired ? 0 : align_down(bytes, chunk_);
    }
  }
  return whole >= 2 * to_come;
}

bool page_table::renew(page_id page) {
  page_entry& entry = at(page);
  FOREBAY_EXPECTS(entry.in_flight.load() == 0, "a page with transfers in flight cannot be placed anew");
  if (std::all_of(entry.chunks.begin(), entry.chunks.end(),
                  [](const chunk_record& chunk) { return chunk.state == chunk_state::never_written; })) {
    return false;  // it has just been placed
  }
  const std::vector<byte_count> now = bytes_on_paths(entry);
  const std::vector<double> part = shares();
  bool on_retired = false;
  for (std::size_t i = 0; i < paths_.size(); ++i) {
    on_retired = on_retired || (paths_[i].retired && now[i] > 0);
  }
  const bool possible = std::any_of(part.begin(), part.end(), [](double share) { return share > 0; });
  if (!possible || (!on_retired && dealer_.fits(now, part))) {
    dealer_.note(now, part);
    return false;
  }
  const std::vector<std::uint32_t> wanted = dealer_.deal(pieces(entry), part);
  std::vector<byte_count> asked(paths_.size(), 0);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    asked[wanted[i]] += padded_chunk(entry, i);
  }
  if (asked == now || (!on_retired && !leaves_room())) {
    dealer_.note(now, part);
    return false;
  }
  const std::vector<chunk_record> old = entry.chunks;
  give_back(entry);
  std::uint32_t failed = 0;
  if (place_as(entry, wanted, failed)) {
    dealer_.note(bytes_on_paths(entry), part);
  } else if (!on_retired || (!place_by_shares(entry) && !place_scattered(entry))) {
    take_again(entry, old);
    dealer_.note(now, part);
    return false;
  }
  for (chunk_record& chunk : entry.chunks) {
    chunk.state = chunk_state::never_written;
  }
  return true;
}

bool page_table::retire(std::uint32_t path) {
  const auto others = std::count_if(paths_.begin(), paths_.end(), [](const path_space& p) { return !p.retired; }) - 1;
  if (paths_[path].retired || others < 1) {
    return false;
  }
  paths_[path].retired = true;
  return true;
}

bool page_table::move_chunk(page_entry& entry, std::uint64_t chunk) {
  const chunk_place old = entry.chunks[chunk].place;
  const byte_count bytes = padded_chunk(entry, chunk);
  path_set open = writable();
  open[old.path] = false;
  for (;;) {
    const std::vector<double> part = shares_among(open);
    if (std::none_of(part.begin(), part.end(), [](double share) { return share > 0; })) {
      return false;
    }
    const std::uint32_t path = dealer_.deal({bytes}, part).front();
    if (const std::optional<extent> place = take(path, bytes)) {
      entry.chunks[chunk].place = {path, place->offset};
      paths_[old.path].holes.free({old.offset, bytes});
      std::vector<byte_count> moved(paths_.size(), 0);
      moved[path] = bytes;
      dealer_.note(moved, part);
      return true;
    }
    open[path] = false;
  }
}

}  // namespace forebay::store_detail
