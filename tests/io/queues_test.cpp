// The intrusive containers against plain ones.
#include <map>
#include <random>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <forebay/io/detail/operation_list.hpp>
#include <forebay/io/detail/timer_heap.hpp>

namespace forebay::io::detail {
namespace {

TEST(timer_heap, gives_what_is_due_in_order_of_time_as_a_multimap_does) {
  std::mt19937_64 random(7);
  std::vector<operation> ops(500);
  std::vector<operation*> unused;
  for (operation& op : ops) {
    unused.push_back(&op);
  }
  timer_heap heap;
  std::multimap<time_point, operation*> model;
  time_point now{};
  for (int round = 0; round < 20'000; ++round) {
    if (!unused.empty() && random() % 2 == 0) {
      operation* op = unused.back();
      unused.pop_back();
      op->not_before = now + std::chrono::nanoseconds(random() % 1000);
      heap.push(*op);
      model.emplace(op->not_before, op);
    } else {
      now += std::chrono::nanoseconds(random() % 20);
    }
    ASSERT_EQ(heap.empty(), model.empty());
    if (!model.empty()) {
      ASSERT_EQ(heap.earliest(), model.begin()->first);
    }
    while (operation* due = heap.pop_due(now)) {
      ASSERT_LE(due->not_before, now);
      ASSERT_EQ(due->not_before, model.begin()->first);
      auto entry = model.begin();
      while (entry->second != due) {
        ASSERT_NE(++entry, model.end());
      }
      ASSERT_EQ(entry->first, due->not_before);
      model.erase(entry);
      unused.push_back(due);
    }
    ASSERT_TRUE(model.empty() || model.begin()->first > now);
  }
}

TEST(operation_list, is_first_in_first_out) {
  std::vector<operation> ops(3);
  operation_list list;
  EXPECT_EQ(list.pop(), nullptr);
  list.push(ops[0]);
  list.push(ops[1]);
  EXPECT_EQ(list.pop(), &ops[0]);
  list.push(ops[2]);
  EXPECT_EQ(list.pop(), &ops[1]);
  EXPECT_EQ(list.pop(), &ops[2]);
  EXPECT_TRUE(list.empty());
}

TEST(operation_inbox, keeps_every_producers_order_and_loses_nothing) {
  constexpr std::size_t producers = 4;
  constexpr std::size_t each = 5000;
  std::vector<operation> ops(producers * each);
  operation_inbox inbox;
  std::vector<std::thread> threads;
  for (std::size_t p = 0; p < producers; ++p) {
    threads.emplace_back([&, p] {
      for (std::size_t i = 0; i < each; ++i) {
        inbox.push(ops[p * each + i]);
      }
    });
  }
  std::vector<std::size_t> taken(producers, 0);
  for (std::size_t total = 0; total < producers * each;) {
    operation_list list;
    inbox.take([&](operation& op) { list.push(op); });
    while (operation* op = list.pop()) {
      const auto index = static_cast<std::size_t>(op - ops.data());
      ASSERT_EQ(index % each, taken[index / each]);
      ++taken[index / each];
      ++total;
    }
    std::this_thread::yield();
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_TRUE(inbox.empty());
}

}  // namespace
}  // namespace forebay::io::detail
