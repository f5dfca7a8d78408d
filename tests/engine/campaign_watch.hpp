#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>

namespace forebay::campaign {

/// Ends the process, with what it was doing and a picture of its threads, when its life lasts longer than a limit: a
/// hang becomes a failure that says where.
class watchdog {
 public:
  watchdog(std::string what, std::chrono::seconds limit);
  ~watchdog();
  watchdog(const watchdog&) = delete;
  watchdog& operator=(const watchdog&) = delete;

 private:
  std::string what_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::thread thread_;
};

/// What a run could leave behind in this process.
struct belongings {
  std::size_t threads = 0;
  std::size_t descriptors = 0;

  [[nodiscard]] static belongings now();
  /// What there is more than at `before`; waits a moment for threads that have been joined to leave the kernel's list.
  [[nodiscard]] static std::string left_since(const belongings& before);
};

/// The files and directories below `directory`, a line each.
[[nodiscard]] std::string files_below(const std::filesystem::path& directory);

}  // namespace forebay::campaign
