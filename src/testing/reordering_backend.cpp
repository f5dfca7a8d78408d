#include "testing/reordering_backend.hpp"

#include <algorithm>
#include <utility>

#include <forebay/io/service_thread.hpp>

namespace forebay::testing {

reordering_backend::reordering_backend(std::unique_ptr<io::backend> inner, chooser choose)
    : choose_(std::move(choose)),
      inner_(std::move(inner)),
      thread_(io::start_service_thread("reorder", [this] { serve(); })) {}

reordering_backend::~reordering_backend() {
  {
    const std::scoped_lock lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void reordering_backend::submit(io::operation& op) noexcept {
  const std::optional<disorder> chosen = choose_(op);
  {
    const std::scoped_lock lock(mutex_);
    ++submitted_;
    if (chosen && !stop_) {
      held_.push_back({this, &op, op.complete, op.context, submitted_ + chosen->later, chosen->limit});
      op.complete = &arrive;
      op.context = &held_.back();
    }
    if (releasable() != held_.end()) {
      changed_.notify_all();
    }
  }
  inner_->submit(op);
}

void reordering_backend::arrive(io::operation& op, io::result outcome) noexcept {
  auto& mine = *static_cast<held_operation*>(op.context);
  reordering_backend& self = *mine.owner;
  const std::scoped_lock lock(self.mutex_);
  mine.arrived = true;
  mine.outcome = outcome;
  mine.until = std::chrono::steady_clock::now() + mine.limit;
  self.changed_.notify_all();
}

/// The newest of those whose time has come: disorder also among themselves.
reordering_backend::holdings::iterator reordering_backend::releasable() {
  const time_point now = std::chrono::steady_clock::now();
  const auto found = std::find_if(held_.rbegin(), held_.rend(), [&](const held_operation& h) {
    return h.arrived && (stop_ || submitted_ >= h.release_at || now >= h.until);
  });
  return found == held_.rend() ? held_.end() : std::prev(found.base());
}

time_point reordering_backend::next_limit() const {
  time_point first = time_point::max();
  for (const held_operation& h : held_) {
    first = h.arrived ? std::min(first, h.until) : first;
  }
  return first;
}

void reordering_backend::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    const auto next = releasable();
    if (next != held_.end()) {
      const held_operation mine = *next;
      held_.erase(next);
      lock.unlock();
      mine.op->complete = mine.complete;
      mine.op->context = mine.context;
      mine.complete(*mine.op, mine.outcome);
      lock.lock();
    } else if (stop_ && held_.empty()) {
      return;
    } else if (const time_point limit = next_limit(); limit == time_point::max()) {
      changed_.wait(lock);
    } else {
      changed_.wait_until(lock, limit);
    }
  }
}

}  // namespace forebay::testing
