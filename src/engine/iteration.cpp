#include <algorithm>
#include <bit>
#include <utility>

#include <fmt/format.h>

#include "engine/impl.hpp"

namespace forebay {

// Leases

lease::lease(lease&& other) noexcept
    : engine_(std::exchange(other.engine_, nullptr)), slot_(other.slot_), generation_(other.generation_) {}

lease& lease::operator=(lease&& other) noexcept {
  if (this != &other) {
    release();
    engine_ = std::exchange(other.engine_, nullptr);
    slot_ = other.slot_;
    generation_ = other.generation_;
  }
  return *this;
}

lease::~lease() { release(); }

void lease::release() noexcept {
  if (engine_ != nullptr) {
    std::exchange(engine_, nullptr)->impl_->sched->release(slot_);
  }
}

std::span<std::byte> lease::bytes(tensor_id tensor) const {
  FOREBAY_EXPECTS(engine_ != nullptr, "the lease has ended");
  static_cast<void>(engine_->spec(tensor));
  return engine_->impl_->sched->lease_bytes(slot_, generation_, tensor);
}

std::span<std::byte> lease::bytes(tensor_id tensor, dtype expected) const {
  FOREBAY_EXPECTS(engine_ != nullptr, "the lease has ended");
  if (engine_->spec(tensor).type != expected) {
    throw usage_error(fmt::format("tensor '{}' is {}, not {}", engine_->spec(tensor).name,
                                  to_string(engine_->spec(tensor).type), to_string(expected)));
  }
  return engine_->impl_->sched->lease_bytes(slot_, generation_, tensor);
}

std::span<std::byte> lease::workspace() const {
  FOREBAY_EXPECTS(engine_ != nullptr, "the lease has ended");
  return engine_->impl_->sched->lease_workspace(slot_, generation_);
}

// Iterations

void engine::impl::expect_idle() {
  {
    const std::scoped_lock lock(sched->mutex());
    sched->throw_if_failed();
  }
  FOREBAY_EXPECTS(!sched->has_live_leases(), "a lease of an earlier iteration still lives: end it first");
  sched->join();
}

void engine::impl::start_iteration(std::uint64_t n, bool record) {
  FOREBAY_EXPECTS(!iterating, "an iteration is under way: finish it first");
  expect_idle();
  const plan::machine rates = sched->measure_machine();
  reconsider_recomputing(rates);
  std::fill(given_up_to.begin(), given_up_to.end(), detail::recomputed_order::none);
  iterating = true;
  recording = record;
  recorded = order{};
  number = n;
  const std::vector<double> durations = sched->step_seconds();
  // A forecast costs tens of milliseconds on a large order: often at first, while measurements settle, then now and
  // then.
  constexpr std::uint64_t refresh = 64;
  if (std::has_single_bit(iterations) || iterations % refresh == 0 || expected.bound_seconds == 0.0) {
    expected = outlook.update(durations, rates);
  }
  sched->use_measurements(durations, rates);
  keep_planning(durations, rates);
  // The first iterations are timed, then one in eight: timing costs a callback per step.
  constexpr std::uint64_t settle = 4;
  constexpr std::uint64_t every = 8;
  sched->measure_steps(iterations < settle || iterations % every == 0);
  ++iterations;
  waited_before = compute->waited();
  began = std::chrono::steady_clock::now();
  show_plan();
  before = sched->totals();
  read_before = store == nullptr ? 0 : store->bytes_read();
  written_before = store == nullptr ? 0 : store->bytes_written();
}

iteration_report engine::impl::end_iteration() {
  FOREBAY_EXPECTS(!sched->has_live_leases(), "a lease still lives: end all leases before finish");
  try {
    sched->join();
  } catch (...) {
    sched->fail(std::current_exception());
    throw;
  }
  sched->drop_activations();
  bool followed = false;
  {
    const std::scoped_lock lock(sched->mutex());
    sched->throw_if_failed();
    followed = sched->following_whole_iterations();
  }
  iterating = false;
  const detail::scheduler::counters now = sched->totals();
  iteration_report r;
  r.number = number;
  r.seconds = to_seconds(std::chrono::steady_clock::now() - began);
  planning.last_seconds = r.seconds;
  advisor.note(r.seconds);
  r.recomputations =
      static_cast<std::uint32_t>(std::count_if(running.first_step.begin(), running.first_step.end(),
                                               [](std::uint32_t s) { return s != detail::recomputed_order::none; }));
  r.stall_seconds = to_seconds(now.stall - before.stall + compute->waited() - waited_before);
  const plan::link_volume& required = outlook.required();
  r.required = {required.h2d, required.d2h, required.storage_read, required.storage_written};
  r.planned = followed;
  r.predicted_seconds = followed ? planning.timed.period : expected.predicted_seconds;
  r.bound_seconds = bound_seconds();
  r.misses = now.misses - before.misses;
  r.moved.h2d = now.h2d - before.h2d;
  r.moved.d2h = now.d2h - before.d2h;
  if (store != nullptr) {
    r.moved.storage_read = store->bytes_read() - read_before;
    r.moved.storage_written = store->bytes_written() - written_before;
  }
  r.peak = {device_account.peak(), host_account.peak(), store == nullptr ? 0 : store->peak()};
  on_the_spot.clear();
  return r;
}

void engine::impl::adopt_recorded() {
  order steps = std::exchange(recorded, order{});
  if (std::exchange(recording, false) && !steps.steps().empty()) {
    adopt(std::move(steps), {});
  }
}

void engine::impl::abandon_iteration() noexcept {
  iterating = false;
  recording = false;
  try {
    sched->join();
    if (!sched->has_live_leases()) {
      sched->drop_activations();
      on_the_spot.clear();
    }
  } catch (...) {  // the failure is the stream's; the next call reports it
    sched->fail(std::current_exception());
  }
}

const detail::step_plan& engine::impl::plan_on_the_spot(std::string_view name, const std::vector<access>& accesses,
                                                        const step_options& step) {
  const std::scoped_lock setup(setup_mutex);
  order described;
  described.step(name, accesses, step);
  check_tensors(described);
  const std::vector<access>& united = described.steps().front().accesses;
  for (const access& a : united) {
    materialise(a.tensor);
  }
  detail::layout l = lay_out(described);
  detail::step_plan p = plan_step(described.steps().front(), l, 0);
  p.position.reset();
  on_the_spot.push_back(std::move(p));
  return on_the_spot.back();
}

void engine::impl::note_recorded(std::string_view name, const std::vector<access>& accesses, const step_options& step) {
  const std::scoped_lock setup(setup_mutex);
  if (recording) {
    recorded.step(name, accesses, step);
  }
}

iteration engine::begin(std::uint64_t number) {
  FOREBAY_EXPECTS(impl_->has_order, "set an order, or record one, before the first iteration");
  impl_->start_iteration(number, false);
  return {*this, number};
}

iteration engine::record(std::uint64_t number) {
  impl_->start_iteration(number, true);
  return {*this, number};
}

iteration::iteration(iteration&& other) noexcept
    : engine_(std::exchange(other.engine_, nullptr)), number_(other.number_) {}

iteration::~iteration() {
  if (engine_ != nullptr) {
    engine_->impl_->abandon_iteration();
  }
}

lease engine::grant(const detail::step_plan& step, stream* on) {
  const place wanted = on == nullptr ? place::host : place::device;
  if (step.where != wanted) {
    throw usage_error(fmt::format("step '{}' runs on the {}: acquire it {}", step.name,
                                  step.where == place::device ? "device" : "host",
                                  step.where == place::device ? "with a stream" : "without a stream"));
  }
  lease l;
  l.slot_ = impl_->sched->acquire(step, on);
  l.generation_ = impl_->sched->lease_generation(l.slot_);
  l.engine_ = this;
  return l;
}

lease iteration::acquire(step_id step, stream& on) {
  FOREBAY_EXPECTS(engine_ != nullptr, "the iteration is finished");
  FOREBAY_EXPECTS(step.valid() && step.index < engine_->impl_->current.steps().size(), "the step is not of the order");
  return engine_->grant_complete(engine_->impl_->sched->step(engine_->impl_->running.position_of[step.index]), &on);
}

lease iteration::acquire(step_id step) {
  FOREBAY_EXPECTS(engine_ != nullptr, "the iteration is finished");
  FOREBAY_EXPECTS(step.valid() && step.index < engine_->impl_->current.steps().size(), "the step is not of the order");
  return engine_->grant_complete(engine_->impl_->sched->step(engine_->impl_->running.position_of[step.index]), nullptr);
}

lease iteration::acquire(std::string_view name, const std::vector<access>& accesses, stream& on,
                         const step_options& options) {
  FOREBAY_EXPECTS(engine_ != nullptr, "the iteration is finished");
  lease granted = engine_->grant_complete(engine_->impl_->plan_on_the_spot(name, accesses, options), &on);
  engine_->impl_->note_recorded(name, accesses, options);
  return granted;
}

lease iteration::acquire(std::string_view name, const std::vector<access>& accesses, const step_options& options) {
  FOREBAY_EXPECTS(engine_ != nullptr, "the iteration is finished");
  step_options on_host = options;
  on_host.where = place::host;
  lease granted = engine_->grant_complete(engine_->impl_->plan_on_the_spot(name, accesses, on_host), nullptr);
  engine_->impl_->note_recorded(name, accesses, on_host);
  return granted;
}

iteration_report iteration::finish() {
  FOREBAY_EXPECTS(engine_ != nullptr, "the iteration is finished");
  const iteration_report report = engine_->impl_->end_iteration();
  std::exchange(engine_, nullptr)->impl_->adopt_recorded();  // it is over, whether its steps can be an order or not
  return report;
}

}  // namespace forebay
