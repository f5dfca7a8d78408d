#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

#include <forebay/base/clock.hpp>

#include "../store/statistics.hpp"
#include "rates.hpp"

namespace forebay::probe {
namespace {

constexpr byte_count piece_bytes = 16_MiB;

/// Copies all of one range to another in pieces, asynchronously.
void enqueue(stream& s, std::span<std::byte> to, std::span<const std::byte> from, copy_direction direction) {
  for (byte_count at = 0; at < to.size(); at += piece_bytes) {
    s.copy(to.data() + at, from.data() + at, std::min<byte_count>(piece_bytes, to.size() - at), direction);
  }
}

/// Seconds from `start` until all work of `s` is done.
double seconds_until(stream& s, time_point start) {
  s.synchronize();
  return to_seconds(std::chrono::steady_clock::now() - start);
}

struct samples {
  std::vector<double> h2d, d2h, h2d_both, d2h_both;
};

class link_probe {
 public:
  /// The first halves of both memories go up, the second halves come down.
  link_probe(device& d, std::span<std::byte> memory)
      : bytes_(align_down(std::min<byte_count>(memory.size(), d.arena().size()) / 2, 4_KiB)),
        host_(memory),
        device_(d.arena()),
        up_(d.make_stream(stream_kind::host_to_device)),
        down_(d.make_stream(stream_kind::device_to_host)) {}

  void round(samples& to) {
    auto start = std::chrono::steady_clock::now();
    enqueue_up();
    to.h2d.push_back(rate(seconds_until(*up_, start)));
    start = std::chrono::steady_clock::now();
    enqueue_down();
    to.d2h.push_back(rate(seconds_until(*down_, start)));
    both(to);
  }

 private:
  void enqueue_up() { enqueue(*up_, device_.first(bytes_), host_.first(bytes_), copy_direction::host_to_device); }
  void enqueue_down() {
    enqueue(*down_, host_.subspan(bytes_, bytes_), device_.subspan(bytes_, bytes_), copy_direction::device_to_host);
  }
  /// Each direction is given as much again as it is measured for, so that the other one never runs alone meanwhile.
  void both(samples& to) {
    const auto start = std::chrono::steady_clock::now();
    enqueue_up();
    enqueue_down();
    up_->notify([this] { up_end_ = std::chrono::steady_clock::now(); });
    down_->notify([this] { down_end_ = std::chrono::steady_clock::now(); });
    enqueue_up();
    enqueue_down();
    up_->synchronize();
    down_->synchronize();
    to.h2d_both.push_back(rate(to_seconds(up_end_ - start)));
    to.d2h_both.push_back(rate(to_seconds(down_end_ - start)));
  }
  [[nodiscard]] double rate(double seconds) const { return static_cast<double>(bytes_) / seconds; }

  byte_count bytes_;
  std::span<std::byte> host_;
  std::span<std::byte> device_;
  time_point up_end_;  // written by a callback, which precedes the copies that `synchronize` waits for
  time_point down_end_;
  std::unique_ptr<stream> up_;
  std::unique_ptr<stream> down_;
};

}  // namespace

void measure_link(device& d, std::span<std::byte> memory, const effort& e, plan::machine_description& to) {
  samples all;
  {
    link_probe probe(d, memory);
    samples warm_up;
    probe.round(warm_up);
    for (unsigned round = 0; round < e.rounds; ++round) {
      probe.round(all);
    }
  }
  to.model.h2d_rate = store_bench::median(all.h2d);
  to.model.d2h_rate = store_bench::median(all.d2h);
  to.link_both_ways = {store_bench::median(all.h2d_both), store_bench::median(all.d2h_both)};
}

}  // namespace forebay::probe
