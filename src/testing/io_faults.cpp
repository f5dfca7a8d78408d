#include <forebay/testing/io_faults.hpp>

#include <map>
#include <mutex>
#include <tuple>
#include <vector>

namespace forebay::testing {
namespace {

enum class effect : std::uint8_t { delay, shorten, underreport, fail, flip_bit };

struct fault {
  effect what;
  fault_trigger when;
  fault_filter where;
  int error_number = 0;
  duration least{};
  duration most{};
  std::uint64_t looked_at = 0;
  std::uint64_t strikes = 0;
};

/// splitmix64 (Steele, Lea, Flood 2014): one well-mixed word.
std::uint64_t mix(std::uint64_t z) {
  z += 0x9E3779B97F4A7C15U;
  z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31U);
}

double unit_interval(std::uint64_t word) { return static_cast<double>(word >> 11U) * 0x1p-53; }

bool looks_at(const fault_filter& where, const io::interceptor::transfer& t) {
  return (!where.kind || *where.kind == t.kind) && (where.file < 0 || where.file == t.file);
}

}  // namespace

struct io_faults::state {
  mutable std::mutex mutex;
  std::uint64_t seed = 1;
  std::vector<fault> faults;
  counts seen;
  // How often a place was moved. `before` counts, so that the calls for one transfer agree.
  std::map<std::tuple<io::operation_kind, int, byte_count>, std::uint64_t> visits;

  void add(const fault& f) {
    const std::scoped_lock lock(mutex);
    faults.push_back(f);
  }

  /// A random word of this transfer and this fault alone.
  [[nodiscard]] std::uint64_t word(const transfer& t, std::size_t index, std::uint64_t salt) {
    std::uint64_t w = mix(seed);
    const std::uint64_t visit = visits[{t.kind, t.file, t.offset}];
    for (const std::uint64_t part : {static_cast<std::uint64_t>(t.kind), t.offset, visit, index + 0U, salt}) {
      w = mix(w ^ part);
    }
    return w;
  }

  [[nodiscard]] bool strikes(std::size_t index, const transfer& t) {
    fault& f = faults[index];
    if (!looks_at(f.where, t)) {
      return false;
    }
    const std::uint64_t number = ++f.looked_at;
    if (number < f.when.first || (number - f.when.first) % f.when.every != 0 || f.strikes >= f.when.most ||
        unit_interval(word(t, index, 0)) >= f.when.probability) {
      return false;
    }
    ++f.strikes;
    return true;
  }
};

io_faults::io_faults(std::uint64_t seed) : state_(std::make_unique<state>()) { state_->seed = seed; }
io_faults::~io_faults() = default;

io_faults& io_faults::delay(duration least, duration most, fault_trigger when, fault_filter where) {
  state_->add({effect::delay, when, where, 0, least, most});
  return *this;
}

io_faults& io_faults::shorten(fault_trigger when, fault_filter where) {
  state_->add({effect::shorten, when, where});
  return *this;
}

io_faults& io_faults::underreport(fault_trigger when, fault_filter where) {
  state_->add({effect::underreport, when, where});
  return *this;
}

io_faults& io_faults::fail(int error_number, fault_trigger when, fault_filter where) {
  state_->add({effect::fail, when, where, error_number});
  return *this;
}

io_faults& io_faults::flip_bit(fault_trigger when, fault_filter where) {
  where.kind = io::operation_kind::read;
  state_->add({effect::flip_bit, when, where});
  return *this;
}

void io_faults::clear() {
  const std::scoped_lock lock(state_->mutex);
  state_->faults.clear();
}

io_faults::counts io_faults::seen() const {
  const std::scoped_lock lock(state_->mutex);
  return state_->seen;
}

std::int64_t io_faults::before(const transfer& t) noexcept {
  const std::scoped_lock lock(state_->mutex);
  ++state_->seen.transfers;
  ++state_->visits[{t.kind, t.file, t.offset}];
  for (std::size_t i = 0; i < state_->faults.size(); ++i) {
    const effect what = state_->faults[i].what;
    if (what == effect::fail && state_->strikes(i, t)) {
      ++state_->seen.failed;
      return -std::int64_t{state_->faults[i].error_number};
    }
    if (what == effect::shorten && t.bytes > 1 && state_->strikes(i, t)) {
      ++state_->seen.shortened;
      return static_cast<std::int64_t>(1 + state_->word(t, i, 1) % (t.bytes - 1));
    }
  }
  return 0;
}

time_point io_faults::hold_until(const transfer& t) noexcept {
  const std::scoped_lock lock(state_->mutex);
  duration all{};
  for (std::size_t i = 0; i < state_->faults.size(); ++i) {
    const fault& f = state_->faults[i];
    if (f.what == effect::delay && state_->strikes(i, t)) {
      const auto spread = static_cast<double>((f.most - f.least).count());
      all += f.least + duration(static_cast<duration::rep>(spread * unit_interval(state_->word(t, i, 1))));
      ++state_->seen.delayed;
    }
  }
  return all == duration{} ? time_point{} : std::chrono::steady_clock::now() + all;
}

std::int64_t io_faults::after(const transfer& t, std::int64_t outcome) noexcept {
  const std::scoped_lock lock(state_->mutex);
  for (std::size_t i = 0; i < state_->faults.size() && outcome > 0; ++i) {
    const effect what = state_->faults[i].what;
    if (what == effect::underreport && outcome > 1 && state_->strikes(i, t)) {
      outcome = static_cast<std::int64_t>(1 + state_->word(t, i, 1) % static_cast<std::uint64_t>(outcome - 1));
      ++state_->seen.underreported;
    } else if (what == effect::flip_bit && state_->strikes(i, t)) {
      const std::uint64_t bit = state_->word(t, i, 1) % (static_cast<std::uint64_t>(outcome) * 8);
      t.memory[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
      ++state_->seen.flipped;
    }
  }
  return outcome;
}

}  // namespace forebay::testing
