#pragma once

#include <cstdint>
#include <span>

#include <sys/uio.h>

#include <forebay/io/backend.hpp>

namespace forebay::io::detail {

/// The next kernel-level transfer of `op`: from `op.done`, aligned down, at most `largest` bytes and never 0. Pure
/// arithmetic on addresses: nothing is read from memory.
[[nodiscard]] interceptor::transfer next_piece(const operation& op, byte_count largest) noexcept;

enum class verdict : std::uint8_t {
  finished,  ///< call `complete` with the result
  again,     ///< the next piece can start now
  later      ///< it can start at `op.not_before`
};

struct decision {
  verdict what = verdict::finished;
  result how;
};

/// What follows from `op.outcome`, the result of the piece under way. Progress is noted in `op`.
[[nodiscard]] decision judge(operation& op, unsigned transient_retries, time_point now) noexcept;

/// How much of a list of vectors is in use.
struct memory_list {
  std::size_t vectors = 0;
  byte_count bytes = 0;
};

/// What became of a run that was about to start. Each is linked by `together`; any may be null.
struct begun_run {
  operation* run = nullptr;      ///< goes to the kernel as one transfer
  operation* refused = nullptr;  ///< one whose outcome is there already
  operation* rest = nullptr;     ///< does not go along: to be put back
};

/// What became of a transfer.
struct ended_run {
  operation* landed = nullptr;  ///< have their outcomes
  operation* rest = nullptr;    ///< were not reached, or failed for a reason that may be a neighbour's: to be put back
};

/// The life of an operation as a sequence of pieces, the same for every backend; a backend only executes pieces. The
/// calls for one operation come one after the other; those for several may come from several threads.
class piecework {
 public:
  explicit piecework(const backend_options& options) noexcept
      : faults_(options.faults), largest_(options.largest_transfer), transient_retries_(options.transient_retries) {}

  /// 0, or the errno with which the interceptor has the service refused.
  [[nodiscard]] int refused(interceptor::service wanted) const noexcept {
    return faults_ == nullptr ? 0 : faults_->refuse(wanted);
  }
  void announce(std::span<const int> files) const noexcept {
    if (faults_ != nullptr) {
      faults_->announced(files);
    }
  }
  /// Called by submit.
  static void start(operation& op) noexcept;
  /// Prepares the next piece. True: execute `piece(op)`, then call `executed`. False: `op.outcome` is there already.
  [[nodiscard]] bool begin(operation& op) noexcept;
  [[nodiscard]] interceptor::transfer piece(const operation& op) const noexcept;
  /// Takes the kernel's result: bytes or a negative errno.
  void executed(operation& op, std::int64_t outcome) noexcept;

  /// The memory of a run's pieces, one vector for what is contiguous. At most `largest_run` vectors.
  [[nodiscard]] memory_list gather(const operation& first, std::span<iovec> vectors) const noexcept;

  /// The same for operations that go to the kernel together: as many of them, from the first on, as go whole.
  [[nodiscard]] begun_run begin_run(operation* first) noexcept;
  [[nodiscard]] ended_run executed_run(operation* first, std::int64_t outcome) noexcept;
  /// True while the result must be held back; put `op` among the timers then.
  [[nodiscard]] static bool hold(operation& op, time_point now) noexcept;
  [[nodiscard]] decision settle(operation& op, time_point now) const noexcept {
    return judge(op, transient_retries_, now);
  }

 private:
  interceptor* faults_;
  byte_count largest_;
  unsigned transient_retries_;
};

}  // namespace forebay::io::detail
