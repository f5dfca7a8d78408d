#include <forebay/testing/rate_limited.hpp>

#include <algorithm>
#include <chrono>
#include <mutex>

#include <forebay/base/contract.hpp>

namespace forebay::testing {
namespace {

/// Transfers one after the other at a rate. The end is computed from the start of the busy period or of the rate, so
/// that rounding does not add up.
class pace {
 public:
  void change(byte_count rate, time_point now) {
    since_ = std::max(now, end());
    bytes_ = 0;
    rate_ = static_cast<double>(rate);
  }
  time_point take(byte_count bytes, time_point now) {
    if (rate_ <= 0) {
      return {};
    }
    if (now > end()) {
      since_ = now;
      bytes_ = 0;
    }
    bytes_ += static_cast<double>(bytes);
    return end();
  }

 private:
  [[nodiscard]] time_point end() const { return rate_ > 0 ? since_ + from_seconds(bytes_ / rate_) : since_; }

  double rate_ = 0;
  double bytes_ = 0;
  time_point since_{};
};

struct path_pace {
  int file = -1;
  pace read;
  pace write;
  pace total;

  void change(const path_limit& limit, time_point now) {
    read.change(limit.read, now);
    write.change(limit.write, now);
    total.change(limit.total, now);
  }
};

}  // namespace

struct rate_limited::state {
  std::mutex mutex;
  std::vector<path_pace> paths;
  io::interceptor* inner = nullptr;
};

rate_limited::rate_limited(std::vector<path_limit> limits, io::interceptor* inner) : state_(std::make_unique<state>()) {
  state_->inner = inner;
  state_->paths.resize(limits.size());
  for (std::size_t i = 0; i < limits.size(); ++i) {
    state_->paths[i].change(limits[i], time_point{});
  }
}

rate_limited::~rate_limited() = default;

void rate_limited::change(std::size_t path, path_limit limit) {
  const std::scoped_lock lock(state_->mutex);
  FOREBAY_EXPECTS(path < state_->paths.size(), "a limit is changed for a path that has one");
  state_->paths[path].change(limit, std::chrono::steady_clock::now());
}

int rate_limited::refuse(service wanted) noexcept {
  return state_->inner == nullptr ? 0 : state_->inner->refuse(wanted);
}

void rate_limited::announced(std::span<const int> files) noexcept {
  {
    const std::scoped_lock lock(state_->mutex);
    for (std::size_t i = 0; i < std::min(files.size(), state_->paths.size()); ++i) {
      state_->paths[i].file = files[i];
    }
  }
  if (state_->inner != nullptr) {
    state_->inner->announced(files);
  }
}

std::int64_t rate_limited::before(const transfer& t) noexcept {
  return state_->inner == nullptr ? 0 : state_->inner->before(t);
}

std::int64_t rate_limited::after(const transfer& t, std::int64_t outcome) noexcept {
  return state_->inner == nullptr ? outcome : state_->inner->after(t, outcome);
}

time_point rate_limited::hold_until(const transfer& t) noexcept {
  const time_point inner = state_->inner == nullptr ? time_point{} : state_->inner->hold_until(t);
  const time_point now = std::chrono::steady_clock::now();
  const std::scoped_lock lock(state_->mutex);
  time_point until = inner;
  for (path_pace& path : state_->paths) {
    if (path.file == t.file) {
      pace& own = t.kind == io::operation_kind::read ? path.read : path.write;
      until = std::max({until, own.take(t.bytes, now), path.total.take(t.bytes, now)});
    }
  }
  return until;
}

}  // namespace forebay::testing
