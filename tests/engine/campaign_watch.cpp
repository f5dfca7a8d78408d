#include "campaign_watch.hpp"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <utility>

namespace forebay::campaign {
namespace {

std::size_t entries_of(const char* directory) {
  const std::filesystem::directory_iterator all(directory);
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

std::string first_line(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

/// Each thread's name, state and where it waits in the kernel.
std::string picture_of_threads() {
  std::string picture;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    picture += "  thread " + task.path().filename().string() + " " + first_line(task.path() / "comm") + ": " +
               first_line(task.path() / "wchan") + ", system call " + first_line(task.path() / "syscall") + "\n";
  }
  return picture;
}

}  // namespace

watchdog::watchdog(std::string what, std::chrono::seconds limit)
    : what_(std::move(what)), thread_([this, limit] {
        std::unique_lock lock(mutex_);
        if (!changed_.wait_for(lock, limit, [this] { return over_; })) {
          std::fprintf(stderr, "HANG: no end after %lld s of\n%s\n%s", static_cast<long long>(limit.count()),
                       what_.c_str(), picture_of_threads().c_str());
          std::abort();
        }
      }) {}

watchdog::~watchdog() {
  {
    const std::scoped_lock lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

belongings belongings::now() {
  return {entries_of("/proc/self/task"), entries_of("/proc/self/fd") - 1};  // the listing has a descriptor of its own
}

std::string belongings::left_since(const belongings& before) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  belongings left = now();
  while (left.threads > before.threads && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::yield();
    left = now();
  }
  std::string more;
  if (left.threads > before.threads) {
    more += std::to_string(left.threads - before.threads) + " threads are left; ";
  }
  if (left.descriptors > before.descriptors) {
    more += std::to_string(left.descriptors - before.descriptors) + " descriptors are left; ";
  }
  return more;
}

std::string files_below(const std::filesystem::path& directory) {
  std::string all;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    all += entry.path().string() + "\n";
  }
  return all;
}

}  // namespace forebay::campaign
