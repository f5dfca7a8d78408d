#pragma once

#include <deque>
#include <mutex>
#include <span>

#include <forebay/base/bytes.hpp>
#include <forebay/base/clock.hpp>
#include <forebay/io/backend.hpp>

namespace forebay::store_detail {

/// One direction of one path at a fixed rate: transfers follow one another on a virtual clock. Thread-safe.
class paced_link {
 public:
  explicit paced_link(byte_count bytes_per_second) noexcept : rate_(static_cast<double>(bytes_per_second)) {}

  /// When `bytes` that are asked for at `now` have come through.
  [[nodiscard]] time_point reserve(byte_count bytes, time_point now) noexcept;

 private:
  [[nodiscard]] time_point end() const noexcept;

  double rate_;
  std::mutex mutex_;
  // The end is computed from the start of the busy period, so that rounding does not add up.
  time_point busy_since_{};
  double busy_bytes_ = 0;
};

/// Holds completions back so that each path's reads and writes take what they would take at the configured rates; what
/// `inner` does is done as well.
class link_pacer final : public io::interceptor {
 public:
  explicit link_pacer(io::interceptor* inner) : inner_(inner) {}

  /// 0 bytes per second: no limit. Before the first transfer.
  void limit(int file, byte_count read_rate, byte_count write_rate);
  [[nodiscard]] bool limits_anything() const noexcept { return !links_.empty(); }

  int refuse(service wanted) noexcept override { return inner_ == nullptr ? 0 : inner_->refuse(wanted); }
  void announced(std::span<const int> files) noexcept override {
    if (inner_ != nullptr) {
      inner_->announced(files);
    }
  }
  std::int64_t before(const transfer& t) noexcept override { return inner_ == nullptr ? 0 : inner_->before(t); }
  std::int64_t after(const transfer& t, std::int64_t outcome) noexcept override {
    return inner_ == nullptr ? outcome : inner_->after(t, outcome);
  }
  time_point hold_until(const transfer& t) noexcept override;

 private:
  struct link {
    link(int f, io::operation_kind k, byte_count rate) : file(f), kind(k), pace(rate) {}
    int file;
    io::operation_kind kind;
    paced_link pace;
  };

  io::interceptor* inner_;
  std::deque<link> links_;
};

}  // namespace forebay::store_detail
