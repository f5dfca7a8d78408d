#pragma once

#include <stdexcept>
#include <string>

namespace forebay {

/// The caller broke the contract of a function: a bug in the calling program, nothing has been changed.
class usage_error : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

/// Something outside the caller's control failed. Base of all run-time errors of the library.
class error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A file operation failed for good. `error_number()` is the errno (0 when the transfer was merely short).
class io_error : public error {
 public:
  io_error(const std::string& what, int error_number) : error(what), error_number_(error_number) {}
  [[nodiscard]] int error_number() const noexcept { return error_number_; }

 private:
  int error_number_;
};

/// The accelerator or its runtime failed.
class device_error : public error {
 public:
  using error::error;
};

/// A tier is too small for what was asked of it.
class capacity_error : public error {
 public:
  using error::error;
};

/// Bytes read back differ from the bytes written.
class corruption_error : public error {
 public:
  using error::error;
};

/// The machine or the build lacks what was asked for.
class unsupported_error : public error {
 public:
  using error::error;
};

/// "ENOSPC (No space left on device)"; thread-safe.
[[nodiscard]] std::string describe_errno(int error_number);

}  // namespace forebay
