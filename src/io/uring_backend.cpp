#include "io/uring_backend.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <exception>
#include <utility>

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <forebay/base/error.hpp>

namespace forebay::io {
namespace {

constexpr unsigned largest_depth = 16384;
constexpr std::size_t least_flights = 256;  // of all files together
constexpr std::uint64_t wake_tag = 0;
constexpr unsigned failed_wait_limit = 64;  // about 0.6 s of nothing but errors
constexpr std::chrono::microseconds shortest_back_off{100};
constexpr unsigned longest_back_off_shift = 7;

std::string memlock_limit() {
  rlimit limit{};
  ::getrlimit(RLIMIT_MEMLOCK, &limit);
  return limit.rlim_cur == RLIM_INFINITY ? "unlimited" : format_bytes(limit.rlim_cur);
}

}  // namespace

uring_backend::uring_backend(const backend_options& options)
    : work_(options),
      depth_(std::clamp(options.depth, 1U, largest_depth)),
      queue_(depth_, options.merge),
      flights_(std::max<std::size_t>(least_flights, std::size_t{4} * depth_)) {
  wake_fd_ = ::eventfd(0, EFD_CLOEXEC);
  if (wake_fd_ < 0) {
    throw unsupported_error("io_uring is not usable: eventfd: " + describe_errno(errno));
  }
  try {
    thread_ = start_service_thread("forebay-uring", [this] { serve(); });
  } catch (const io_error& refused) {
    ::close(wake_fd_);
    throw unsupported_error(std::string("io_uring is not usable: ") + refused.what());
  }
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return opened_; });
  if (!refusal_.empty()) {
    lock.unlock();
    thread_.join();
    ::close(wake_fd_);
    throw unsupported_error("io_uring is refused: " + refusal_);
  }
}

uring_backend::~uring_backend() {
  if (!process_.same_process()) {
    thread_.detach();
    return;
  }
  stop_.store(true);
  wake();
  thread_.join();
  ::close(wake_fd_);
}

void uring_backend::submit(operation& op) noexcept {
  detail::piecework::start(op);
  inbox_.push(op);
  // The ring's thread says that it is about to sleep before it looks into the inbox for the last time; either it sees
  // this operation or we see the flag.
  if (asleep_.exchange(false)) {
    wake();
  }
}

void uring_backend::wake() noexcept {
  const std::uint64_t one = 1;
  while (::write(wake_fd_, &one, sizeof one) < 0 && errno == EINTR) {
  }
}

void uring_backend::call_on_ring(unique_function<void()> work) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !call_waiting_; });
  call_ = std::move(work);
  call_waiting_ = true;
  wake();
  changed_.wait(lock, [this] { return !call_waiting_; });
}

void uring_backend::run_call() {
  const std::scoped_lock lock(mutex_);
  if (call_waiting_) {
    call_();
    call_waiting_ = false;
    changed_.notify_all();
  }
}

void uring_backend::register_memory(std::span<std::byte> memory) {
  call_on_ring([this, memory] {
    memory_.push_back(memory);
    const int told = work_.refused(interceptor::service::registered_memory);
    const uring_ring::registration done =
        told != 0 ? uring_ring::registration{told, 0} : ring_->register_buffers(memory_);
    if (done.refusal != 0) {
      byte_count need = 0;
      for (const std::span<std::byte> range : memory_) {
        need += range.size();
      }
      degradations_.push_back(
          fmt::format("registered I/O buffers are refused: {}; {} must be lockable and the limit (RLIMIT_MEMLOCK) is "
                      "{}; {} are registered, transfers elsewhere go unregistered",
                      describe_errno(done.refusal), format_bytes(need), memlock_limit(), format_bytes(done.bytes)));
    }
  });
}

void uring_backend::register_files(std::span<const int> files) {
  work_.announce(files);
  call_on_ring([this, files] {
    files_.insert(files_.end(), files.begin(), files.end());
    queue_.set_files(files_);
    const int told = work_.refused(interceptor::service::registered_files);
    const int refused = told != 0 ? told : ring_->register_files(files_);
    if (refused != 0) {
      degradations_.push_back(fmt::format("registered files are refused: {}; {} files go unregistered",
                                          describe_errno(refused), files_.size()));
    }
  });
}

void uring_backend::tune(unsigned depth, byte_count merge) {
  // Where the ring or the table of flights is smaller than the depth, they bound it.
  std::exception_ptr refusal;
  call_on_ring([this, depth, merge, &refusal] {
    try {
      queue_.set_limits(depth, merge);
    } catch (...) {
      refusal = std::current_exception();
    }
  });
  if (refusal != nullptr) {
    std::rethrow_exception(refusal);
  }
}

std::vector<std::string> uring_backend::degradations() const {
  const std::scoped_lock lock(mutex_);
  return degradations_;
}

bool uring_backend::open_ring() {
  const int told = work_.refused(interceptor::service::ring);
  const std::string refusal = told != 0 ? describe_errno(told) : ring_->open(depth_);
  const std::scoped_lock lock(mutex_);
  refusal_ = refusal;
  opened_ = true;
  changed_.notify_all();
  return refusal.empty();
}

void uring_backend::serve() {
  uring_ring ring;  // lives and dies on its only thread
  ring_ = &ring;
  if (!open_ring()) {
    return;
  }
  for (;;) {
    run_call();
    take_newcomers();
    fire_timers();
    issue();
    if (stop_.load() && idle()) {
      return;
    }
    wait();
    reap();
  }
}

bool uring_backend::idle() const noexcept {
  return flights_.empty() && queue_.empty() && timers_.empty() && inbox_.empty();
}

void uring_backend::arm_wake() noexcept {
  io_uring_sqe* sqe = wake_armed_ ? nullptr : ring_->next_sqe();
  if (sqe != nullptr) {
    io_uring_prep_read(sqe, wake_fd_, &wake_value_, sizeof wake_value_, 0);
    sqe->user_data = wake_tag;
    wake_armed_ = true;
  }
}

void uring_backend::fire_timers() noexcept {
  if (timers_.empty()) {
    return;
  }
  const time_point now = std::chrono::steady_clock::now();
  while (operation* op = timers_.pop_due(now)) {
    if (op->held) {
      op->held = false;
      settle(*op);
    } else {
      queue_.push_front(*op);
    }
  }
}

void uring_backend::take_newcomers() noexcept {
  if (!inbox_.empty()) {
    inbox_.take([this](operation& op) { queue_.push(op); });
  }
}

void uring_backend::issue() noexcept {
  arm_wake();
  while (ring_->has_room() && !flights_.full()) {
    take_newcomers();  // each time: what is urgent overtakes what waits
    operation* first = queue_.pop();
    if (first == nullptr) {
      return;
    }
    start(first);
  }
}

void uring_backend::start(operation* first) noexcept {
  const detail::begun_run begun = work_.begin_run(first);
  if (begun.run != nullptr) {
    ring_->prepare(*begun.run, work_, flights_.depart(*begun.run));
  } else {
    queue_.landed(*first);
  }
  queue_.push_front_all(begun.rest);
  if (begun.refused != nullptr) {
    land(*begun.refused);
  }
}

void uring_backend::wait() noexcept {
  // With every file's depth used up, a completion comes before a newcomer could start: nobody has to wake us then.
  asleep_.store(queue_.has_room() && !flights_.full());
  const bool more = !inbox_.empty() || (queue_.can_pop() && !flights_.full());
  const time_point deadline = more ? time_point{} : (timers_.empty() ? time_point::max() : timers_.earliest());
  const int status = ring_->submit_and_wait(deadline);
  asleep_.store(false);
  if (status == 0 || status == ETIME || status == EINTR) {
    failed_waits_ = 0;
  } else {
    wait_failed(status);
  }
}

/// The kernel took nothing this time (EAGAIN: no memory, EBUSY: completions to reap first). The loop reaps and tries
/// again after a pause. When nothing but errors comes for long, what the kernel has not seen fails with the errno; what
/// it has seen still owns its memory and is waited for.
void uring_backend::wait_failed(int error_number) noexcept {
  const auto pause = shortest_back_off * (1U << std::min(failed_waits_, longest_back_off_shift));
  std::this_thread::sleep_for(pause);
  if (++failed_waits_ < failed_wait_limit) {
    return;
  }
  detail::operation_list unseen;
  ring_->withdraw([&](std::uint64_t tag) {
    if (tag == wake_tag) {
      wake_armed_ = false;
      return;
    }
    operation* first = flights_.arrive(tag);
    queue_.landed(*first);
    for (operation* op = first; op != nullptr; op = op->together) {
      unseen.push(*op);
    }
  });
  while (operation* op = queue_.take_any()) {
    unseen.push(*op);
  }
  while (operation* op = unseen.pop()) {
    op->complete(*op, {error_number, op->done});
  }
}

void uring_backend::reap() noexcept {
  ring_->reap([this](std::uint64_t tag, int res) {
    if (tag == wake_tag) {
      wake_armed_ = false;
    } else if (operation* first = flights_.arrive(tag)) {
      queue_.landed(*first);
      ended(first, res);
    }
  });
}

void uring_backend::ended(operation* first, std::int64_t outcome) noexcept {
  const detail::ended_run result = work_.executed_run(first, outcome);
  queue_.push_front_all(result.rest);
  for (operation* op = result.landed; op != nullptr;) {
    operation* next = op->together;
    land(*op);  // `op` may be gone from here on
    op = next;
  }
}

void uring_backend::land(operation& op) noexcept {
  // Without faults and rate limits there is no deadline, and the clock is not read.
  if (op.not_before != time_point{} && detail::piecework::hold(op, std::chrono::steady_clock::now())) {
    timers_.push(op);
  } else {
    settle(op);
  }
}

void uring_backend::settle(operation& op) noexcept {
  const time_point now = op.outcome < 0 ? std::chrono::steady_clock::now() : time_point{};
  const detail::decision decided = work_.settle(op, now);
  switch (decided.what) {
    case detail::verdict::again:
      queue_.push_front(op);
      return;
    case detail::verdict::later:
      timers_.push(op);
      return;
    case detail::verdict::finished:
      op.complete(op, decided.how);
      return;
  }
}

}  // namespace forebay::io
