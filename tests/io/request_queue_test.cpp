// Which operations go to the kernel next, and together.
#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include <forebay/io/detail/flight_table.hpp>
#include <forebay/io/detail/request_queue.hpp>

namespace forebay::io::detail {
namespace {

constexpr unsigned any_depth = 1000;

operation make(byte_count offset, byte_count bytes, std::uint8_t urgency = 0,
               operation_kind kind = operation_kind::read, int file = 7) {
  operation op;
  op.kind = kind;
  op.file = file;
  op.offset = offset;
  op.bytes = bytes;
  op.urgency = urgency;
  return op;
}

std::vector<operation*> members(operation* first) {
  std::vector<operation*> all;
  for (operation* op = first; op != nullptr; op = op->together) {
    all.push_back(op);
  }
  return all;
}

TEST(request_queue, gives_the_urgent_first_and_equals_in_their_order) {
  request_queue queue(any_depth, 4_KiB);
  std::deque<operation> ops;
  for (const std::uint8_t urgency : std::initializer_list<std::uint8_t>{2, 0, 3, 0, 1, 2}) {
    ops.push_back(make(ops.size() * 1_MiB, 4_KiB, urgency));
    queue.push(ops.back());
  }
  for (const std::size_t expected : {1U, 3U, 4U, 0U, 5U, 2U}) {
    ASSERT_EQ(queue.pop(), &ops[expected]);
    queue.landed(ops[expected]);
  }
  EXPECT_EQ(queue.pop(), nullptr);
  EXPECT_TRUE(queue.empty());
}

TEST(request_queue, what_is_put_back_is_first_again_among_its_equals) {
  request_queue queue(any_depth, 4_KiB);
  std::deque<operation> ops;
  for (int i = 0; i < 4; ++i) {
    ops.push_back(make(ops.size() * 1_MiB, 4_KiB, i == 3 ? 0 : 1));
  }
  queue.push(ops[0]);
  queue.push(ops[1]);
  operation* first = queue.pop();
  EXPECT_EQ(first, &ops[0]);
  queue.push(ops[2]);
  queue.push(ops[3]);
  queue.push_front(*first);
  for (const std::size_t expected : {3U, 0U, 1U, 2U}) {
    ASSERT_EQ(queue.pop(), &ops[expected]);
    queue.landed(ops[expected]);
  }
}

TEST(request_queue, neighbours_leave_together_in_the_order_of_the_file) {
  request_queue queue(any_depth, 64_KiB);
  std::deque<operation> ops;
  for (const byte_count k : {3_B, 1_B, 0_B, 2_B, 5_B}) {  // 4 is missing
    ops.push_back(make(128_KiB + k * 8_KiB, 8_KiB));
    queue.push(ops.back());
  }
  EXPECT_EQ(members(queue.pop()), (std::vector<operation*>{&ops[2], &ops[1], &ops[3], &ops[0]}));
  EXPECT_EQ(members(queue.pop()), (std::vector<operation*>{&ops[4]}));
  EXPECT_TRUE(queue.empty());
}

TEST(request_queue, only_like_goes_with_like) {
  request_queue queue(any_depth, 64_KiB);
  std::deque<operation> ops;
  ops.push_back(make(0, 4_KiB, 1));
  ops.push_back(make(4_KiB, 4_KiB, 1, operation_kind::write));
  ops.push_back(make(4_KiB, 4_KiB, 1, operation_kind::read, 8));
  ops.push_back(make(4_KiB, 4_KiB, 2));
  ops.push_back(make(8_KiB, 4_KiB, 1));   // does not touch the first
  ops.push_back(make(4_KiB, 64_KiB, 1));  // as large as a run may be
  operation tried = make(4_KiB, 4_KiB, 1);
  tried.alone = true;
  operation short_one = make(4_KiB, 4_KiB, 1);
  short_one.done = 512;
  for (operation& op : ops) {
    queue.push(op);
  }
  queue.push(tried);
  queue.push(short_one);
  for (std::size_t i = 0; i < ops.size() + 2; ++i) {
    EXPECT_EQ(members(queue.pop()).size(), 1U);
  }
  EXPECT_EQ(queue.pop(), nullptr);
}

TEST(request_queue, files_have_their_depth_each_and_take_turns) {
  request_queue queue(2, 4_KiB);
  const std::vector<int> files{5, 6};
  queue.set_files(files);
  std::deque<operation> ops;
  for (const int file : {5, 5, 5, 6, 6, 6, 9, 9, 9}) {
    ops.push_back(make(ops.size() * 1_MiB, 8_KiB, 0, operation_kind::read, file));
    queue.push(ops.back());
  }
  std::map<int, std::vector<operation*>> started;
  std::vector<int> turns;
  while (operation* op = queue.pop()) {
    started[op->file].push_back(op);
    turns.push_back(op->file);
  }
  for (const int file : {5, 6, 9}) {
    EXPECT_EQ(started[file].size(), 2U);
  }
  EXPECT_EQ(std::set<int>(turns.begin(), turns.begin() + 3).size(), 3U);
  EXPECT_FALSE(queue.has_room());
  EXPECT_FALSE(queue.can_pop());
  queue.landed(*started[6].front());
  EXPECT_TRUE(queue.has_room());
  EXPECT_EQ(queue.pop(), &ops[5]);
  EXPECT_EQ(queue.pop(), nullptr);
}

TEST(request_queue, nothing_joins_a_demand_in_the_kernel_but_other_demands) {
  request_queue queue(any_depth, 4_KiB);
  const std::vector<int> files{5, 6};
  queue.set_files(files);
  std::deque<operation> ops;
  ops.push_back(make(0, 8_KiB, 0, operation_kind::read, 5));
  ops.push_back(make(1_MiB, 8_KiB, 1, operation_kind::read, 5));
  ops.push_back(make(2_MiB, 8_KiB, 1, operation_kind::read, 6));
  ops.push_back(make(3_MiB, 8_KiB, 0, operation_kind::read, 5));
  for (const std::size_t i : {0U, 1U, 2U}) {
    queue.push(ops[i]);
  }
  std::set<operation*> started{queue.pop(), queue.pop()};
  EXPECT_EQ(started, (std::set<operation*>{&ops[0], &ops[2]}));  // the other file goes on
  EXPECT_FALSE(queue.can_pop());
  EXPECT_EQ(queue.pop(), nullptr);
  queue.push(ops[3]);
  EXPECT_EQ(queue.pop(), &ops[3]);
  queue.landed(ops[0]);
  EXPECT_FALSE(queue.can_pop());
  queue.landed(ops[3]);
  EXPECT_TRUE(queue.can_pop());
  EXPECT_EQ(queue.pop(), &ops[1]);
}

/// Random pushes and pops: every operation leaves once, runs are gapless, alike and within the limit; and where all
/// have one size, no run leaves a neighbour of its stretch behind, on either side.
void push_and_pop_at_random(byte_count sizes) {
  constexpr byte_count merge = 32_KiB;
  std::mt19937_64 random(3);
  request_queue queue(any_depth, merge);
  std::deque<operation> ops(400);
  std::vector<operation*> idle;
  for (operation& op : ops) {
    idle.push_back(&op);
  }
  std::map<std::tuple<int, operation_kind, std::uint8_t, byte_count>, operation*> waiting;
  std::size_t popped = 0;
  std::size_t longest = 0;
  for (int round = 0; round < 40'000; ++round) {
    if (!idle.empty() && random() % 8 != 0) {
      operation& op = *idle.back();
      op = make(random() % 100 * 4_KiB, 4_KiB * (1 + random() % sizes), static_cast<std::uint8_t>(random() % 2),
                random() % 2 == 0 ? operation_kind::read : operation_kind::write, 7 + static_cast<int>(random() % 2));
      if (waiting.emplace(std::tuple(op.file, op.kind, op.urgency, op.offset), &op).second) {
        idle.pop_back();
        queue.push(op);
      }
      continue;
    }
    operation* first = queue.pop();
    ASSERT_EQ(first == nullptr, waiting.empty());
    if (first == nullptr) {
      continue;
    }
    queue.landed(*first);
    const std::vector<operation*> run = members(first);
    byte_count bytes = 0;
    for (std::size_t i = 0; i < run.size(); ++i) {
      ASSERT_EQ(run[i]->offset, first->offset + bytes);
      ASSERT_EQ(std::tuple(run[i]->file, run[i]->kind, run[i]->urgency),
                std::tuple(first->file, first->kind, first->urgency));
      bytes += run[i]->bytes;
      ASSERT_EQ(waiting.erase(std::tuple(run[i]->file, run[i]->kind, run[i]->urgency, run[i]->offset)), 1U);
      idle.push_back(run[i]);
      ++popped;
    }
    ASSERT_TRUE(bytes <= merge || run.size() == 1);
    if (sizes == 1) {
      const auto left_behind = [&](byte_count offset) {
        return offset / merge == first->offset / merge &&
               waiting.count(std::tuple(first->file, first->kind, first->urgency, offset)) != 0;
      };
      ASSERT_FALSE(left_behind(first->offset + bytes));
      ASSERT_FALSE(left_behind(first->offset - 4_KiB));
      longest = std::max(longest, run.size());
    }
  }
  EXPECT_TRUE(sizes > 1 || longest > 3);
  EXPECT_GT(popped, 10'000U);
}

TEST(request_queue, leaves_no_neighbour_behind) { push_and_pop_at_random(1); }
TEST(request_queue, loses_nothing_of_mixed_sizes) { push_and_pop_at_random(3); }

TEST(flight_table, a_tag_arrives_once_and_never_for_another) {
  flight_table table(2);
  operation a;
  operation b;
  operation c;
  const std::uint64_t tag_a = table.depart(a);
  const std::uint64_t tag_b = table.depart(b);
  EXPECT_TRUE(table.full());
  EXPECT_NE(tag_a, 0U);
  EXPECT_EQ(table.arrive(tag_a), &a);
  EXPECT_EQ(table.arrive(tag_a), nullptr);  // twice
  const std::uint64_t tag_c = table.depart(c);
  EXPECT_EQ(table.arrive(tag_a), nullptr);  // late: its place is another's now
  EXPECT_EQ(table.arrive(0), nullptr);
  EXPECT_EQ(table.arrive((std::uint64_t{1} << 32U) | 99U), nullptr);  // nobody's
  EXPECT_EQ(table.arrive(tag_c), &c);
  EXPECT_EQ(table.arrive(tag_b), &b);
  EXPECT_TRUE(table.empty());
}

}  // namespace
}  // namespace forebay::io::detail
