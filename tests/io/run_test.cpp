// Operations that went to the kernel as one transfer: whose are the bytes, and whose is the error.
#include <array>
#include <cerrno>
#include <deque>
#include <map>
#include <vector>

#include <gtest/gtest.h>

#include <forebay/io/detail/piecework.hpp>
#include <forebay/io/detail/request_queue.hpp>

namespace forebay::io::detail {
namespace {

constexpr byte_count each = 4_KiB;

class scripted final : public interceptor {
 public:
  std::map<byte_count, std::int64_t> answers;  ///< of `before`, by offset
  std::vector<byte_count> asked;
  std::int64_t before(const transfer& t) noexcept override {
    asked.push_back(t.offset);
    const auto found = answers.find(t.offset);
    return found == answers.end() ? 0 : found->second;
  }
};

class run : public ::testing::Test {
 protected:
  run() {
    options_.faults = &faults_;
    for (int i = 0; i < 4; ++i) {
      operation op;
      op.offset = ops_.size() * each;
      op.bytes = each;
      op.alignment = 512;
      op.memory = memory_.data() + ops_.size() * each;
      piecework::start(op);
      ops_.push_back(op);
    }
    for (std::size_t i = 0; i + 1 < ops_.size(); ++i) {
      ops_[i].together = &ops_[i + 1];
    }
  }

  static std::vector<operation*> members(operation* first) {
    std::vector<operation*> all;
    for (operation* op = first; op != nullptr; op = op->together) {
      all.push_back(op);
    }
    return all;
  }
  std::vector<operation*> some(std::initializer_list<std::size_t> which) {
    std::vector<operation*> all;
    for (const std::size_t i : which) {
      all.push_back(&ops_[i]);
    }
    return all;
  }

  scripted faults_;
  backend_options options_;
  std::array<std::byte, 8 * each> memory_{};
  std::deque<operation> ops_;
};

TEST_F(run, goes_as_a_whole_and_the_bytes_are_dealt_in_order) {
  piecework work(options_);
  const begun_run begun = work.begin_run(&ops_[0]);
  EXPECT_EQ(members(begun.run), some({0, 1, 2, 3}));
  EXPECT_EQ(begun.refused, nullptr);
  EXPECT_EQ(begun.rest, nullptr);
  const ended_run ended = work.executed_run(begun.run, 2 * each + 512);
  EXPECT_EQ(members(ended.landed), some({0, 1, 2}));
  EXPECT_EQ(members(ended.rest), some({3}));
  EXPECT_EQ(ops_[0].outcome, static_cast<std::int64_t>(each));
  EXPECT_EQ(ops_[1].outcome, static_cast<std::int64_t>(each));
  EXPECT_EQ(ops_[2].outcome, 512);
  EXPECT_TRUE(ops_[3].alone);  // nothing is known about it: it must not look like the end of the file
  EXPECT_EQ(faults_.asked.size(), 4U);
}

TEST_F(run, an_error_is_nobodys_until_each_has_gone_alone) {
  piecework work(options_);
  const begun_run begun = work.begin_run(&ops_[0]);
  const ended_run ended = work.executed_run(begun.run, -EIO);
  EXPECT_EQ(ended.landed, nullptr);
  EXPECT_EQ(members(ended.rest), some({0, 1, 2, 3}));
  for (operation& op : ops_) {
    EXPECT_TRUE(op.alone);
    op.together = nullptr;
    const begun_run again = work.begin_run(&op);
    EXPECT_EQ(members(again.run).size(), 1U);
    const bool bad = &op == &ops_[2];
    const ended_run alone = work.executed_run(again.run, bad ? -EIO : static_cast<std::int64_t>(each));
    EXPECT_EQ(alone.landed, &op);
    EXPECT_EQ(op.outcome, bad ? -EIO : static_cast<std::int64_t>(each));
  }
  EXPECT_EQ(faults_.asked.size(), 4U);  // the interceptor saw each transfer once
}

TEST_F(run, the_end_of_the_file_is_the_first_ones) {
  piecework work(options_);
  const ended_run ended = work.executed_run(work.begin_run(&ops_[0]).run, 0);
  EXPECT_EQ(members(ended.landed), some({0}));
  EXPECT_EQ(ops_[0].outcome, 0);
  EXPECT_EQ(members(ended.rest), some({1, 2, 3}));
}

TEST_F(run, more_bytes_than_asked_for_are_left_to_the_judge) {
  piecework work(options_);
  const ended_run ended = work.executed_run(work.begin_run(&ops_[0]).run, 4 * each + 1);
  EXPECT_EQ(members(ended.landed), some({0, 1, 2, 3}));
  EXPECT_EQ(work.settle(ops_[3], {}).how.error_number, EIO);
  EXPECT_EQ(work.settle(ops_[2], {}).how.error_number, 0);
}

TEST_F(run, ends_before_one_that_is_refused) {
  faults_.answers[2 * each] = -ENOSPC;
  piecework work(options_);
  const begun_run begun = work.begin_run(&ops_[0]);
  EXPECT_EQ(members(begun.run), some({0, 1}));
  EXPECT_EQ(begun.refused, &ops_[2]);
  EXPECT_EQ(ops_[2].outcome, -ENOSPC);
  EXPECT_EQ(members(begun.rest), some({3}));
}

TEST_F(run, is_nothing_when_the_first_is_refused) {
  faults_.answers[0] = -ENOSPC;
  piecework work(options_);
  const begun_run begun = work.begin_run(&ops_[0]);
  EXPECT_EQ(begun.run, nullptr);
  EXPECT_EQ(members(begun.refused), some({0}));
  EXPECT_EQ(members(begun.rest), some({1, 2, 3}));
}

TEST_F(run, ends_before_one_that_is_shortened_and_asks_about_it_once) {
  faults_.answers[each] = 1024;
  piecework work(options_);
  const begun_run begun = work.begin_run(&ops_[0]);
  EXPECT_EQ(members(begun.run), some({0}));
  EXPECT_EQ(members(begun.rest), some({1, 2, 3}));
  const begun_run next = work.begin_run(&ops_[1]);
  EXPECT_EQ(members(next.run), some({1}));
  EXPECT_EQ(work.piece(ops_[1]).bytes, 1024U);
  EXPECT_EQ(members(next.rest), some({2, 3}));
  EXPECT_EQ(faults_.asked, (std::vector<byte_count>{0, each}));
}

TEST_F(run, memory_that_is_contiguous_is_one_vector) {
  ops_[2].memory = memory_.data() + 6 * each;
  ops_[3].memory = memory_.data() + 7 * each;
  piecework work(options_);
  const begun_run begun = work.begin_run(&ops_[0]);
  std::array<iovec, largest_run> vectors{};
  const memory_list list = work.gather(*begun.run, vectors);
  EXPECT_EQ(list.vectors, 2U);
  EXPECT_EQ(list.bytes, 4 * each);
  EXPECT_EQ(vectors[0].iov_base, memory_.data());
  EXPECT_EQ(vectors[0].iov_len, 2 * each);
  EXPECT_EQ(vectors[1].iov_base, memory_.data() + 6 * each);
  EXPECT_EQ(vectors[1].iov_len, 2 * each);
}

}  // namespace
}  // namespace forebay::io::detail
