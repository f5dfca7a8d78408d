// Scripts of faults as text: what each word means, and that a wrong one is named with its line.
#include <cerrno>

#include <gmock/gmock.h>

#include <forebay/base/error.hpp>
#include <forebay/testing/fault_script.hpp>

namespace forebay {
namespace {

using io::operation_kind;
using ::testing::AllOf;
using testing::fault;
using testing::fault_effect;
using testing::fault_script;
using ::testing::HasSubstr;
using testing::parse_fault_script;
using testing::to_text;
using namespace std::chrono_literals;
constexpr std::uint64_t unlimited = ~std::uint64_t{0};

fault one(const char* line) {
  const fault_script script = parse_fault_script(line);
  EXPECT_EQ(script.faults.size(), 1U) << line;
  return script.faults.at(0);
}

TEST(fault_text, nothing_is_no_fault) {
  EXPECT_TRUE(parse_fault_script("").faults.empty());
  EXPECT_TRUE(parse_fault_script("\n  \n# fail EIO\n\t# more\n").faults.empty());
}

TEST(fault_text, each_effect_has_its_words) {
  EXPECT_EQ(one("fail EIO").what, fault_effect::fail);
  EXPECT_EQ(one("fail EIO").error_number, EIO);
  EXPECT_EQ(one("fail ENOSPC").error_number, ENOSPC);
  EXPECT_EQ(one("shorten").what, fault_effect::shorten);
  EXPECT_EQ(one("underreport").what, fault_effect::underreport);
  EXPECT_EQ(one("tear").what, fault_effect::tear);
  EXPECT_EQ(one("stale read").what, fault_effect::stale_read);
  EXPECT_EQ(one("stale completion").what, fault_effect::stale_completion);
  EXPECT_EQ(one("flip").what, fault_effect::flip_bit);
  const fault reorder = one("reorder 8 within 50ms");
  EXPECT_EQ(reorder.what, fault_effect::reorder);
  EXPECT_EQ(reorder.later, 8U);
  EXPECT_EQ(reorder.most, 50ms);
}

TEST(fault_text, services_can_be_refused) {
  using service = io::interceptor::service;
  EXPECT_EQ(one("refuse ring EPERM").what, fault_effect::refuse);
  EXPECT_EQ(one("refuse ring EPERM").service, service::ring);
  EXPECT_EQ(one("refuse ring EPERM").error_number, EPERM);
  EXPECT_EQ(one("refuse memory ENOMEM").service, service::registered_memory);
  EXPECT_EQ(one("refuse files EINVAL").service, service::registered_files);
}

TEST(fault_text, times_have_units_and_may_be_ranges) {
  EXPECT_EQ(one("delay 5ms").least, 5ms);
  EXPECT_EQ(one("delay 5ms").most, 5ms);
  EXPECT_EQ(one("delay 0..20ms").least, 0ms);
  EXPECT_EQ(one("delay 0..20ms").most, 20ms);
  EXPECT_EQ(one("delay 3..20ms").least, 3ms);  // the unit counts for both
  EXPECT_EQ(one("delay 7us..1s").least, 7us);
  EXPECT_EQ(one("delay 7us..1s").most, 1s);
  EXPECT_EQ(one("delay 9ns").most, 9ns);
}

TEST(fault_text, conditions_come_in_any_order) {
  const fault f = one("fail EIO most 4 path 1 every 3 write chance 0.25 from 2 file 7");
  EXPECT_EQ(f.when.first, 2U);
  EXPECT_EQ(f.when.every, 3U);
  EXPECT_EQ(f.when.most, 4U);
  EXPECT_DOUBLE_EQ(f.when.probability, 0.25);
  EXPECT_EQ(f.where.path, 1);
  EXPECT_EQ(f.where.file, 7);
  EXPECT_EQ(f.where.kind, operation_kind::write);
  const fault nth = one("stale read nth 3");
  EXPECT_EQ(nth.when.first, 3U);
  EXPECT_EQ(nth.when.most, 1U);
  EXPECT_EQ(nth.where.kind, std::nullopt);
  EXPECT_EQ(one("fail EIO read").where.kind, operation_kind::read);
  EXPECT_EQ(one("fail EIO").when.most, unlimited);
}

TEST(fault_text, comments_and_lines_are_told_apart) {
  const fault_script script = parse_fault_script("flip nth 1 # one\r\n\n  # none\n\ttear   nth\t2\nshorten");
  ASSERT_EQ(script.faults.size(), 3U);
  EXPECT_EQ(script.faults[0].what, fault_effect::flip_bit);
  EXPECT_EQ(script.faults[1].what, fault_effect::tear);
  EXPECT_EQ(script.faults[1].when.first, 2U);
  EXPECT_EQ(script.faults[2].what, fault_effect::shorten);
}

TEST(fault_text, of_every_fault_reads_back_as_itself) {
  const char* lines[] = {"fail EIO",
                         "fail EAGAIN read path 1 file 5 from 2 every 3 most 9 chance 0.125",
                         "delay 0..20ms chance 0.1",
                         "delay 1500us..2s write nth 4",
                         "delay 1ns..1000000001ns",
                         "reorder 3 within 7us read",
                         "shorten most 2",
                         "underreport from 3 most 1 every 2",
                         "tear chance 0.3333333333333333",
                         "stale read path 0",
                         "stale completion nth 2",
                         "flip chance 1e-9",
                         "refuse ring ENOSYS",
                         "refuse memory ENOMEM",
                         "refuse files EPERM"};
  fault_script all;
  for (const char* line : lines) {
    const fault_script script = parse_fault_script(line);
    EXPECT_EQ(parse_fault_script(to_text(script)), script) << line << " became " << to_text(script);
    all.faults.push_back(script.faults.at(0));
  }
  EXPECT_EQ(parse_fault_script(to_text(all)), all);
}

struct wrong_line {
  const char* line;
  const char* word;
};

class wrong_fault_text : public ::testing::TestWithParam<wrong_line> {};

TEST_P(wrong_fault_text, is_refused_with_line_and_word) {
  const std::string text = std::string("flip nth 1\n\n") + GetParam().line + "\nshorten\n";
  try {
    static_cast<void>(parse_fault_script(text));
    ADD_FAILURE() << "accepted: " << GetParam().line;
  } catch (const usage_error& refused) {
    EXPECT_THAT(refused.what(), AllOf(HasSubstr("line 3"), HasSubstr(GetParam().word)));
  }
}

INSTANTIATE_TEST_SUITE_P(
    lines, wrong_fault_text,
    ::testing::Values(wrong_line{"explode", "'explode'"}, wrong_line{"fail", "end of the line"},
                      wrong_line{"fail EWHATEVER", "'EWHATEVER'"}, wrong_line{"fail 5", "'5'"},
                      wrong_line{"delay", "end of the line"}, wrong_line{"delay 5", "'5'"},
                      wrong_line{"delay 5min", "'5min'"}, wrong_line{"delay 9..3ms", "'9..3ms'"},
                      wrong_line{"delay x..3ms", "'x'"}, wrong_line{"reorder 0 within 1ms", "'0'"},
                      wrong_line{"reorder 2 1ms", "'1ms'"}, wrong_line{"stale", "end of the line"},
                      wrong_line{"stale write", "'write'"}, wrong_line{"refuse disk EIO", "'disk'"},
                      wrong_line{"refuse ring", "end of the line"}, wrong_line{"shorten sometimes", "'sometimes'"},
                      wrong_line{"shorten nth", "end of the line"}, wrong_line{"shorten nth 0", "'0'"},
                      wrong_line{"shorten nth 2x", "'2x'"}, wrong_line{"shorten path -1", "'-1'"},
                      wrong_line{"shorten chance 1.5", "'1.5'"}, wrong_line{"shorten chance nan", "'nan'"},
                      wrong_line{"shorten every -2", "'-2'"}, wrong_line{"shorten nth 99999999999999999999", "'999"}));

}  // namespace
}  // namespace forebay
