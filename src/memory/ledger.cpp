#include <forebay/memory/ledger.hpp>

#include <utility>

#include <fmt/format.h>

#include <forebay/base/contract.hpp>

namespace forebay {

ledger::ledger(std::string name, byte_count capacity) : name_(std::move(name)), capacity_(capacity) {}

ledger::~ledger() { FOREBAY_ASSERT(used_.load(std::memory_order_acquire) == 0); }

bool ledger::try_reserve(byte_count n) noexcept {
  byte_count used = used_.load(std::memory_order_relaxed);
  do {
    if (n > capacity_ - used) {  // used <= capacity always holds, so this neither wraps nor lets the sum wrap
      return false;
    }
  } while (!used_.compare_exchange_weak(used, used + n, std::memory_order_acq_rel, std::memory_order_relaxed));
  const byte_count now = used + n;
  byte_count peak = peak_.load(std::memory_order_relaxed);
  while (peak < now && !peak_.compare_exchange_weak(peak, now, std::memory_order_acq_rel, std::memory_order_relaxed)) {
  }
  return true;
}

void ledger::reserve(byte_count n) {
  if (!try_reserve(n)) {
    const byte_count now = used();
    throw capacity_error(
        fmt::format("the {} tier can't hold {} ({} bytes) more: {} of its {} ({} of {} bytes) are used", name_,
                    format_bytes(n), n, format_bytes(now), format_bytes(capacity_), now, capacity_));
  }
}

void ledger::release(byte_count n) noexcept {
  const byte_count before = used_.fetch_sub(n, std::memory_order_acq_rel);
  FOREBAY_ASSERT(n <= before);
}

}  // namespace forebay
