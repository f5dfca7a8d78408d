#pragma once

#include <atomic>
#include <cstdint>
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
#include <forebay/store/page_store.hpp>

namespace forebay::store_detail {

struct chunk_place {
  std::uint32_t path = 0;
  byte_count offset = 0;
};

struct path_extent {
  std::uint32_t path = 0;
  extent place;
};

enum class chunk_state : std::uint8_t { never_written, written, write_failed };

/// One page. `sums` and `states` of a chunk belong to the one transfer of that chunk that may be in flight.
struct page_entry {
  std::string name;
  byte_count bytes = 0;
  std::uint32_t generation = 0;
  bool live = false;
  std::vector<chunk_place> chunks;
  std::vector<path_extent> extents;
  std::vector<std::uint64_t> sums;
  std::vector<chunk_state> states;
  std::atomic<std::uint32_t> in_flight{0};
};

/// A path's file with the account of its space.
struct path_space {
  io::direct_file file;
  extent_allocator holes;
  byte_count preallocated = 0;
};

/// Where every page lies. Not thread-safe but for the in-flight counts; entries stay where they are while live.
class page_table {
 public:
  /// `unit`: every offset and padded length is a multiple of it.
  page_table(std::vector<path_space> paths, byte_count chunk, byte_count unit);
  ~page_table();
  page_table(const page_table&) = delete;
  page_table& operator=(const page_table&) = delete;

  void reserve(byte_count bytes);
  [[nodiscard]] page_id allocate(byte_count bytes, std::string name);
  void free(page_id page);

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
  [[nodiscard]] page_entry& fresh_entry(page_id& id);
  [[nodiscard]] bool place_striped(page_entry& entry);
  [[nodiscard]] bool place_on(page_entry& entry, const std::vector<std::uint32_t>& stripe, std::vector<bool>& too_full);
  [[nodiscard]] bool place_scattered(page_entry& entry);
  void give_back(page_entry& entry);
  void preallocate_for(const page_entry& entry);
  [[nodiscard]] std::string full_message(const page_entry& entry) const;

  std::vector<path_space> paths_;
  byte_count chunk_;
  byte_count unit_;
  std::unique_ptr<ledger> account_;
  std::vector<std::unique_ptr<page_entry>> entries_;
  std::vector<std::uint32_t> unused_;
  std::uint64_t rotation_ = 0;  // the path after the last page's last chunk, so that small pages spread too
};

}  // namespace forebay::store_detail
