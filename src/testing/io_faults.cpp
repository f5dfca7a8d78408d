#include <forebay/testing/io_faults.hpp>

#include <mutex>
#include <utility>

#include "testing/detail/armed_script.hpp"
#include "testing/reordering_backend.hpp"

namespace forebay::testing {
namespace {

fault made(fault_effect what, fault_trigger when, fault_filter where) {
  fault f;
  f.what = what;
  f.when = when;
  f.where = where;
  return f;
}

}  // namespace

struct io_faults::state {
  explicit state(std::uint64_t seed) : script(seed) {}
  mutable std::mutex mutex;
  detail::armed_script script;
};

io_faults::io_faults(std::uint64_t seed) : state_(std::make_unique<state>(seed)) {}

io_faults::io_faults(const fault_script& script, std::uint64_t seed) : io_faults(seed) {
  for (const fault& f : script.faults) {
    add(f);
  }
}

io_faults::~io_faults() = default;

void io_faults::install(io::backend_options& options) {
  {
    const std::scoped_lock lock(state_->mutex);
    state_->script.reorders_elsewhere();
  }
  options.faults = this;
  options.wrap = [inner_wrap = options.wrap, this](std::unique_ptr<io::backend> made) -> std::unique_ptr<io::backend> {
    if (inner_wrap != nullptr) {
      made = inner_wrap(std::move(made));
    }
    const auto choose = [this](const io::operation& op) {
      const std::scoped_lock lock(state_->mutex);
      return state_->script.disorder_of(op);
    };
    return std::make_unique<reordering_backend>(std::move(made), choose);
  };
}

io_faults& io_faults::add(const fault& f) {
  const std::scoped_lock lock(state_->mutex);
  state_->script.add(f);
  return *this;
}

io_faults& io_faults::delay(duration least, duration most, fault_trigger when, fault_filter where) {
  fault f = made(fault_effect::delay, when, where);
  f.least = least;
  f.most = most;
  return add(f);
}

io_faults& io_faults::reorder(std::uint64_t later, duration limit, fault_trigger when, fault_filter where) {
  fault f = made(fault_effect::reorder, when, where);
  f.later = later;
  f.most = limit;
  return add(f);
}

io_faults& io_faults::shorten(fault_trigger when, fault_filter where) {
  return add(made(fault_effect::shorten, when, where));
}

io_faults& io_faults::underreport(fault_trigger when, fault_filter where) {
  return add(made(fault_effect::underreport, when, where));
}

io_faults& io_faults::fail(int error_number, fault_trigger when, fault_filter where) {
  fault f = made(fault_effect::fail, when, where);
  f.error_number = error_number;
  return add(f);
}

io_faults& io_faults::tear(fault_trigger when, fault_filter where) {
  return add(made(fault_effect::tear, when, where));
}

io_faults& io_faults::stale_read(fault_trigger when, fault_filter where) {
  return add(made(fault_effect::stale_read, when, where));
}

io_faults& io_faults::stale_completion(fault_trigger when, fault_filter where) {
  return add(made(fault_effect::stale_completion, when, where));
}

io_faults& io_faults::flip_bit(fault_trigger when, fault_filter where) {
  return add(made(fault_effect::flip_bit, when, where));
}

io_faults& io_faults::refuse(service wanted, int error_number) {
  fault f = made(fault_effect::refuse, {}, {});
  f.service = wanted;
  f.error_number = error_number;
  return add(f);
}

void io_faults::clear() {
  const std::scoped_lock lock(state_->mutex);
  state_->script.clear();
}

io_faults::counts io_faults::seen() const {
  const std::scoped_lock lock(state_->mutex);
  return state_->script.seen();
}

int io_faults::refuse(service wanted) noexcept {
  const std::scoped_lock lock(state_->mutex);
  return state_->script.refuse(wanted);
}

void io_faults::announced(std::span<const int> files) noexcept {
  const std::scoped_lock lock(state_->mutex);
  state_->script.announced(files);
}

std::int64_t io_faults::before(const transfer& t) noexcept {
  const std::scoped_lock lock(state_->mutex);
  return state_->script.before(t);
}

time_point io_faults::hold_until(const transfer& t) noexcept {
  const std::scoped_lock lock(state_->mutex);
  const duration held = state_->script.hold(t);
  return held == duration{} ? time_point{} : std::chrono::steady_clock::now() + held;
}

std::int64_t io_faults::after(const transfer& t, std::int64_t outcome) noexcept {
  const std::scoped_lock lock(state_->mutex);
  return state_->script.after(t, outcome);
}

}  // namespace forebay::testing
