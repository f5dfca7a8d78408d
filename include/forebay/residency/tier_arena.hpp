#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include <forebay/base/bytes.hpp>
#include <forebay/base/function.hpp>
#include <forebay/memory/extent_allocator.hpp>
#include <forebay/memory/ledger.hpp>

namespace forebay {

/// What lies at a place of a tier's arena.
struct occupant {
  enum class kind : std::uint8_t { block, staging, claim };
  kind what = kind::block;
  std::uint32_t index = 0;  ///< of the block (block, claim); unused for staging
  byte_count bytes = 0;
};

/// A run of the arena that would become free if its victims left.
struct window {
  extent region;                    ///< at least as large as asked for
  std::vector<byte_count> victims;  ///< offsets of the occupants to evict, in address order
};

/// The addresses of one tier: who lies where, what is free, and which neighbours would have to leave to make a hole of
/// a given size. Every byte handed out is reserved in the ledger first. Not thread-safe.
class tier_arena {
 public:
  tier_arena(ledger& account, byte_count capacity, byte_count granularity);

  /// Bytes that an allocation of `bytes` takes.
  [[nodiscard]] byte_count rounded(byte_count bytes) const { return align_up(bytes, holes_.granularity()); }

  [[nodiscard]] std::optional<extent> allocate(byte_count bytes, occupant who);
  /// Takes the lowest place that is free, or the highest, of those that end by `limit`. Kept apart so, large and small
  /// blocks cut each other's holes less.
  [[nodiscard]] std::optional<extent> allocate_lowest(byte_count bytes, occupant who, byte_count limit);
  [[nodiscard]] std::optional<extent> allocate_highest(byte_count bytes, occupant who, byte_count limit);
  /// Takes exactly this place. False unless the whole of it is free.
  [[nodiscard]] bool allocate_at(extent place, occupant who);
  void free(extent place);
  /// Changes who lies at `place`, without moving it.
  void rename(extent place, occupant who);

  /// For the search: how good a victim is (larger is better), or nothing when it must stay.
  using victim_score = unique_function<std::optional<std::uint64_t>(byte_count offset, const occupant&)>;
  /// The window of >= `bytes` whose worst victim is best (ties: fewest bytes to evict). Nothing when there is none.
  [[nodiscard]] std::optional<window> find_window(byte_count bytes, victim_score score) const;

  /// Takes every hole inside `region` for a claim of block `index`, so that nobody else can have it.
  void claim_holes(extent region, std::uint32_t index);
  /// Bytes inside `region` that the claim of block `index` holds already.
  [[nodiscard]] byte_count claimed_bytes(extent region, std::uint32_t index) const;
  /// Turns a completed claim over `region` into one occupant of `bytes` at its start, and frees the rest.
  [[nodiscard]] extent settle_claim(extent region, byte_count bytes, occupant who);
  /// Frees all parts that the claim of block `index` holds in `region`.
  void drop_claim(extent region, std::uint32_t index);

  [[nodiscard]] const std::map<byte_count, occupant>& occupants() const noexcept { return occupants_; }
  [[nodiscard]] byte_count largest_hole() const noexcept { return holes_.largest_hole(); }
  [[nodiscard]] byte_count free_bytes() const noexcept { return holes_.free_bytes(); }
  [[nodiscard]] byte_count capacity() const noexcept { return holes_.capacity(); }

 private:
  ledger& account_;
  extent_allocator holes_;
  std::map<byte_count, occupant> occupants_;  // offset -> who
};

}  // namespace forebay
