#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include <forebay/base/clock.hpp>
#include <forebay/io/backend.hpp>
#include <forebay/testing/fault_script.hpp>

namespace forebay::testing {

/// Faults for an I/O backend: a script of delays, disorder, errors and wrong bytes. `install` it into the options of a
/// store or an engine, or set `backend_options::faults`. The same script drives every backend. Faults are looked up in
/// the order in which they were added; of errors and short transfers the first that strikes counts, and so of torn and
/// stale ones; delays add up.
///
/// Deterministic: whether a transfer is struck by chance, and how hard, follows from the seed, its kind and offset, and
/// how often that offset was moved before, whatever the threads do. Counted triggers count in the order in which
/// transfers start. Add faults before the first transfer, or between transfers. Thread-safe.
class io_faults final : public io::interceptor {
 public:
  explicit io_faults(std::uint64_t seed = 1);
  explicit io_faults(const fault_script& script, std::uint64_t seed = 1);
  ~io_faults() override;

  /// Makes a backend with these options suffer the faults. This object outlives the backend.
  void install(io::backend_options& options);

  io_faults& add(const fault& f);
  /// The result is held back for a time in [least, most], evenly spread, so that completions come in another order.
  io_faults& delay(duration least, duration most, fault_trigger when = {}, fault_filter where = {});
  /// The completion is held until `later` operations have been submitted after this one, at most for `limit` after it
  /// is there. Looks at whole operations. Needs `install`: a backend that has these faults as its interceptor alone
  /// holds the result for the whole of `limit`.
  io_faults& reorder(std::uint64_t later, duration limit, fault_trigger when = {}, fault_filter where = {});
  /// The kernel is asked for fewer bytes (a random legal length).
  io_faults& shorten(fault_trigger when = {}, fault_filter where = {});
  /// The kernel moves all, and a smaller count is reported, of any alignment: what a file's odd end looks like.
  io_faults& underreport(fault_trigger when = {}, fault_filter where = {});
  /// The kernel is not asked; the result is this errno.
  io_faults& fail(int error_number, fault_trigger when = {}, fault_filter where = {});
  /// Only a prefix of a write reaches the file, whole sectors of up to 4 KiB and possibly none; behind it the file
  /// keeps what it held. Success is reported: only a checksum can tell.
  io_faults& tear(fault_trigger when = {}, fault_filter where = {});
  /// A read reports success, and its memory keeps what it held.
  io_faults& stale_read(fault_trigger when = {}, fault_filter where = {});
  /// The completion of an earlier transfer of the same kind is taken for this one's: that count of bytes is reported,
  /// and of this transfer nothing has happened. The first transfer of each kind can't be struck.
  io_faults& stale_completion(fault_trigger when = {}, fault_filter where = {});
  /// One random bit of what was read is wrong.
  io_faults& flip_bit(fault_trigger when = {}, fault_filter where = {});
  /// The backend is refused the ring, or the registration of memory or files, with this errno.
  io_faults& refuse(service wanted, int error_number);
  /// Forgets all faults. Counts stay.
  void clear();

  /// What has happened so far.
  struct counts {
    std::uint64_t transfers = 0;
    std::uint64_t delayed = 0;
    std::uint64_t reordered = 0;
    std::uint64_t shortened = 0;
    std::uint64_t underreported = 0;
    std::uint64_t failed = 0;
    std::uint64_t torn = 0;
    std::uint64_t stale_reads = 0;
    std::uint64_t stale_completions = 0;
    std::uint64_t flipped = 0;
    std::uint64_t refused = 0;
  };
  [[nodiscard]] counts seen() const;

  int refuse(service wanted) noexcept override;
  void announced(std::span<const int> files) noexcept override;
  std::int64_t before(const transfer& t) noexcept override;
  std::int64_t after(const transfer& t, std::int64_t outcome) noexcept override;
  time_point hold_until(const transfer& t) noexcept override;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace forebay::testing
