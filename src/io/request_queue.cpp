#include <forebay/io/detail/request_queue.hpp>

#include <algorithm>

#include <forebay/base/contract.hpp>

namespace forebay::io::detail {

request_queue::request_queue(unsigned depth, byte_count merge)
    : depth_(std::max(depth, 1U)), merge_(merge), near_(slots, nullptr) {}

void request_queue::set_files(std::span<const int> files) {
  constexpr std::size_t most = 255;
  lanes_.resize(1);
  for (const int file : files.first(std::min(files.size(), most))) {
    lanes_.emplace_back();
    lanes_.back().file = file;
  }
}

void request_queue::set_limits(unsigned depth, byte_count merge) {
  FOREBAY_EXPECTS(depth > 0 && merge > 0, "a tuned depth and merge are above 0");
  FOREBAY_EXPECTS(empty(), "depth and merge are tuned while no operation waits");
  depth_ = depth;
  merge_ = merge;
}

std::uint8_t request_queue::lane_of(int file) const noexcept {
  for (std::size_t i = 1; i < lanes_.size(); ++i) {
    if (lanes_[i].file == file) {
      return static_cast<std::uint8_t>(i);
    }
  }
  return 0;
}

void request_queue::push(operation& op) noexcept { enter(op, false); }

void request_queue::push_front(operation& op) noexcept { enter(op, true); }

void request_queue::push_front_all(operation* first) noexcept {
  std::array<operation*, largest_run> ops;
  std::size_t count = 0;
  for (operation* op = first; op != nullptr; op = op->together) {
    ops[count++] = op;
  }
  while (count > 0) {
    push_front(*ops[--count]);
  }
}

void request_queue::enter(operation& op, bool front) noexcept {
  op.lane = lane_of(op.file);
  op.together = nullptr;
  lane& l = lanes_[op.lane];
  line& in = l.lines[std::min(op.urgency, least_urgent)];
  op.previous = front ? nullptr : in.last;
  op.next = front ? in.first : nullptr;
  (op.previous == nullptr ? in.first : op.previous->next) = &op;
  (op.next == nullptr ? in.last : op.next->previous) = &op;
  ++l.waiting;
  ++waiting_;
  if (may_merge(op)) {
    operation*& head = near_[slot_of(op)];
    op.near_previous = nullptr;
    op.near_next = head;
    if (head != nullptr) {
      head->near_previous = &op;
    }
    head = &op;
  }
}

void request_queue::remove(operation& op) noexcept {
  lane& l = lanes_[op.lane];
  line& in = l.lines[std::min(op.urgency, least_urgent)];
  (op.previous == nullptr ? in.first : op.previous->next) = op.next;
  (op.next == nullptr ? in.last : op.next->previous) = op.previous;
  --l.waiting;
  --waiting_;
  if (may_merge(op)) {
    (op.near_previous == nullptr ? near_[slot_of(op)] : op.near_previous->near_next) = op.near_next;
    if (op.near_next != nullptr) {
      op.near_next->near_previous = op.near_previous;
    }
  }
}

/// Whole operations only: one that has moved a part, or failed beside others, goes on by itself.
bool request_queue::may_merge(const operation& op) const noexcept {
  return op.bytes > 0 && op.bytes < merge_ && op.done == 0 && !op.begun && !op.alone;
}

std::size_t request_queue::slot_of(const operation& op) const noexcept {
  // Fibonacci hashing (Knuth, The Art of Computer Programming, volume 3, 6.4).
  const std::uint64_t key = op.offset / merge_ * 2 + static_cast<std::uint64_t>(op.kind) +
                            (std::uint64_t{op.lane} << 48U) + (std::uint64_t{op.urgency} << 56U);
  return (key * 0x9E3779B97F4A7C15U) >> 52U;
}

bool request_queue::same_stretch(const operation& a, const operation& b) const noexcept {
  return a.offset / merge_ == b.offset / merge_ && a.kind == b.kind && a.file == b.file && a.urgency == b.urgency;
}

operation* request_queue::first_of(lane& l) noexcept {
  for (const line& in : l.lines) {
    if (in.first != nullptr) {
      return in.first;
    }
  }
  return nullptr;
}

bool request_queue::can_pop() const noexcept {
  return std::any_of(lanes_.begin(), lanes_.end(), [this](const lane& l) { return may_start(l); });
}

bool request_queue::has_room() const noexcept {
  const std::ptrdiff_t first = lanes_.size() > 1 ? 1 : 0;
  return std::any_of(lanes_.begin() + first, lanes_.end(), [this](const lane& l) { return l.in_kernel < depth_; });
}

operation* request_queue::pop() noexcept {
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    lane& l = lanes_[(turn_ + i) % lanes_.size()];
    if (may_start(l)) {
      turn_ = (turn_ + i + 1) % lanes_.size();
      ++l.in_kernel;
      operation& first = *first_of(l);
      l.most_urgent += first.urgency == 0 ? 1U : 0U;
      return run_around(first);
    }
  }
  return nullptr;
}

operation* request_queue::take_any() noexcept {
  for (lane& l : lanes_) {
    if (operation* op = first_of(l)) {
      remove(*op);
      return op;
    }
  }
  return nullptr;
}

/// Takes `op` out, and with it the neighbours that touch it, one to the next. Stretches of the file are fixed, so that
/// what one run leaves is whole for the next.
operation* request_queue::run_around(operation& op) noexcept {
  if (!may_merge(op)) {
    remove(op);
    return &op;
  }
  std::array<operation*, largest_run> found;
  std::size_t count = 0;
  found[count++] = &op;
  for (operation* near = near_[slot_of(op)]; near != nullptr && count < largest_run; near = near->near_next) {
    if (near != &op && same_stretch(*near, op)) {
      found[count++] = near;
    }
  }
  const auto end = found.begin() + static_cast<std::ptrdiff_t>(count);
  std::sort(found.begin(), end, [](const operation* a, const operation* b) { return a->offset < b->offset; });
  const auto touch = [](const operation* a, const operation* b) { return a->offset + a->bytes == b->offset; };
  auto first = std::find(found.begin(), end, &op);
  auto last = first;
  byte_count bytes = op.bytes;
  while (last + 1 != end && touch(*last, *(last + 1)) && bytes + (*(last + 1))->bytes <= merge_) {
    bytes += (*++last)->bytes;
  }
  while (first != found.begin() && touch(*(first - 1), *first) && bytes + (*(first - 1))->bytes <= merge_) {
    bytes += (*--first)->bytes;
  }
  for (auto it = first; it <= last; ++it) {
    remove(**it);
    (*it)->together = it == last ? nullptr : *(it + 1);
  }
  return *first;
}

}  // namespace forebay::io::detail
