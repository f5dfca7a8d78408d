#include <forebay/store/detail/path_probe.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <span>

#include <forebay/memory/host_arena.hpp>

namespace forebay::store_detail {
namespace {

using io::operation_kind;

constexpr std::array<byte_count, 3> probed_blocks{256_KiB, 1_MiB, largest_probed_block};
constexpr std::array<unsigned, 3> probed_depths{4, 16, 64};
constexpr unsigned least_trials = 2;
constexpr unsigned most_trials = 8;          // of a shape: the best counts, for what disturbs one only slows it
constexpr byte_count probed_bytes = 64_MiB;  // at the start of the file
constexpr unsigned fill_depth = 4;
constexpr std::chrono::milliseconds fill_time{100};
constexpr std::chrono::milliseconds trial_time{6};
constexpr std::chrono::milliseconds time_per_path{500};
constexpr std::chrono::milliseconds most_time_per_path{1000};  // where the trials that are needed take so long

/// Keeps a number of transfers in flight: each completion starts the next one.
class load {
 public:
  load(io::backend& backend, int file, byte_count alignment, std::span<std::byte> memory)
      : backend_(backend), file_(file), alignment_(alignment), memory_(memory) {}

  /// From the start of the file onwards, over and over within `span` bytes, until `patience` or `most` bytes are over;
  /// returns when nothing is in flight any more. Bytes per second; 0 after an error.
  double run(operation_kind kind, transfer_shape shape, byte_count span, duration patience, byte_count most) {
    std::vector<io::operation> ops(shape.depth);
    const time_point start = std::chrono::steady_clock::now();
    until_ = start + patience;
    last_ = start;
    block_ = shape.block;
    places_ = span / shape.block;
    most_ = most / shape.block;
    begun_ = 0;
    moved_ = 0;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      io::operation& op = ops[i];
      op.kind = kind;
      op.file = file_;
      // Blocks share the memory: what is read is of no interest, and what is written is all the same.
      op.memory = memory_.data() + i * block_ % memory_.size();
      op.bytes = block_;
      op.alignment = alignment_;
      op.mergeable = false;
      op.context = this;
      op.complete = &load::completed;
      {
        const std::scoped_lock lock(mutex_);
        if (!take_turn(op, start)) {
          break;
        }
        ++in_flight_;
      }
      backend_.submit(op);
    }
    std::unique_lock lock(mutex_);
    landed_.wait(lock, [this] { return in_flight_ == 0; });
    return failed_ || last_ <= start ? 0.0 : static_cast<double>(moved_) / to_seconds(last_ - start);
  }

  [[nodiscard]] bool failed() const noexcept { return failed_; }
  /// Of the last run.
  [[nodiscard]] byte_count moved() const noexcept { return moved_; }

 private:
  /// Gives the operation its place; false when no more is to be done.
  [[nodiscard]] bool take_turn(io::operation& op, time_point now) noexcept {
    if (failed_ || begun_ == most_ || now >= until_) {
      return false;
    }
    op.offset = begun_++ % places_ * block_;
    return true;
  }

  static void completed(io::operation& op, io::result outcome) noexcept {
    auto& self = *static_cast<load*>(op.context);
    const time_point now = std::chrono::steady_clock::now();
    {
      const std::scoped_lock lock(self.mutex_);
      self.failed_ = self.failed_ || outcome.error_number != 0 || outcome.bytes != op.bytes;
      self.moved_ += outcome.bytes;
      self.last_ = std::max(self.last_, now);
      if (!self.take_turn(op, now)) {
        if (--self.in_flight_ == 0) {
          self.landed_.notify_all();  // under the lock: without it `self` may be gone
        }
        return;
      }
    }
    self.backend_.submit(op);
  }

  io::backend& backend_;
  int file_;
  byte_count alignment_;
  std::span<std::byte> memory_;
  std::mutex mutex_;  // guards what follows while operations are in flight
  std::condition_variable landed_;
  time_point until_{};
  time_point last_{};
  byte_count block_ = 0;
  byte_count places_ = 0;
  byte_count most_ = 0;
  byte_count begun_ = 0;  // transfers of this run
  byte_count moved_ = 0;
  unsigned in_flight_ = 0;
  bool failed_ = false;
};

/// The trials go round all shapes, so that a slow moment of the drive does not hit all of one shape. False when there
/// was no time for as many as a choice needs.
bool measure(load& on, byte_count span, std::vector<shape_rate>& found, time_point start) {
  std::array<double, 2> fastest{};
  for (unsigned trial = 0; trial < most_trials; ++trial) {
    const bool needed = trial < least_trials;
    const time_point deadline = start + (needed ? most_time_per_path : time_per_path);
    for (shape_rate& s : found) {
      for (const operation_kind kind : {operation_kind::read, operation_kind::write}) {
        // What is in flight when the time is over still has to come.
        double& rate_known = fastest[static_cast<std::size_t>(kind)];
        const auto in_flight = static_cast<double>(s.shape.in_flight());
        const duration drain = rate_known > 0 ? from_seconds(in_flight / rate_known) : duration{};
        if (std::chrono::steady_clock::now() + std::max<duration>(trial_time, drain) > deadline) {
          return !needed;
        }
        const double rate = on.run(kind, s.shape, span, trial_time, ~byte_count{0});
        if (on.failed()) {
          return false;
        }
        rate_known = std::max(rate_known, rate);
        double& best = kind == operation_kind::read ? s.read : s.write;
        best = std::max(best, rate);
      }
    }
  }
  return true;
}

template <typename Counts>
shape_rate best_where(const std::vector<shape_rate>& tried, Counts&& counts) {
  shape_rate best;
  for (const shape_rate& s : tried) {
    best = counts(s) && s.both() > best.both() ? s : best;
  }
  return best;
}

bool is_equal(const shape_rate& s, const shape_rate& best) {
  return s.both() > 0 && s.both() >= best.both() * (1 - equal_rates);
}

/// The least depth with which blocks of this size do what they do at best.
unsigned depth_enough_for(byte_count block, const std::vector<shape_rate>& tried) {
  const shape_rate best = best_where(tried, [&](const shape_rate& s) { return s.shape.block == block; });
  unsigned least = best.shape.depth;
  for (const shape_rate& s : tried) {
    least = s.shape.block == block && is_equal(s, best) ? std::min(least, s.shape.depth) : least;
  }
  return least;
}

}  // namespace

std::vector<transfer_shape> shapes_to_try(unsigned depth, byte_count merge) {
  std::vector<byte_count> blocks(probed_blocks.begin(), probed_blocks.end());
  std::vector<unsigned> depths(probed_depths.begin(), probed_depths.end());
  if (depth != 0) {
    depths = {depth};
  }
  if (merge != 0) {
    blocks = {std::clamp(align_down(merge, blocks.front()), blocks.front(), blocks.back())};
  }
  std::vector<transfer_shape> shapes;
  for (const byte_count block : blocks) {
    for (const unsigned deep : depths) {
      const transfer_shape shape{block, deep};
      if (shape.in_flight() <= most_probed_in_flight) {
        shapes.push_back(shape);
      }
    }
  }
  std::sort(shapes.begin(), shapes.end(), [](const transfer_shape& a, const transfer_shape& b) {
    return a.in_flight() != b.in_flight() ? a.in_flight() < b.in_flight() : a.block > b.block;
  });
  return shapes;
}

std::optional<shape_rate> choose_shape(const std::vector<shape_rate>& tried) {
  const shape_rate best = best_where(tried, [](const shape_rate&) { return true; });
  if (best.both() <= 0) {
    return {};
  }
  transfer_shape chosen;
  for (const shape_rate& s : tried) {
    chosen.block = is_equal(s, best) ? std::max(chosen.block, s.shape.block) : chosen.block;
  }
  for (const shape_rate& s : tried) {
    if (s.both() > 0 && s.shape.block <= chosen.block) {
      chosen.depth = std::max(chosen.depth, depth_enough_for(s.shape.block, tried));
    }
  }
  const shape_rate known = best_where(
      tried, [&](const shape_rate& s) { return s.shape.block == chosen.block && s.shape.depth <= chosen.depth; });
  return shape_rate{chosen, known.read, known.write};
}

std::vector<shape_rate> measure_shapes(io::backend& backend, int file, byte_count bytes, byte_count alignment,
                                       const std::vector<transfer_shape>& shapes) noexcept {
  try {
    const time_point start = std::chrono::steady_clock::now();
    host_arena memory(largest_probed_block);
    std::memset(memory.memory().data(), 0, memory.size());
    load on(backend, file, alignment, memory.memory());
    // Blocks that were preallocated and never written are slower to write, and not read at all.
    const byte_count span = std::min(align_down(bytes, largest_probed_block), probed_bytes);
    static_cast<void>(on.run(operation_kind::write, {largest_probed_block, fill_depth}, span, fill_time, span));
    std::vector<shape_rate> found;
    for (const transfer_shape& shape : shapes) {
      found.push_back({shape, 0, 0});
    }
    if (on.failed() || !measure(on, on.moved(), found, start)) {
      return {};
    }
    return found;
  } catch (...) {  // no memory: measuring is a service
    return {};
  }
}

}  // namespace forebay::store_detail
