// The thread that moves blocks, and the table's life.
#include "engine/scheduler.hpp"

#include <algorithm>
#include <utility>

#include <forebay/base/contract.hpp>

namespace forebay::detail {

scheduler::scheduler(const parts& p)
    : device_(*p.on),
      store_(p.store),
      host_memory_(p.host),
      chunk_(p.chunk),
      prefetch_enabled_(p.prefetch),
      poison_(p.poison),
      stall_limit_(p.stall_limit),
      timeline_(p.timeline),
      device_arena_(*p.device_account, p.on->arena().size(), p.granularity),
      host_arena_(*p.host_account, p.host.size(), p.granularity) {
  if (timeline_ != nullptr) {
    compute_lane_ = timeline_->lane("compute");
    stall_lane_ = timeline_->lane("stall");
  }
  mover_ = std::make_unique<mover>(
      device_, store_, staging_, mover_options{}, [this] { kick(); }, timeline_);
  thread_ = std::thread([this] { run(); });
}

scheduler::~scheduler() {
  callbacks_.close();
  {
    const std::scoped_lock lock(wake_mutex_);
    stop_ = true;
    woken_.notify_one();
  }
  thread_.join();
  mover_.reset();  // drains what is in flight; its wake-ups still find the members above
  for (const tier t : {tier::device, tier::host}) {
    std::vector<extent> places;
    for (const auto& [offset, who] : arena(t).occupants()) {
      places.push_back({offset, who.bytes});
    }
    for (const extent& place : places) {
      arena(t).free(place);
    }
  }
}

// The thread

void scheduler::kick() noexcept {
  const std::scoped_lock lock(wake_mutex_);
  if (!wake_) {
    wake_ = true;
    woken_.notify_one();
  }
}

void scheduler::run() {
  for (;;) {
    {
      std::unique_lock lock(wake_mutex_);
      woken_.wait(lock, [this] { return wake_ || stop_; });
      if (stop_) {
        return;
      }
      wake_ = false;
    }
    const std::scoped_lock lock(mutex_);
    try {
      pass();
    } catch (...) {
      latch(std::current_exception());
      serve_requests();
    }
  }
}

// One pass settles everything that has happened: each round may free memory that lets the next one place more.
void scheduler::pass() {
  do {
    changed_table_ = false;
    std::vector<move*> ended;
    mover_->advance(ended);
    for (move* m : ended) {
      end_move(static_cast<block_move&>(*m));
    }
    if (!ended.empty()) {
      changed_.notify_all();
    }
    reap();
    resume_spills();
    serve_requests();
    const bool starving = std::any_of(requests_.begin(), requests_.end(), [](const request* r) { return r->unplaced; });
    if (follow_.active) {
      follow();
    } else if (!starving && !pausing_) {
      prefetch();
    }
    if (!changed_table_) {
      fail_if_stuck();
    }
  } while (changed_table_);
}

void scheduler::latch(const std::exception_ptr& failure) {
  if (failure_ == nullptr) {
    failure_ = failure;
    quiet_ = false;
    changed_.notify_all();
  }
}

void scheduler::fail(std::exception_ptr failure) {
  const std::scoped_lock lock(mutex_);
  latch(failure);
  kick();
}

void scheduler::throw_if_failed() {
  if (failure_ != nullptr) {
    std::rethrow_exception(failure_);
  }
}

// The table

std::uint32_t scheduler::add_block(block_record block) {
  block.index = block_count();
  if (store_ == nullptr && !block.scratch) {
    for (const std::uint32_t i : scratches_) {  // homes never move, so nothing that can may lie in their way
      const replica& idle = blocks_[i].host;
      if (idle.now == replica::state::placed && !idle.held() && idle.victim_of == no_block) {
        drop_copy(i, tier::host);
      }
    }
    const auto place = host_arena_.allocate(block.bytes, {occupant::kind::block, block.index, block.bytes});
    if (!place) {
      throw capacity_error("the host tier has no room for the home of " + block.name + ": " + picture());
    }
    block.host.place = *place;
    block.host.fixed = true;
    fixed_host_bytes_ += place->bytes;
  }
  blocks_.push_back(std::move(block));
  return blocks_.back().index;
}

tensor_record& scheduler::add_tensor() {
  tensors_.emplace_back();
  return tensors_.back();
}

void scheduler::add_staging(std::size_t chunks) {
  for (std::size_t i = 0; i < chunks; ++i) {
    // Staging never moves: one run at the start of the tier, so that it never cuts the rest in two.
    const extent place{staging_.size() * chunk_, chunk_};
    if (!host_arena_.allocate_at(place, {occupant::kind::staging, 0, chunk_})) {
      return;
    }
    staging_.add(address(tier::host, place));
  }
}

void scheduler::set_order(std::vector<step_plan> steps, plan::next_use next) {
  set_schedule(nullptr, 0, 0);
  steps_ = std::move(steps);
  next_use_ = std::move(next);
  move_cursor(0);
  clock_.reset(steps_.size());
  known_seconds_.clear();
  quiet_ = false;
  kick();
}

scheduler::counters scheduler::totals() {
  const std::scoped_lock lock(mutex_);
  return {misses_, stall_, mover_->h2d_use().bytes, mover_->d2h_use().bytes};
}

void scheduler::measure_steps(bool on) {
  const std::scoped_lock lock(mutex_);
  measuring_ = on;
}

void scheduler::use_measurements(const std::vector<double>& step_seconds, const plan::machine& rates) {
  const std::scoped_lock lock(mutex_);
  if (step_seconds.size() != steps_.size()) {
    return;
  }
  known_seconds_ = step_seconds;
  // An unlimited rate is one that nobody knows: it counts as instant, and look-ahead then evicts as late as it can.
  device_seconds_per_byte_ = 1.0 / rates.h2d_rate + 1.0 / rates.d2h_rate;
  host_seconds_per_byte_ = 1.0 / plan::storage_read_rate(rates) + 1.0 / plan::storage_write_rate(rates);
}

plan::machine scheduler::measure_machine() {
  const std::scoped_lock lock(mutex_);
  const time_point now = std::chrono::steady_clock::now();
  const std::size_t paths = store_ == nullptr ? 0 : store_->path_count();
  rates_.resize(2 + 2 * paths);
  plan::machine m;
  m.device_capacity = device_arena_.capacity();
  m.host_capacity = host_arena_.capacity() - staging_.size() * chunk_;
  m.h2d_rate = rates_[0].update(mover_->h2d_use(), now);
  m.d2h_rate = rates_[1].update(mover_->d2h_use(), now);
  for (std::size_t path = 0; path < paths; ++path) {
    const double read = rates_[2 + 2 * path].update(mover_->read_use(path), now);
    const double write = rates_[3 + 2 * path].update(mover_->write_use(path), now);
    m.storage.push_back({read, write});
  }
  known_machine_ = m;
  return m;
}

plan::machine scheduler::known_machine() const {
  const std::scoped_lock lock(mutex_);
  return known_machine_;
}

}  // namespace forebay::detail
