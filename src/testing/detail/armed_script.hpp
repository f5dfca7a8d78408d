#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include <forebay/testing/io_faults.hpp>

#include "testing/detail/old_bytes.hpp"
#include "testing/reordering_backend.hpp"

namespace forebay::testing::detail {

/// The faults of a script with what has happened to each: who is struck, and what is undone. Not thread-safe.
class armed_script {
 public:
  using transfer = io::interceptor::transfer;

  explicit armed_script(std::uint64_t seed) : seed_(seed) {}

  void add(const fault& f) { faults_.push_back({f}); }
  void clear() { faults_.clear(); }
  /// Completions are held by a backend, so that `hold_until` need not.
  void reorders_elsewhere() { reorders_elsewhere_ = true; }
  void announced(std::span<const int> files) { paths_.assign(files.begin(), files.end()); }
  [[nodiscard]] const io_faults::counts& seen() const { return seen_; }

  [[nodiscard]] int refuse(io::interceptor::service wanted);
  [[nodiscard]] std::int64_t before(const transfer& t);
  [[nodiscard]] duration hold(const transfer& t);
  [[nodiscard]] std::int64_t after(const transfer& t, std::int64_t outcome);
  [[nodiscard]] std::optional<disorder> disorder_of(const io::operation& op);

 private:
  struct armed_fault {
    fault what;
    std::uint64_t looked_at = 0;
    std::uint64_t strikes = 0;
  };
  /// What will be undone when a transfer has ended.
  struct undoing {
    fault_effect what = fault_effect::tear;
    byte_count keep = 0;
    std::int64_t reported = 0;  // of a stale completion
    old_bytes old;
  };
  using place = std::tuple<io::operation_kind, int, byte_count>;

  [[nodiscard]] static place place_of(const transfer& t) { return {t.kind, t.file, t.offset}; }
  [[nodiscard]] bool looks_at(const fault& f, const transfer& t) const;
  [[nodiscard]] std::uint64_t word(const transfer& t, std::size_t index, std::uint64_t salt);
  [[nodiscard]] bool strikes(std::size_t index, const transfer& t);
  void note_undoing(std::size_t index, const transfer& t);
  [[nodiscard]] std::int64_t undo(const transfer& t, std::int64_t outcome);
  void flip(std::size_t index, const transfer& t, std::int64_t outcome);

  std::uint64_t seed_;
  bool reorders_elsewhere_ = false;
  std::vector<armed_fault> faults_;
  std::vector<int> paths_;
  io_faults::counts seen_;
  std::map<place, std::uint64_t> visits_;  // `before` counts, so that the calls for one transfer agree
  std::map<place, undoing> undone_;
  std::array<std::int64_t, 2> last_outcome_{};  // of each kind; 0: none yet
};

}  // namespace forebay::testing::detail
