#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <forebay/io/backend.hpp>

namespace forebay::io::detail {

/// Operations of one run at most.
inline constexpr std::size_t largest_run = 128;

/// Operations that wait for the kernel. The more urgent of a file go first, equals first come, first served; each file
/// has at most `depth` transfers in the kernel, and files take turns. While a file has something of urgency 0 in the
/// kernel, nothing of another urgency follows it there: a drive shares its rate among all that it has been given.
/// Operations that wait for neighbouring places in a file, in the same direction and equally urgent, leave together as
/// one run of up to `merge` bytes: a drive moves one large transfer much faster than many small ones.
///
/// Pushing and popping never allocate. Not thread-safe.
class request_queue {
 public:
  request_queue(unsigned depth, byte_count merge);

  /// These files get a depth of their own; all others share one. Call while nothing waits or is in the kernel.
  void set_files(std::span<const int> files);
  /// Another depth and another largest run, both above 0, while nothing waits: runs are found by stretches of `merge`
  /// bytes. \throws usage_error otherwise.
  void set_limits(unsigned depth, byte_count merge);

  void push(operation& op) noexcept;
  /// Puts an operation that has had its turn before all others of its urgency.
  void push_front(operation& op) noexcept;

  /// The next run: neighbours by rising offset, linked by `together`, that count as one transfer of their file until
  /// `landed`. Null: nothing may start now.
  [[nodiscard]] operation* pop() noexcept;
  /// The same with those that are linked by `together`; their order stays.
  void push_front_all(operation* first) noexcept;
  /// A transfer of this operation's file is over.
  void landed(const operation& op) noexcept {
    lane& l = lanes_[op.lane];
    --l.in_kernel;
    l.most_urgent -= op.urgency == 0 ? 1U : 0U;
  }

  [[nodiscard]] bool empty() const noexcept { return waiting_ == 0; }
  [[nodiscard]] bool can_pop() const noexcept;
  /// Whether an operation that comes now might start before any transfer is over. The files without a depth of their
  /// own do not count beside others: they are rare, and something is in the kernel then.
  [[nodiscard]] bool has_room() const noexcept;
  /// Any waiting operation, whatever the depth, or null.
  [[nodiscard]] operation* take_any() noexcept;

 private:
  /// Waiting operations of one urgency, linked both ways.
  struct line {
    operation* first = nullptr;
    operation* last = nullptr;
  };
  struct lane {
    int file = -1;
    unsigned in_kernel = 0;
    unsigned most_urgent = 0;  // of those, of urgency 0
    std::size_t waiting = 0;
    std::array<line, least_urgent + std::size_t{1}> lines{};
  };

  static constexpr std::size_t slots = 4096;

  [[nodiscard]] std::uint8_t lane_of(int file) const noexcept;
  [[nodiscard]] bool may_merge(const operation& op) const noexcept;
  [[nodiscard]] std::size_t slot_of(const operation& op) const noexcept;
  [[nodiscard]] bool same_stretch(const operation& a, const operation& b) const noexcept;
  void enter(operation& op, bool front) noexcept;
  void remove(operation& op) noexcept;
  [[nodiscard]] bool may_start(const lane& l) const noexcept {
    return l.waiting > 0 && l.in_kernel < depth_ && (l.most_urgent == 0 || l.lines.front().first != nullptr);
  }
  [[nodiscard]] operation* first_of(lane& l) noexcept;
  [[nodiscard]] operation* run_around(operation& op) noexcept;

  unsigned depth_;
  byte_count merge_;
  std::vector<lane> lanes_{1};  // the first is of the files without a lane of their own
  std::size_t turn_ = 0;
  std::size_t waiting_ = 0;
  std::vector<operation*> near_;  // by stretch of file, direction and urgency: chains of those that may merge
};

}  // namespace forebay::io::detail
