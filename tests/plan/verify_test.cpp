#include <forebay/plan/verify.hpp>

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace forebay::plan {
namespace {

/// Item 0 is read by step 0; item 1 is created by step 0, and read and freed by step 1. Both are 4 bytes.
trace two_steps() {
  trace t;
  t.item_bytes = {4, 4};
  t.steps.resize(2);
  t.steps[0].accesses = {{0, uses::read}, {1, uses::create}};
  t.steps[1].accesses = {{1, uses::read | uses::free}};
  return t;
}

machine room_for(byte_count device, byte_count host) {
  machine m;
  m.device_capacity = device;
  m.host_capacity = host;
  m.storage = {{}, {}};
  return m;
}

schedule good() {
  return {{move_item(0, link::storage_read, 1), move_item(0, link::h2d), drop_copy(0, copies::host), run_step(0),
           drop_copy(0, copies::device), run_step(1)},
          {copies::storage, copies::none},
          {1, 0}};
}

/// What is wrong, or nothing.
std::string wrong(const schedule& s, const machine& m = room_for(8, 4), const trace& t = two_steps()) {
  const auto found = verify(t, m, s);
  return found ? found->what : std::string();
}

bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(plan_verify, accepts_what_just_fits) { EXPECT_EQ(wrong(good()), ""); }

TEST(plan_verify, refuses_one_byte_less_in_either_tier) {
  EXPECT_TRUE(says(wrong(good(), room_for(7, 4)), "device tier would hold 8"));
  EXPECT_TRUE(says(wrong(good(), room_for(8, 3)), "host tier would hold 4"));
}

TEST(plan_verify, a_workspace_takes_room_in_whole_alignments) {
  trace t = two_steps();
  t.steps[1].workspace = 1;
  EXPECT_EQ(wrong(good(), room_for(4100, 4), t), "");
  EXPECT_TRUE(says(wrong(good(), room_for(4099, 4), t), "device tier would hold 4100"));
}

TEST(plan_verify, names_the_operation_and_the_step_or_item) {
  schedule s = good();
  s.operations.erase(s.operations.begin() + 1);
  s.operations.erase(s.operations.begin() + 1);
  const auto found = verify(two_steps(), room_for(8, 4), s);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->operation, 1U);
  EXPECT_EQ(found->item, 0U);
  EXPECT_EQ(found->step, 0U);
}

TEST(plan_verify, refuses_storage_on_another_path) {
  schedule s = good();
  s.operations[0].path = 0;
  EXPECT_TRUE(says(wrong(s), "read on the storage path 0, and was written on 1"));
  s.operations[0].path = 2;
  EXPECT_TRUE(says(wrong(s), "there are 2"));
}

TEST(plan_verify, refuses_transfers_without_a_source_or_onto_a_copy) {
  schedule s = good();
  s.operations.insert(s.operations.begin(), move_item(0, link::h2d));
  EXPECT_TRUE(says(wrong(s), "source"));
  s = good();
  s.operations.insert(s.operations.begin() + 1, s.operations[0]);
  EXPECT_TRUE(says(wrong(s), "target"));
}

TEST(plan_verify, refuses_a_transfer_of_dead_contents) {
  trace t = two_steps();
  t.steps[1].accesses[0].how = uses::read;  // the next access creates: what is left after step 1 is not needed
  schedule s = good();
  s.operations.push_back(drop_copy(1, copies::device));
  EXPECT_EQ(wrong(s, room_for(8, 4), t), "");
  s.operations.insert(s.operations.end() - 1, move_item(1, link::d2h));
  EXPECT_TRUE(says(wrong(s, room_for(8, 4), t), "no later step needs"));
}

TEST(plan_verify, refuses_the_drop_of_a_last_copy_or_of_none) {
  schedule s = good();
  s.operations.insert(s.operations.begin() + 4, drop_copy(1, copies::device));
  EXPECT_TRUE(says(wrong(s), "last copy"));
  s = good();
  s.operations.insert(s.operations.begin() + 4, drop_copy(0, copies::host));
  EXPECT_TRUE(says(wrong(s), "has none"));
  s = good();
  s.operations[4].gone = copies::device | copies::host;
  EXPECT_TRUE(says(wrong(s), "one tier"));
}

TEST(plan_verify, a_write_makes_other_copies_stale) {
  trace t = two_steps();
  t.steps[0].accesses[0].how = uses::read | uses::write;
  EXPECT_TRUE(says(wrong(good(), room_for(8, 4), t), "last copy"));
  schedule s = good();
  s.operations.insert(s.operations.begin() + 4, {move_item(0, link::d2h), move_item(0, link::storage_write, 1)});
  s.operations.push_back(drop_copy(0, copies::host));
  EXPECT_EQ(wrong(s, room_for(8, 4), t), "");
  s.operations[5].path = 0;
  EXPECT_TRUE(says(wrong(s, room_for(8, 4), t), "ends on the storage path 0"));
}

TEST(plan_verify, the_end_is_the_start) {
  schedule s = good();
  s.operations.erase(s.operations.begin() + 4);
  EXPECT_TRUE(says(wrong(s), "not those before the first"));
}

TEST(plan_verify, each_step_runs_once_and_in_turn) {
  schedule s = good();
  s.operations.pop_back();
  EXPECT_TRUE(says(wrong(s), "does not run"));
  s.operations.push_back(run_step(0));
  EXPECT_TRUE(says(wrong(s), "twice"));
  s.operations.back() = run_step(2);
  EXPECT_TRUE(says(wrong(s), "does not have this step"));

  trace three;
  three.item_bytes = {};
  three.steps.resize(3);
  const machine m = room_for(0, 0);
  EXPECT_EQ(wrong({{run_step(0), run_step(1), run_step(2)}, {}, {}}, m, three), "");
  EXPECT_EQ(wrong({{run_step(2), run_step(0), run_step(1)}, {}, {}}, m, three), "");
  EXPECT_TRUE(says(wrong({{run_step(0), run_step(2), run_step(1)}, {}, {}}, m, three), "before one that is listed"));
}

TEST(plan_verify, conflicting_steps_of_two_engines_keep_their_turn) {
  trace t;
  t.item_bytes = {1};
  t.steps.resize(4);
  t.steps[1].where = t.steps[3].where = place::host;
  for (trace_step& step : t.steps) {
    step.accesses = {{0, uses::create}};
  }
  const machine m = room_for(1, 1);
  const std::vector<copies> host{copies::host};
  EXPECT_EQ(wrong({{run_step(0), run_step(1), run_step(2), run_step(3)}, host, {0}}, m, t), "");
  // The host's engine one step behind: it does the previous iteration's last step first.
  EXPECT_EQ(wrong({{run_step(3), run_step(0), run_step(1), run_step(2)}, {copies::device}, {0}}, m, t), "");
  EXPECT_TRUE(says(wrong({{run_step(0), run_step(2), run_step(1), run_step(3)}, host, {0}}, m, t), "out of turn"));
  EXPECT_TRUE(says(wrong({{run_step(0), run_step(3), run_step(2), run_step(1)}, host, {0}}, m, t), "out of turn"));
  t.steps[0].accesses = t.steps[1].accesses = t.steps[2].accesses = t.steps[3].accesses = {{0, uses::read}};
  const std::vector<copies> both{copies::device | copies::host};
  EXPECT_EQ(wrong({{run_step(0), run_step(2), run_step(1), run_step(3)}, both, {0}}, m, t), "");
}

}  // namespace
}  // namespace forebay::plan
