#include <forebay/plan/hash.hpp>

#include <functional>
#include <set>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace forebay::plan {
namespace {

TEST(plan_hash, of_nothing_is_that_of_one_zero) {
  std::uint64_t expected = 0xcbf29ce484222325ULL;  // FNV-1a of eight zero bytes: the number of items
  for (int k = 0; k < 8; ++k) {
    expected *= 0x100000001b3ULL;
  }
  EXPECT_EQ(hash_of(trace{}), expected);
}

TEST(plan_hash, of_a_trace_depends_on_what_plans_depend_on_but_for_durations) {
  trace t;
  t.item_bytes = {4, 8};
  t.steps.resize(2);
  t.steps[0].accesses = {{0, uses::read}};
  std::set<std::uint64_t> seen{hash_of(t)};
  const std::vector<std::function<void(trace&)>> changes{[](trace& c) { c.item_bytes[1] = 9; },
                                                         [](trace& c) { c.item_bytes.push_back(1); },
                                                         [](trace& c) { c.steps[1].where = place::host; },
                                                         [](trace& c) { c.steps[1].workspace = 1; },
                                                         [](trace& c) { c.steps[0].accesses[0].item = 1; },
                                                         [](trace& c) { c.steps[0].accesses[0].how = uses::write; },
                                                         [](trace& c) { std::swap(c.steps[0], c.steps[1]); }};
  for (const auto& change : changes) {
    trace c = t;
    change(c);
    EXPECT_TRUE(seen.insert(hash_of(c)).second);
  }
  t.steps[0].seconds = 3.0;
  t.steps[0].phase = "forward";
  EXPECT_FALSE(seen.insert(hash_of(t)).second);
}

TEST(plan_hash, of_a_machine_depends_on_every_field) {
  machine m;
  m.storage = {{2.0, 3.0, {}}};
  std::set<std::uint64_t> seen{hash_of(m)};
  const std::vector<std::function<void(machine&)>> changes{[](machine& c) { c.device_capacity = 1; },
                                                           [](machine& c) { c.host_capacity = 1; },
                                                           [](machine& c) { c.h2d_rate = 1.0; },
                                                           [](machine& c) { c.d2h_rate = 1.0; },
                                                           [](machine& c) { c.half_duplex_storage = true; },
                                                           [](machine& c) { c.storage[0].read_rate = 3.0; },
                                                           [](machine& c) { c.storage[0].write_rate = 2.0; },
                                                           [](machine& c) { c.storage[0].mixes.push_back({}); },
                                                           [](machine& c) { c.storage.push_back({}); },
                                                           [](machine& c) { c.storage.clear(); }};
  for (const auto& change : changes) {
    machine c = m;
    change(c);
    EXPECT_TRUE(seen.insert(hash_of(c)).second);
  }
}

}  // namespace
}  // namespace forebay::plan
