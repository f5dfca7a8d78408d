#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace forebay::testing {

/// What one recording of a fake event knows.
struct fake_recording {
  bool done = false;
  std::chrono::steady_clock::time_point at;
};

/// The one lock and bell of the fake run-time: recordings and queues change under it.
struct fake_monitor {
  std::mutex mutex;
  std::condition_variable changed;
};

/// Tasks in order on a thread.
class fake_stream {
 public:
  explicit fake_stream(fake_monitor& monitor) : monitor_(monitor), thread_([this] { run(); }) {}
  ~fake_stream() {
    {
      const std::scoped_lock lock(monitor_.mutex);
      closing_ = true;
      monitor_.changed.notify_all();
    }
    thread_.join();
  }
  fake_stream(const fake_stream&) = delete;
  fake_stream& operator=(const fake_stream&) = delete;

  void enqueue(std::function<void()> task) {
    const std::scoped_lock lock(monitor_.mutex);
    tasks_.push_back(std::move(task));
    monitor_.changed.notify_all();
  }
  /// With the monitor's lock held.
  [[nodiscard]] bool idle() const { return tasks_.empty(); }

 private:
  void run() {
    std::unique_lock lock(monitor_.mutex);
    for (;;) {
      monitor_.changed.wait(lock, [this] { return closing_ || !tasks_.empty(); });
      if (tasks_.empty()) {
        return;
      }
      lock.unlock();
      tasks_.front()();  // stays in the queue while it runs: the stream is not idle
      lock.lock();
      tasks_.pop_front();
      monitor_.changed.notify_all();
    }
  }

  fake_monitor& monitor_;
  std::deque<std::function<void()>> tasks_;
  bool closing_ = false;
  std::thread thread_;
};

}  // namespace forebay::testing
