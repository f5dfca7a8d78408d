#include <forebay/testing/delayed_device.hpp>

#include <array>
#include <condition_variable>
#include <mutex>
#include <random>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include <forebay/base/contract.hpp>

namespace forebay::testing {
namespace {

constexpr std::size_t directions = 3;

std::size_t index(copy_direction direction) { return static_cast<std::size_t>(direction); }

const char* title(copy_direction direction) {
  constexpr std::array<const char*, directions> titles{"host-to-device", "device-to-host", "device-to-device"};
  return titles.at(index(direction));
}

}  // namespace

struct delayed_device::state {
  struct lane {
    duration max_delay{};
    std::mt19937_64 random;
    std::uint64_t copies = 0;
    std::uint64_t failing = 0;  // the number of the copy that fails; 0: none
    bool held = false;
  };

  struct verdict {
    duration delay{};
    bool fails = false;
    std::uint64_t number = 0;
  };

  [[nodiscard]] verdict next(copy_direction direction) {
    const std::scoped_lock lock(mutex);
    lane& l = lanes.at(index(direction));
    std::uniform_int_distribution<duration::rep> spread(0, l.max_delay.count());
    ++l.copies;
    return {duration(spread(l.random)), l.copies == l.failing, l.copies};
  }

  void pass(copy_direction direction, duration delay) {
    if (delay > duration::zero()) {
      std::this_thread::sleep_for(delay);
    }
    std::unique_lock lock(mutex);
    released.wait(lock, [&] { return !lanes.at(index(direction)).held; });
  }

  mutable std::mutex mutex;
  std::condition_variable released;
  std::array<lane, directions> lanes;
};

namespace {

class delayed_stream final : public stream {
 public:
  delayed_stream(std::unique_ptr<stream> inner, delayed_device::state& state, bool can_launch)
      : inner_(std::move(inner)), state_(state), can_launch_(can_launch) {}

  void copy(std::byte* to, const std::byte* from, byte_count bytes, copy_direction direction) override {
    const delayed_device::state::verdict v = state_.next(direction);
    const auto pass = [&state = state_, direction, delay = v.delay] { state.pass(direction, delay); };
    if (!v.fails) {
      can_launch_ ? inner_->launch(pass) : inner_->notify(pass);
      inner_->copy(to, from, bytes, direction);
      return;
    }
    const device_error failure(
        fmt::format("injected failure of {} copy {} ({} bytes)", title(direction), v.number, bytes));
    if (!can_launch_) {
      throw failure;
    }
    inner_->launch([pass, failure] {
      pass();
      throw failure;
    });
  }

  void launch(unique_function<void()> work) override { inner_->launch(std::move(work)); }
  void notify(unique_function<void()> callback) override { inner_->notify(std::move(callback)); }
  [[nodiscard]] stream_point record() override { return inner_->record(); }
  void wait(const stream& other, stream_point point) override {
    const auto* const delayed = dynamic_cast<const delayed_stream*>(&other);
    inner_->wait(delayed != nullptr ? *delayed->inner_ : other, point);
  }
  [[nodiscard]] bool passed(stream_point point) const noexcept override { return inner_->passed(point); }
  using stream::synchronize;
  void synchronize(stream_point point) override { inner_->synchronize(point); }
  [[nodiscard]] std::exception_ptr failure() const noexcept override { return inner_->failure(); }
  [[nodiscard]] time_point idle_since() const noexcept override { return inner_->idle_since(); }
  [[nodiscard]] duration waited() const noexcept override { return inner_->waited(); }
  [[nodiscard]] void* native_handle() const noexcept override { return inner_->native_handle(); }

 private:
  std::unique_ptr<stream> inner_;
  delayed_device::state& state_;
  bool can_launch_;
};

}  // namespace

delayed_device::delayed_device(std::unique_ptr<device> inner, const delayed_device_options& options)
    : inner_(std::move(inner)), state_(std::make_unique<state>()) {
  FOREBAY_EXPECTS(inner_ != nullptr, "a delayed device needs a device");
  const std::array<duration, directions> delays{options.max_h2d_delay, options.max_d2h_delay, options.max_d2d_delay};
  for (std::size_t i = 0; i < directions; ++i) {
    FOREBAY_EXPECTS(delays.at(i) >= duration::zero(), "a delay is not negative");
    state_->lanes.at(i).max_delay = delays.at(i);
    state_->lanes.at(i).random.seed(options.seed * directions + i);
  }
}

delayed_device::~delayed_device() = default;

std::string delayed_device::name() const { return inner_->name() + ", delayed"; }
std::span<std::byte> delayed_device::arena() const noexcept { return inner_->arena(); }
bool delayed_device::host_addressable() const noexcept { return inner_->host_addressable(); }
std::unique_ptr<stream> delayed_device::make_stream(stream_kind kind) {
  return std::make_unique<delayed_stream>(inner_->make_stream(kind), *state_, inner_->host_addressable());
}
void delayed_device::fill(std::byte* to, std::byte pattern, byte_count bytes) { inner_->fill(to, pattern, bytes); }
pin_result delayed_device::pin(std::span<std::byte> host_memory) { return inner_->pin(host_memory); }
void delayed_device::unpin(std::span<std::byte> host_memory) noexcept { inner_->unpin(host_memory); }

void delayed_device::fail_copy(copy_direction direction, std::uint64_t n) {
  FOREBAY_EXPECTS(n > 0, "copies are counted from 1");
  const std::scoped_lock lock(state_->mutex);
  state::lane& l = state_->lanes.at(index(direction));
  l.failing = l.copies + n;
}

void delayed_device::hold(copy_direction direction) {
  const std::scoped_lock lock(state_->mutex);
  state_->lanes.at(index(direction)).held = true;
}

void delayed_device::release(copy_direction direction) {
  const std::scoped_lock lock(state_->mutex);
  state_->lanes.at(index(direction)).held = false;
  state_->released.notify_all();
}

std::uint64_t delayed_device::copies(copy_direction direction) const {
  const std::scoped_lock lock(state_->mutex);
  return state_->lanes.at(index(direction)).copies;
}

}  // namespace forebay::testing
