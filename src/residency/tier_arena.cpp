#include <forebay/residency/tier_arena.hpp>

#include <algorithm>

#include <forebay/base/contract.hpp>

namespace forebay {
namespace {

// Holes and occupants in one address-ordered sequence.
struct element {
  byte_count offset = 0;
  byte_count bytes = 0;
  bool hole = false;
  std::optional<std::uint64_t> score;  // of an occupant that may leave
};

std::vector<element> elements_in_order(const std::map<byte_count, byte_count>& holes,
                                       const std::map<byte_count, occupant>& occupants,
                                       tier_arena::victim_score& score) {
  std::vector<element> all;
  all.reserve(holes.size() + occupants.size());
  auto hole = holes.begin();
  for (const auto& [offset, who] : occupants) {
    for (; hole != holes.end() && hole->first < offset; ++hole) {
      all.push_back({hole->first, hole->second, true, {}});
    }
    all.push_back({offset, who.bytes, false, score(offset, who)});
  }
  for (; hole != holes.end(); ++hole) {
    all.push_back({hole->first, hole->second, true, {}});
  }
  return all;
}

}  // namespace

tier_arena::tier_arena(ledger& account, byte_count capacity, byte_count granularity)
    : account_(account), holes_(capacity, granularity) {}

std::optional<extent> tier_arena::allocate(byte_count bytes, occupant who) {
  const std::optional<extent> place = holes_.allocate(bytes);
  if (!place) {
    return std::nullopt;
  }
  FOREBAY_ASSERT(account_.try_reserve(place->bytes));  // the ledger and the holes count the same bytes
  who.bytes = place->bytes;
  occupants_.emplace(place->offset, who);
  return place;
}

std::optional<extent> tier_arena::allocate_lowest(byte_count bytes, occupant who, byte_count limit) {
  const byte_count need = rounded(bytes);
  for (const auto& [offset, size] : holes_.holes()) {
    if (offset + need > limit) {
      break;
    }
    if (size >= need) {
      const extent place{offset, need};
      return allocate_at(place, who) ? std::optional(place) : std::nullopt;
    }
  }
  return std::nullopt;
}

std::optional<extent> tier_arena::allocate_highest(byte_count bytes, occupant who, byte_count limit) {
  const byte_count need = rounded(bytes);
  for (auto hole = holes_.holes().rbegin(); hole != holes_.holes().rend(); ++hole) {
    const byte_count end = std::min(hole->first + hole->second, limit);
    if (end >= hole->first + need) {
      const extent place{end - need, need};
      return allocate_at(place, who) ? std::optional(place) : std::nullopt;
    }
  }
  return std::nullopt;
}

bool tier_arena::allocate_at(extent place, occupant who) {
  if (!holes_.allocate_at(place)) {
    return false;
  }
  FOREBAY_ASSERT(account_.try_reserve(place.bytes));
  who.bytes = place.bytes;
  occupants_.emplace(place.offset, who);
  return true;
}

void tier_arena::free(extent place) {
  const auto found = occupants_.find(place.offset);
  FOREBAY_ASSERT(found != occupants_.end() && found->second.bytes == place.bytes);
  occupants_.erase(found);
  holes_.free(place);
  account_.release(place.bytes);
}

void tier_arena::rename(extent place, occupant who) {
  const auto found = occupants_.find(place.offset);
  FOREBAY_ASSERT(found != occupants_.end() && found->second.bytes == place.bytes);
  who.bytes = place.bytes;
  found->second = who;
}

std::optional<window> tier_arena::find_window(byte_count bytes, victim_score score) const {
  const byte_count need = rounded(bytes);
  const std::vector<element> all = elements_in_order(holes_.holes(), occupants_, score);
  std::optional<std::pair<std::size_t, std::size_t>> best;
  std::uint64_t best_score = 0;
  byte_count best_victim_bytes = 0;
  for (std::size_t first = 0; first < all.size(); ++first) {
    byte_count total = 0;
    byte_count victim_bytes = 0;
    std::uint64_t worst = ~std::uint64_t{0};
    for (std::size_t last = first; last < all.size(); ++last) {
      const element& e = all[last];
      if (!e.hole) {
        if (!e.score || (best && *e.score < best_score)) {
          break;
        }
        worst = std::min(worst, *e.score);
        victim_bytes += e.bytes;
      }
      total += e.bytes;
      if (total >= need) {
        if (!best || worst > best_score || victim_bytes < best_victim_bytes) {
          best = {first, last};
          best_score = worst;
          best_victim_bytes = victim_bytes;
        }
        break;
      }
    }
  }
  if (!best) {
    return std::nullopt;
  }
  window found;
  found.region = {all[best->first].offset,
                  all[best->second].offset + all[best->second].bytes - all[best->first].offset};
  for (std::size_t i = best->first; i <= best->second; ++i) {
    if (!all[i].hole) {
      found.victims.push_back(all[i].offset);
    }
  }
  return found;
}

void tier_arena::claim_holes(extent region, std::uint32_t index) {
  std::vector<extent> inside;
  for (auto hole = holes_.holes().lower_bound(region.offset);
       hole != holes_.holes().end() && hole->first < region.end(); ++hole) {
    inside.push_back({hole->first, std::min(hole->second, region.end() - hole->first)});
  }
  for (const extent& part : inside) {
    FOREBAY_ASSERT(holes_.allocate_at(part));
    FOREBAY_ASSERT(account_.try_reserve(part.bytes));
    occupants_.emplace(part.offset, occupant{occupant::kind::claim, index, part.bytes});
  }
}

byte_count tier_arena::claimed_bytes(extent region, std::uint32_t index) const {
  byte_count total = 0;
  for (auto it = occupants_.lower_bound(region.offset); it != occupants_.end() && it->first < region.end(); ++it) {
    if (it->second.what == occupant::kind::claim && it->second.index == index) {
      total += it->second.bytes;
    }
  }
  return total;
}

extent tier_arena::settle_claim(extent region, byte_count bytes, occupant who) {
  const byte_count need = rounded(bytes);
  FOREBAY_ASSERT(claimed_bytes(region, who.index) == region.bytes && need <= region.bytes);
  for (auto it = occupants_.lower_bound(region.offset); it != occupants_.end() && it->first < region.end();) {
    it = occupants_.erase(it);
  }
  who.bytes = need;
  occupants_.emplace(region.offset, who);
  if (need < region.bytes) {
    const extent rest{region.offset + need, region.bytes - need};
    holes_.free(rest);
    account_.release(rest.bytes);
  }
  return {region.offset, need};
}

void tier_arena::drop_claim(extent region, std::uint32_t index) {
  for (auto it = occupants_.lower_bound(region.offset); it != occupants_.end() && it->first < region.end();) {
    if (it->second.what == occupant::kind::claim && it->second.index == index) {
      const extent part{it->first, it->second.bytes};
      it = occupants_.erase(it);
      holes_.free(part);
      account_.release(part.bytes);
    } else {
      ++it;
    }
  }
}

}  // namespace forebay
