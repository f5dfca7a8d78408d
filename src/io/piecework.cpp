#include <forebay/io/detail/piecework.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>

namespace forebay::io::detail {
namespace {

constexpr unsigned eio_retry_limit = 2;
constexpr std::chrono::microseconds shortest_back_off{100};
constexpr unsigned longest_back_off_shift = 7;  // 12.8 ms; 16 retries wait 0.13 s in all

duration back_off(unsigned retries) { return shortest_back_off * (1U << std::min(retries, longest_back_off_shift)); }

bool is_transient(int error_number) {
  return error_number == EINTR || error_number == EAGAIN || error_number == EBUSY || error_number == ENOMEM;
}

decision finished(const operation& op, int error_number) {
  return {verdict::finished, {error_number, std::min(op.done, op.bytes)}};
}

decision failed(operation& op, int error_number, unsigned transient_retries, time_point now) {
  if (is_transient(error_number) && op.retries < transient_retries) {
    const duration wait = error_number == EINTR ? duration{0} : back_off(op.retries);
    ++op.retries;
    op.not_before = now + wait;
    return {wait == duration{0} ? verdict::again : verdict::later, {}};
  }
  if (error_number == EIO && op.eio_retries < eio_retry_limit) {
    ++op.eio_retries;
    op.not_before = now + std::chrono::milliseconds(2) * op.eio_retries;
    return {verdict::later, {}};
  }
  return finished(op, error_number);
}

}  // namespace

interceptor::transfer next_piece(const operation& op, byte_count largest) noexcept {
  const byte_count start = align_down(op.done, op.alignment);
  const byte_count cap = std::max(align_down(largest, op.alignment), op.alignment);
  return {op.kind, op.file, op.offset + start, op.memory + start, std::min(op.bytes - start, cap)};
}

decision judge(operation& op, unsigned transient_retries, time_point now) noexcept {
  if (op.outcome < 0) {
    return failed(op, static_cast<int>(-op.outcome), transient_retries, now);
  }
  const auto moved = static_cast<byte_count>(op.outcome);
  if (moved > op.piece_bytes) {
    return finished(op, EIO);  // no kernel says this; believing it would skip bytes
  }
  const byte_count reached = align_down(op.done, op.alignment) + moved;
  if (reached > op.done) {
    op.done = reached;
    op.retries = 0;
    return op.done == op.bytes ? finished(op, 0) : decision{verdict::again, {}};
  }
  // No progress. At the end of a file whose size is no multiple of the alignment, the last, partial unit is read
  // again and again gives no more; a spurious short count of that unit looks the same and deserves another try.
  if (moved == 0 || op.retries >= transient_retries) {
    return finished(op, 0);
  }
  ++op.retries;
  return {verdict::again, {}};
}

void piecework::start(operation& op) noexcept {
  op.next = nullptr;
  op.child = nullptr;
  op.done = 0;
  op.piece_bytes = 0;
  op.outcome = 0;
  op.not_before = {};
  op.retries = 0;
  op.eio_retries = 0;
  op.held = false;
  op.begun = false;
  op.alone = !op.mergeable;
}

bool piecework::begin(operation& op) noexcept {
  if (op.begun) {
    return true;  // it was put back before the kernel could say anything about it
  }
  op.not_before = {};
  op.outcome = 0;
  op.piece_bytes = op.bytes == 0 ? 0 : next_piece(op, largest_).bytes;
  if (op.bytes == 0) {
    return false;
  }
  if (faults_ == nullptr) {
    op.begun = true;
    return true;
  }
  const std::int64_t wish = faults_->before(piece(op));
  if (wish > 0) {
    const byte_count shortened = std::max(align_down(static_cast<byte_count>(wish), op.alignment), op.alignment);
    op.piece_bytes = std::min(op.piece_bytes, shortened);
  }
  op.not_before = faults_->hold_until(piece(op));
  op.outcome = std::min<std::int64_t>(wish, 0);
  op.begun = wish >= 0;
  return wish >= 0;
}

interceptor::transfer piecework::piece(const operation& op) const noexcept {
  interceptor::transfer next = next_piece(op, largest_);
  next.bytes = op.piece_bytes;
  return next;
}

void piecework::executed(operation& op, std::int64_t outcome) noexcept {
  op.begun = false;
  op.outcome = faults_ == nullptr ? outcome : faults_->after(piece(op), outcome);
}

memory_list piecework::gather(const operation& first, std::span<iovec> vectors) const noexcept {
  memory_list list;
  for (const operation* op = &first; op != nullptr; op = op->together) {
    const interceptor::transfer part = piece(*op);
    iovec* last = list.vectors == 0 ? nullptr : &vectors[list.vectors - 1];
    if (last != nullptr && static_cast<std::byte*>(last->iov_base) + last->iov_len == part.memory) {
      last->iov_len += part.bytes;
    } else {
      vectors[list.vectors++] = {part.memory, part.bytes};
    }
    list.bytes += part.bytes;
  }
  return list;
}

begun_run piecework::begin_run(operation* first) noexcept {
  begun_run result;
  operation* next = first->together;
  if (!begin(*first)) {
    first->together = nullptr;
    return {nullptr, first, next};
  }
  result.run = first;
  operation* last = first;
  const auto whole = [](const operation& op) { return op.done == 0 && op.piece_bytes == op.bytes; };
  while (next != nullptr && whole(*last)) {
    operation* op = next;
    next = op->together;
    if (!begin(*op)) {
      op->together = nullptr;
      result.refused = op;
      break;
    }
    if (!whole(*op)) {
      next = op;  // shortened: a transfer of its own
      break;
    }
    last = op;
  }
  last->together = nullptr;
  result.rest = next;
  return result;
}

ended_run piecework::executed_run(operation* first, std::int64_t outcome) noexcept {
  if (first->together == nullptr) {
    executed(*first, outcome);
    return {first, nullptr};
  }
  if (outcome < 0) {
    for (operation* op = first; op != nullptr; op = op->together) {
      op->alone = true;
    }
    return {nullptr, first};
  }
  // The bytes that moved belong to the operations in their order. Where they end nobody has said anything yet about the
  // ones behind.
  auto left = static_cast<byte_count>(outcome);
  operation* last = nullptr;
  operation* op = first;
  do {
    const byte_count share = std::min(left, op->piece_bytes);
    left -= share;
    executed(*op, static_cast<std::int64_t>(share));
    last = op;
    op = op->together;
  } while (op != nullptr && left > 0);
  last->outcome += static_cast<std::int64_t>(left);  // more than was asked for: for the judge
  last->together = nullptr;
  for (operation* rest = op; rest != nullptr; rest = rest->together) {
    rest->alone = true;
  }
  return {first, op};
}

bool piecework::hold(operation& op, time_point now) noexcept {
  op.held = op.not_before > now;
  return op.held;
}

}  // namespace forebay::io::detail
