#include "device/detail/link.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <thread>

namespace forebay::detail {
namespace {

// Between pieces the thread sleeps until the link would have moved them: a real bus leaves the CPU to others.
constexpr byte_count piece = 1_MiB;

}  // namespace

time_point link::transfer(std::byte* to, const std::byte* from, byte_count bytes, time_point ready) {
  if (!rated()) {
    std::memcpy(to, from, bytes);
    return std::chrono::steady_clock::now();
  }
  std::unique_lock lock(mutex_);
  const std::uint64_t ticket = next_ticket_++;
  turn_changed_.wait(lock, [&] { return turn_ == ticket; });
  const time_point start = std::max(ready, free_at_);
  lock.unlock();
  for (byte_count done = 0; done < bytes;) {
    const byte_count n = std::min(piece, bytes - done);
    std::memcpy(to + done, from + done, n);
    done += n;
    std::this_thread::sleep_until(start + cost(done));
  }
  const time_point end = start + cost(bytes);
  lock.lock();
  free_at_ = end;
  ++turn_;
  turn_changed_.notify_all();
  return end;
}

duration link::cost(byte_count bytes) const {
  const double seconds = static_cast<double>(bytes) / static_cast<double>(rate_);
  return std::chrono::duration_cast<duration>(std::chrono::duration<double, std::nano>(std::ceil(seconds * 1e9)));
}

}  // namespace forebay::detail
