#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <forebay/base/bytes.hpp>
#include <forebay/base/clock.hpp>

namespace forebay::io {

enum class operation_kind : std::uint8_t { read, write };

/// How an operation ended. `error_number` 0 and `bytes` == wanted: success. `bytes` < wanted with `error_number` 0: the
/// file ended (reads) or the device took no more (writes). Otherwise the errno, and the bytes that did move.
struct result {
  int error_number = 0;
  byte_count bytes = 0;
};

inline constexpr std::uint8_t least_urgent = 3;

/// One transfer between memory and a file. Intrusive: the caller owns it and keeps it and its memory alive until
/// `complete` has been called, exactly once, on a thread of the backend.
struct alignas(64) operation {
  operation_kind kind = operation_kind::read;
  std::uint8_t urgency = 0;  ///< 0 overtakes 1, and so on up to `least_urgent`; equals go first come, first served
  bool mergeable = true;     ///< may share a transfer with its neighbours in the file
  int file = -1;             ///< open descriptor
  byte_count offset = 0;     ///< bytes from the start of the file
  std::byte* memory = nullptr;
  byte_count bytes = 0;      ///< any 64-bit size; split below the kernel's cap by the backend
  byte_count alignment = 1;  ///< continued transfers keep address, offset and length multiples of this
  /// Must be short and must not throw; may submit further operations.
  void (*complete)(operation& self, result outcome) noexcept = nullptr;
  void* context = nullptr;  ///< the submitter's

  // The backend's own, between submit and complete. A cache line is what a queue touches: with tens of thousands of
  // small operations waiting, cache misses are what they cost.
  bool held = false;      ///< `not_before` holds a result back (else it delays a try)
  bool begun = false;     ///< the piece has been shown to the interceptor
  bool alone = false;     ///< is not merged with others (any more)
  std::uint8_t lane = 0;  ///< of the request queue
  operation* next = nullptr;
  operation* previous = nullptr;
  operation* near_next = nullptr;  ///< among those that wait for the same stretch of the file
  operation* near_previous = nullptr;
  operation* together = nullptr;  ///< what follows in the same transfer
  byte_count done = 0;            ///< bytes known to have moved
  byte_count piece_bytes = 0;     ///< length of the kernel-level transfer under way
  std::int64_t outcome = 0;       ///< its result
  operation* child = nullptr;     ///< in the timer heap
  time_point not_before{};        ///< when the result counts, or the next try starts
  std::uint32_t retries = 0;      ///< transient errors in a row
  std::uint32_t eio_retries = 0;  ///< EIO of the whole operation
};

/// Sees every kernel-level transfer of a backend, and may change its outcome: the seam for fault injection, rate limits
/// and delays. Called on the backend's threads; implementations are thread-safe and do not throw.
class interceptor {
 public:
  interceptor() = default;
  interceptor(const interceptor&) = delete;
  interceptor& operator=(const interceptor&) = delete;
  virtual ~interceptor() = default;

  /// One kernel-level transfer: a piece of an operation.
  struct transfer {
    operation_kind kind;
    int file;
    byte_count offset;
    std::byte* memory;
    byte_count bytes;
  };

  /// What a backend needs from the kernel before any transfer.
  enum class service : std::uint8_t { ring, registered_memory, registered_files };

  /// Asked before the kernel is: 0, or the errno with which the service counts as refused.
  virtual int refuse(service) noexcept { return 0; }
  /// Told the files that `register_files` announces, in their order (a store's: one a path).
  virtual void announced(std::span<const int>) noexcept {}
  /// Before the transfer is given to the kernel. 0: go on. Otherwise a negative errno that becomes its result, or a
  /// positive number of bytes: the transfer is shortened to that, rounded to a legal length.
  virtual std::int64_t before(const transfer&) noexcept { return 0; }
  /// After it: `outcome` is the kernel's result (bytes, or a negative errno); the value returned takes its place. May
  /// alter the memory of a read.
  virtual std::int64_t after(const transfer&, std::int64_t outcome) noexcept { return outcome; }
  /// Asked once per transfer, after `before` and before the kernel gets it: the result is held back until this time
  /// (time_point{}: not at all). A held transfer does not count in `depth`.
  virtual time_point hold_until(const transfer&) noexcept { return {}; }
};

enum class backend_kind : std::uint8_t { automatic, uring, threads };

class backend;

/// What automatic depth and merging are, as long as nobody has measured anything better.
inline constexpr unsigned usual_depth = 64;
inline constexpr byte_count usual_merge = 4_MiB;

struct backend_options {
  backend_kind kind = backend_kind::automatic;
  unsigned depth = 0;  ///< kernel-level transfers in flight at most, per file; 0: automatic, `usual_depth` until tuned
  byte_count merge = 0;  ///< neighbours in a file that wait together become one transfer up to this; 0: automatic
  unsigned threads = 4;  ///< of the thread-pool backend
  interceptor* faults = nullptr;             ///< not owned; outlives the backend
  byte_count largest_transfer = 0x7ffff000;  ///< the kernel's cap; tests lower it
  unsigned transient_retries = 16;           ///< of EINTR, EAGAIN, EBUSY, ENOMEM without progress; EIO: 2
  /// Takes the backend that was made and returns the one to use: a seam for tests and for counting. Null: none.
  std::function<std::unique_ptr<backend>(std::unique_ptr<backend>)> wrap{};
};

/// Moves bytes between memory and files, asynchronously. Every result is checked, short transfers are continued at
/// legal alignment, transient errors are retried with back-off, and each operation completes exactly once. Thread-safe.
class backend {
 public:
  backend() = default;
  backend(const backend&) = delete;
  backend& operator=(const backend&) = delete;
  /// Completes everything submitted, then stops its threads. No call of `submit` may still be running.
  virtual ~backend() = default;

  virtual void submit(operation& op) noexcept = 0;

  /// Announces memory and files that operations will use often (registered buffers and files of a ring). Advice: what
  /// is refused is used unregistered, and said in `degradations()`. Call before the first submit. Both must stay as
  /// they are (mapped, open) until the backend is destroyed.
  virtual void register_memory(std::span<std::byte> memory) = 0;
  virtual void register_files(std::span<const int> files) = 0;

  /// From now on this depth per file and this largest merged transfer (both above 0), whatever the options said. Only
  /// while nothing is submitted and not complete. A backend that wraps another passes it on. \throws usage_error for 0,
  /// and when an operation is seen to wait.
  virtual void tune(unsigned /*depth*/, byte_count /*merge*/) {}

  /// "io_uring" or "threads".
  [[nodiscard]] virtual std::string name() const = 0;
  /// Services that were refused, one sentence each, with the limit, the need and the errno's name.
  [[nodiscard]] virtual std::vector<std::string> degradations() const = 0;
};

/// `automatic` probes io_uring at run time and falls back to threads, saying why in `degradations()`.
/// \throws unsupported_error when `uring` is demanded and the kernel refuses it (with the errno's name).
[[nodiscard]] std::unique_ptr<backend> make_backend(const backend_options& options = {});

}  // namespace forebay::io
