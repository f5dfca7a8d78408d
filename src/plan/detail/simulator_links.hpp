#pragma once

#include <array>
#include <cstdint>
#include <queue>
#include <vector>

#include <forebay/plan/machine.hpp>
#include <forebay/plan/trace.hpp>

namespace forebay::plan::detail {

enum class link : std::uint8_t { h2d, d2h, storage_read, storage_write };

/// A transfer of a whole item over one link, or over two after each other.
struct simulated_move {
  item_index item = 0;
  std::uint64_t priority = 0;  ///< smaller goes first
  std::uint64_t sequence = 0;  ///< among equals, what came first
  std::array<link, 2> stages{};
  std::uint8_t stage_count = 1;
  std::uint8_t stage = 0;
  bool spill = false;        ///< the source is dropped afterwards
  bool from_device = false;  ///< (spill)
  bool to_host = false;      ///< (spill)
  bool keeps_host = false;   ///< (fetch from storage to the device) the host copy stays
};

/// The links as servers, each with a queue.
class simulated_links {
 public:
  explicit simulated_links(const machine& m);

  void enqueue(const simulated_move& move);
  /// Puts a waiting move before all others.
  void hasten(item_index item);
  /// Starts what can start; calls `started(finish_time, move)` for each.
  template <typename Started>
  void start(double now, const std::vector<byte_count>& item_bytes, Started&& started) {
    for (std::size_t i = 0; i < waiting_.size(); ++i) {
      auto& queue = waiting_[i];
      bool& busy = busy_[server(static_cast<link>(i))];
      if (busy || queue.empty()) {
        continue;
      }
      const std::size_t first = next_of(queue);
      const simulated_move move = queue[first];
      queue.erase(queue.begin() + static_cast<std::ptrdiff_t>(first));
      busy = true;
      started(now + static_cast<double>(item_bytes[move.item]) / rate_[i], move);
    }
  }
  void finished(link l) { busy_[server(l)] = false; }

 private:
  [[nodiscard]] std::size_t server(link l) const {
    return static_cast<std::size_t>(half_duplex_ && l == link::storage_write ? link::storage_read : l);
  }
  [[nodiscard]] static std::size_t next_of(const std::vector<simulated_move>& queue);

  bool half_duplex_;
  std::array<double, 4> rate_{};
  std::array<std::vector<simulated_move>, 4> waiting_;
  std::array<bool, 4> busy_{};
};

}  // namespace forebay::plan::detail
