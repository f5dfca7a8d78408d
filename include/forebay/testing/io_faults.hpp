#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>

#include <forebay/base/clock.hpp>
#include <forebay/io/backend.hpp>

namespace forebay::testing {

/// Which kernel-level transfers a fault looks at.
struct fault_filter {
  std::optional<io::operation_kind> kind;  ///< nothing: reads and writes
  int file = -1;                           ///< descriptor; -1: any
};

/// Which of the transfers that it looks at a fault strikes.
struct fault_trigger {
  std::uint64_t first = 1;                                         ///< the first that may be struck, counted from 1
  std::uint64_t every = 1;                                         ///< from there every so-manieth
  std::uint64_t most = std::numeric_limits<std::uint64_t>::max();  ///< strikes in all
  double probability = 1.0;                                        ///< of each strike

  [[nodiscard]] static fault_trigger always() { return {}; }
  /// The n-th, counted from 1, and no other.
  [[nodiscard]] static fault_trigger nth(std::uint64_t n) { return {n, 1, 1, 1.0}; }
  /// Each with this probability.
  [[nodiscard]] static fault_trigger chance(double p) { return {1, 1, std::numeric_limits<std::uint64_t>::max(), p}; }
};

/// Faults for an I/O backend (`backend_options::faults`): a script of delays, short transfers, errors and flipped bits.
/// The same script drives every backend. Faults are looked up in the order in which they were added; of errors and
/// short transfers the first that strikes counts, delays add up.
///
/// Deterministic: whether a transfer is struck by chance, and how hard, follows from the seed, its kind and offset, and
/// how often that offset was moved before, whatever the threads do. Counted triggers count in the order in which
/// transfers start. Add faults before the first transfer, or between transfers. Thread-safe.
class io_faults final : public io::interceptor {
 public:
  explicit io_faults(std::uint64_t seed = 1);
  ~io_faults() override;

  /// The result is held back for a time in [least, most], evenly spread, so that completions come in another order.
  io_faults& delay(duration least, duration most, fault_trigger when = {}, fault_filter where = {});
  /// The kernel is asked for fewer bytes (a random legal length).
  io_faults& shorten(fault_trigger when = {}, fault_filter where = {});
  /// The kernel moves all, and a smaller count is reported, of any alignment: what a file's odd end looks like.
  io_faults& underreport(fault_trigger when = {}, fault_filter where = {});
  /// The kernel is not asked; the result is this errno.
  io_faults& fail(int error_number, fault_trigger when = {}, fault_filter where = {});
  /// One random bit of what was read is wrong.
  io_faults& flip_bit(fault_trigger when = {}, fault_filter where = {});
  /// Forgets all faults. Counts stay.
  void clear();

  /// What has happened so far.
  struct counts {
    std::uint64_t transfers = 0;
    std::uint64_t delayed = 0;
    std::uint64_t shortened = 0;
    std::uint64_t underreported = 0;
    std::uint64_t failed = 0;
    std::uint64_t flipped = 0;
  };
  [[nodiscard]] counts seen() const;

  std::int64_t before(const transfer& t) noexcept override;
  std::int64_t after(const transfer& t, std::int64_t outcome) noexcept override;
  time_point hold_until(const transfer& t) noexcept override;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace forebay::testing
