#include "plan/detail/simulator_links.hpp"

#include <algorithm>
#include <tuple>

namespace forebay::plan::detail {
namespace {

/// An item is striped evenly, so all of it takes as long as its share takes on the slowest path.
double striped_rate(const machine& m, double storage_link::*rate) {
  double slowest = unlimited_rate;
  for (const storage_link& path : m.storage) {
    slowest = std::min(slowest, path.*rate);
  }
  return slowest * static_cast<double>(std::max<std::size_t>(m.storage.size(), 1));
}

}  // namespace

simulated_links::simulated_links(const machine& m)
    : half_duplex_(m.half_duplex_storage),
      rate_{m.h2d_rate, m.d2h_rate, striped_rate(m, &storage_link::read_rate),
            striped_rate(m, &storage_link::write_rate)} {}

void simulated_links::enqueue(const simulated_move& move) {
  waiting_[static_cast<std::size_t>(move.stages[move.stage])].push_back(move);
}

void simulated_links::hasten(item_index item) {
  for (auto& queue : waiting_) {
    for (simulated_move& move : queue) {
      if (move.item == item) {
        move.priority = 0;
      }
    }
  }
}

std::size_t simulated_links::next_of(const std::vector<simulated_move>& queue) {
  const auto first = std::min_element(queue.begin(), queue.end(), [](const auto& a, const auto& b) {
    return std::tie(a.priority, a.sequence) < std::tie(b.priority, b.sequence);
  });
  return static_cast<std::size_t>(first - queue.begin());
}

}  // namespace forebay::plan::detail
