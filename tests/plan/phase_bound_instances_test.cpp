#include <algorithm>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <forebay/plan/phase_bound.hpp>

namespace forebay::plan {
namespace {

/// A small instance whose least long-run time per iteration is known from an exhaustive search over all schedules
/// (steps of both engines in order and otherwise independent, whole items, one transfer at a time on each link).
struct instance {
  std::vector<byte_count> machine;  ///< device and host capacity; h2d, d2h, storage read and write rates
  bool half_duplex;
  std::vector<byte_count> item_bytes;
  std::string steps;  ///< "d3 2rw 1r; ..": on the device, 3 seconds, reads and writes item 2, reads item 1
  double optimum;
};

const std::vector<instance>& instances() {
  static const std::vector<instance> all{
      {{16, 1000000, 2, 2, 1000000, 1000000},
       true,
       {4, 6, 2, 6, 4, 4, 6},
       "d3 2rw 1r; d1 2r 6c; d1 4r 1r; d3 1r 5c; d1 3r 0r 5rf; d3 0r 3r; d1 0rw 1rw 6rf",
       21},
      {{10, 1000000, 1, 2, 1000000, 1000000}, true, {4, 6, 4, 6}, "d2 0r; d2 2r 3c; d2 2r 3rf; d2 2r; d3 1r", 18},
      {{12, 1000000, 2, 2, 1000000, 1000000},
       true,
       {6, 2, 4, 6},
       "d3 0r; d2 2r 1r; d1 2r; d1 1r; d1 2r 3c; d1 2r 1r 3rf",
       12},
      {{19, 1000000, 2, 2, 1000000, 1000000},
       true,
       {2, 4, 4, 6, 6},
       "d1 0rw 3rw 4c 1r; d1 2rw 4rf; d1 2r; d2 3rw; d1 3rw",
       8},
      {{7, 4, 1, 1, 1, 1}, true, {2, 3, 2}, "h3 0r; d3 1r 2r; h1 2rw; d1 0r; h1 1r", 12},
      {{3, 3, 1, 1, 1, 1}, true, {1, 2, 1}, "h2 0rw; h2 1r; d1 2r; d1 0r; d3 2r", 5},
      {{4, 5, 1, 1, 1, 1}, true, {1, 3, 1}, "d1 0r 2r; h3 1r; h3 2rw 1r; h3 0r; d3 1r", 9},
      {{6, 4, 1, 1, 1, 1}, false, {1, 3, 1}, "d1 0r 2r; d3 1r; d2 1r 0r; d1 1rw; h3 1r", 7},
      {{6, 4, 1, 1, 1, 1}, true, {1, 3, 2, 2, 1}, "d2 0r 4c; d3 3r 2rw 4rf; h1 2r; d2 1r 0r; h2 0r", 10},
      {{4, 6, 1, 1, 1, 1}, false, {3, 1, 1}, "d2 0r; d3 1r; d2 0r; h3 0r 2r; h2 1rw", 7},
  };
  return all;
}

uses uses_of(char letter) {
  switch (letter) {
    case 'r':
      return uses::read;
    case 'w':
      return uses::write;
    case 'c':
      return uses::create;
    default:
      return uses::free;
  }
}

/// `phase_steps`: how many steps make a phase, that is, where the iteration may be cut.
trace trace_of(const instance& i, std::size_t phase_steps) {
  trace t;
  t.item_bytes = i.item_bytes;
  std::istringstream lines(i.steps);
  for (std::string line; std::getline(lines, line, ';');) {
    std::istringstream words(line);
    std::string word;
    words >> word;
    trace_step step;
    step.where = word.at(0) == 'd' ? place::device : place::host;
    step.seconds = std::stod(word.substr(1));
    step.phase = std::to_string(t.steps.size() / phase_steps);
    while (words >> word) {
      std::size_t digits = 0;
      item_access access{static_cast<item_index>(std::stoul(word, &digits)), uses::none};
      for (const char letter : word.substr(digits)) {
        access.how = access.how | uses_of(letter);
      }
      step.accesses.push_back(access);
    }
    t.steps.push_back(std::move(step));
  }
  return t;
}

TEST(PhaseBoundOfKnownInstances, IsNeverAboveTheOptimumAndNotFarBelow) {
  double sum = 0.0;
  for (const instance& i : instances()) {
    machine m{i.machine[0], i.machine[1], static_cast<double>(i.machine[2]), static_cast<double>(i.machine[3])};
    m.storage = {{static_cast<double>(i.machine[4]), static_cast<double>(i.machine[5])}};
    m.half_duplex_storage = i.half_duplex;
    double best = 0.0;
    for (const std::size_t phase_steps : {1U, 2U, 3U}) {
      const phase_bound b(trace_of(i, phase_steps), m, {.single_caller = false, .iterations_join = false});
      best = std::max(best, b.evaluate(m).seconds);
      EXPECT_LE(best, i.optimum * (1 + 1e-9)) << i.steps;
    }
    sum += best / i.optimum;
  }
  // Items are a third of a tier here, and the bound takes them as divisible: four fifths of the optimum are plenty, and
  // the compute alone would be under two thirds.
  EXPECT_GT(sum / static_cast<double>(instances().size()), 0.75);
}

}  // namespace
}  // namespace forebay::plan
