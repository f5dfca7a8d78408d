#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <forebay/base/bytes.hpp>
#include <forebay/io/file.hpp>
#include <forebay/memory/extent_allocator.hpp>
#include <forebay/memory/ledger.hpp>
#include <forebay/store/detail/path_shares.hpp>
#include <forebay/store/page_store.hpp>

namespace forebay::store_detail {

inline constexpr byte_count nowhere = ~byte_count{0};

struct chunk_place {
  std::uint32_t path = 0;
  byte_count offset = nowhere;
};

enum class chunk_state : std::uint8_t { never_written, written, write_failed };

/// Belongs to the one transfer of the chunk that may be in flight.
struct chunk_record {
  chunk_place place;
  std::uint64_t sum = 0;
  chunk_state state = chunk_state::never_written;
};

/// One page. What a transfer touches lies on one cache line, and another with the chunk's record.
struct alignas(64) page_entry {
  byte_count bytes = 0;
  std::uint32_t generation = 0;
  bool live = false;
  std::atomic<std::uint32_t> in_flight{0};
  std::vector<chunk_record> chunks;
  std::string name;  // last: transfers need the rest
};

/// A path's file with the account of its space.
struct path_space {
  io::direct_file file;
  extent_allocator holes;
  byte_count preallocated = 0;
  bool retired = false;  ///< a write failed for good: nothing new is placed here

  [[nodiscard]] byte_count used() const noexcept { return holes.capacity() - holes.free_bytes(); }
  [[nodiscard]] std::string directory() const { return file.path().parent_path().string(); }
};

/// Where every page lies. Not thread-safe but for the in-flight counts; entries stay where they are while live.
class page_table {
 public:
  /// `unit`: every offset and padded length is a multiple of it. `weights`: one per path, relative.
  page_table(std::vector<path_space> paths, byte_count chunk, byte_count unit, std::vector<double> weights);
  ~page_table();
  page_table(const page_table&) = delete;
  page_table& operator=(const page_table&) = delete;

  void reserve(byte_count bytes);
  [[nodiscard]] page_id allocate(byte_count bytes, std::string name);
  void free(page_id page);
  /// Places a page that is about to be rewritten anew when its split is off. True: it has moved and holds nothing.
  bool renew(page_id page);

  /// Nothing new goes to this path from now on. False when it was so already, or when no other path is left.
  bool retire(std::uint32_t path);
  /// Moves one chunk, whose bytes are about to be written, to another path that still takes writes. False (and no
  /// change) when none has room.
  [[nodiscard]] bool move_chunk(page_entry& entry, std::uint64_t chunk);

  [[nodiscard]] path_weights& weights() noexcept { return weights_; }
  /// What part of the pages each path is to get now.
  [[nodiscard]] std::vector<double> shares() const;

  /// Null when the id is stale or was never given.
  [[nodiscard]] page_entry* find(page_id page) noexcept;
  /// \throws usage_error for such an id.
  [[nodiscard]] page_entry& at(page_id page);
  /// The page, which has such a chunk. \throws usage_error otherwise.
  [[nodiscard]] page_entry& chunk_at(page_id page, std::uint64_t chunk);

  [[nodiscard]] byte_count unit() const noexcept { return unit_; }
  [[nodiscard]] byte_count chunk() const noexcept { return chunk_; }
  /// Real bytes of a chunk, the tail not padded.
  [[nodiscard]] byte_count chunk_bytes(const page_entry& entry, std::uint64_t chunk) const noexcept;
  [[nodiscard]] const std::vector<path_space>& paths() const noexcept { return paths_; }
  [[nodiscard]] const ledger& account() const noexcept { return *account_; }

 private:
  using path_set = std::vector<bool>;

  [[nodiscard]] page_entry& fresh_entry(page_id& id);
  [[nodiscard]] byte_count padded_chunk(const page_entry& entry, std::uint64_t chunk) const noexcept;
  [[nodiscard]] std::vector<byte_count> pieces(const page_entry& entry) const;
  [[nodiscard]] std::vector<byte_count> bytes_on_paths(const page_entry& entry) const;
  [[nodiscard]] path_set writable() const;
  [[nodiscard]] std::vector<double> shares_among(const path_set& open) const;

  void place(page_entry& entry);
  [[nodiscard]] bool place_by_shares(page_entry& entry);
  [[nodiscard]] bool place_scattered(page_entry& entry);
  [[nodiscard]] bool place_as(page_entry& entry, const std::vector<std::uint32_t>& wanted, std::uint32_t& failed);
  [[nodiscard]] bool place_on(page_entry& entry, const std::vector<std::uint32_t>& wanted, std::uint32_t path);
  [[nodiscard]] std::optional<extent> take(std::uint32_t path, byte_count bytes);
  [[nodiscard]] bool has_disk_space(std::uint32_t path, byte_count end);
  void give_back(page_entry& entry);
  [[nodiscard]] bool leaves_room() const;
  void take_again(page_entry& entry, const std::vector<chunk_record>& chunks);
  template <typename Visit>
  void for_each_run(const page_entry& entry, Visit&& visit) const;
  [[nodiscard]] byte_count expected_on(const path_set& open) const;
  void preallocate_shares(const std::vector<byte_count>& wanted, byte_count missing);
  [[nodiscard]] std::string full_message(const page_entry& entry, byte_count free) const;
  [[nodiscard]] std::string describe_paths() const;

  std::vector<path_space> paths_;
  byte_count chunk_;
  byte_count unit_;
  path_weights weights_;
  share_dealer dealer_;
  byte_count reserved_ = 0;  // what all pages of the run are expected to take
  std::unique_ptr<ledger> account_;
  std::vector<std::unique_ptr<page_entry>> entries_;
  std::vector<std::uint32_t> unused_;
  std::exception_ptr refusal_;  // the first preallocation that was refused during the present placement
};

}  // namespace forebay::store_detail
