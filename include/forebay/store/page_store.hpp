#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <forebay/base/bytes.hpp>
#include <forebay/base/clock.hpp>
#include <forebay/io/backend.hpp>
#include <forebay/telemetry/timeline.hpp>

namespace forebay {

namespace store_detail {
struct page_entry;
}

/// One directory of the storage tier.
struct storage_path {
  std::filesystem::path directory;       ///< created when missing
  byte_count capacity = 0;               ///< bytes it may take; 0: what is free when the run starts
  byte_count read_bytes_per_second = 0;  ///< emulated limit; 0: as fast as the drive
  byte_count write_bytes_per_second = 0;
  double weight = 0;  ///< its share of the pages relative to the other paths' at the start; 0 for all: equal shares
};

struct page_store_options {
  std::vector<storage_path> paths;
  byte_count chunk = 1_MiB;  ///< unit of striping and checksums; a power of two >= 4 KiB
  bool checksums = true;     ///< XXH3 per chunk, verified on every read
  bool direct = true;        ///< O_DIRECT where possible
  bool adaptive = true;      ///< shares follow the measured rates; false: they stay as the paths' weights say
  io::backend_options io;
  /// At least this alignment of offsets and lengths on every path (a power of two); 0: what the file systems ask. For
  /// tests, and for drives that deny their true sector size.
  byte_count least_alignment = 0;
};

/// What is known of a path, for reports and for the planner.
struct path_rate {
  std::filesystem::path directory;
  double read_bytes_per_second = 0;   ///< with work queued; 0: not measured yet
  double write_bytes_per_second = 0;  ///< the same
  double bytes_per_second = 0;        ///< under the recent mix of both; 0: not measured yet
  double share = 0;                   ///< the part of new and rewritten pages that it gets now, of 1
  byte_count used = 0;                ///< by pages
  byte_count capacity = 0;
  bool retired = false;  ///< a write failed there for good: it is only read
};

/// What a path did best with, as measured at the start. All 0: it was not measured.
struct path_tuning {
  unsigned depth = 0;
  byte_count transfer = 0;
  double read_bytes_per_second = 0;
  double write_bytes_per_second = 0;
};

/// How transfers are given to the kernel: see `io::backend_options`.
struct storage_tuning {
  unsigned depth = 0;  ///< in use, per path
  byte_count merge = 0;
  bool measured = false;           ///< one of the two is what a probe found
  std::vector<path_tuning> paths;  ///< one per path, in their order
};

/// A place in storage for one object of fixed size. Its chunks are dealt to the paths in proportion to their rates,
/// over pages and inside each, and lie side by side on each path where there is such a hole. Paths that are full or
/// retired are left out.
struct page_id {
  std::uint32_t index = ~std::uint32_t{0};
  std::uint32_t generation = 0;
  [[nodiscard]] bool valid() const noexcept { return index != ~std::uint32_t{0}; }
};

/// Reads or writes one chunk of a page. Intrusive: the caller owns it and keeps it and its memory alive until
/// `complete`.
struct page_transfer {
  io::operation_kind kind = io::operation_kind::read;
  page_id page;
  std::uint64_t chunk = 0;      ///< index inside the page
  std::byte* memory = nullptr;  ///< 4 KiB aligned, room for page_store::padded_chunk_bytes(page, chunk)
  std::uint8_t urgency = 0;     ///< as of io::operation
  /// Called exactly once on an I/O thread; null: the bytes are right. Else io_error or corruption_error with page name,
  /// path, offset, wanted and got bytes and errno name. Must not throw.
  void (*complete)(page_transfer& self, std::exception_ptr failure) noexcept = nullptr;
  void* owner = nullptr;  ///< the caller's

  // The store's own, between submit and complete.
  io::operation operation;
  class page_store* store = nullptr;
  std::uint32_t rereads = 0;
  std::uint32_t path = 0;  ///< where the chunk lies; after a write not always where it lay at submit: see `path_of`
  page_transfer* next = nullptr;
  store_detail::page_entry* entry = nullptr;
  io::result outcome;
  std::exception_ptr failure;
  time_point submitted{};
  bool unhashed = false;         ///< a write whose checksum a worker still has to compute
  std::uint32_t parts_left = 0;  ///< of I/O and checksum, which go on at once; used as an atomic
  // Of a write that went on elsewhere: its first fault.
  bool rerouted = false;
  std::uint32_t fault_path = 0;
  byte_count fault_offset = 0;
  io::result fault;
};

/// The storage tier: one preallocated file per path, pages striped over the paths in chunks, each chunk checksummed.
///
/// A path that fails a write for good (an error that stays after the backend's retries) is retired: the chunk is
/// written to another path within the same transfer, later pages leave the path out, `renew` moves pages off it, and
/// what lies there is still read. Only when no other path can take the chunk does the transfer fail. The last path is
/// never retired. A directory is locked against other live engines; files that dead runs left there are removed.
/// Nothing of the store is left behind when it is destroyed. Thread-safe, but a page is freed or renewed by one thread
/// at a time.
class page_store {
 public:
  /// \throws io_error (path, errno) or usage_error (no paths, bad chunk, directory in use by another engine).
  explicit page_store(page_store_options options, telemetry::timeline* timeline = nullptr);
  ~page_store();
  page_store(const page_store&) = delete;
  page_store& operator=(const page_store&) = delete;

  /// Bytes a page of `bytes` takes in storage, padding included.
  [[nodiscard]] byte_count padded_bytes(byte_count bytes) const noexcept;
  /// Makes room for `bytes` (already padded, all pages of the run) and preallocates the files by their shares; what one
  /// disk refuses goes to the others. \throws capacity_error with path, needed and free. May be called again to grow.
  /// While nothing is allocated, and unless `io::backend_options` gives both, depth and merging are tuned by a probe of
  /// about half a second per path (a second on slow ones), once: on an io_uring without an interceptor or emulated
  /// rates, for the paths with O_DIRECT and at least 256 MiB of these bytes. The largest choice of all paths serves
  /// all. What cannot be measured stays as usual.
  void reserve(byte_count bytes);
  /// A page for `bytes` bytes; `name` goes into errors. \throws capacity_error when the paths are full.
  [[nodiscard]] page_id allocate(byte_count bytes, std::string name);
  void free(page_id page);
  /// The whole page is about to be rewritten: when its split over the paths is off by a chunk or more from what the
  /// rates now ask, or part of it lies on a retired path, it is placed anew (where that can be had, and not where
  /// capacity is so short that it could cost a page to come its place) and then holds nothing until it is written. True
  /// when it has moved. Moves no bytes. To be called in the order of the writes. \throws usage_error when transfers of
  /// the page are in flight.
  bool renew(page_id page);

  [[nodiscard]] byte_count chunk_bytes() const noexcept;
  [[nodiscard]] std::uint64_t chunk_count(page_id page) const;
  /// Bytes that a transfer of this chunk moves: the chunk, its tail padded to the file's alignment.
  [[nodiscard]] byte_count padded_chunk_bytes(page_id page, std::uint64_t chunk) const;
  /// Which path holds it, for pacing per path. A write may change that between `submit` and `complete`.
  [[nodiscard]] std::size_t path_of(page_id page, std::uint64_t chunk) const;
  [[nodiscard]] std::size_t path_count() const noexcept;

  /// Starts the transfer; its memory is not hashed or read by the store after `complete`. At most one transfer per
  /// chunk may be in flight; a chunk is read only after it was written. A write whose path fails goes on at another.
  void submit(page_transfer& transfer) noexcept;

  void register_memory(std::span<std::byte> memory);

  [[nodiscard]] byte_count capacity() const noexcept;
  [[nodiscard]] byte_count used() const noexcept;
  [[nodiscard]] byte_count peak() const noexcept;
  [[nodiscard]] byte_count bytes_read() const noexcept;  ///< really moved, since construction
  [[nodiscard]] byte_count bytes_written() const noexcept;
  /// Time spent on checksums so far, estimated from a sample; 0 when they are off.
  [[nodiscard]] double checksum_seconds() const noexcept;
  /// One per path, in their order.
  [[nodiscard]] std::vector<path_rate> measured_rates() const;
  /// Sets the shares (relative, one weight per path) for new and rewritten pages; measuring goes on from there unless
  /// `page_store_options::adaptive` is false. \throws usage_error for weights that make no sense.
  void weigh_paths(std::vector<double> weights);
  [[nodiscard]] storage_tuning tuning() const;
  [[nodiscard]] std::string backend_name() const;
  [[nodiscard]] std::vector<std::string> degradations() const;

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace forebay
