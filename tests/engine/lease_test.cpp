#include <set>
#include <thread>

#include <gtest/gtest.h>

#include <forebay/testing/delayed_device.hpp>

#include "small_engine.hpp"

namespace forebay {
namespace {

using testing_support::add_floats;
using testing_support::contents;
using testing_support::ramp;
using testing_support::scratch_directory;
using testing_support::small_options;

class lease_test : public ::testing::Test {
 protected:
  void use(byte_count device, byte_count host) { e.emplace(small_options(device, host, &directory)); }

  // `n` tensors of 16 KiB, all ramps.
  void add(std::uint32_t n) {
    for (std::uint32_t i = 0; i < n; ++i) {
      ids.push_back(add_floats(*e, "t" + std::to_string(i), 4096));
    }
  }
  void adopt(order o) {
    e->set_order(std::move(o));
    for (std::uint32_t i = 0; i < ids.size(); ++i) {
      e->write<float>(ids[i], ramp(4096, static_cast<float>(i)));
    }
  }
  stream& compute() { return e->compute_stream(); }

  scratch_directory directory;
  std::optional<engine> e;
  std::vector<tensor_id> ids;
};

TEST_F(lease_test, wrong_calls_are_named_and_harmless) {
  use(1_MiB, 1_MiB);
  add(3);
  const tensor_id empty = add_floats(*e, "empty", 10);
  order o;
  const step_id on_device = o.step("on_device", {reads(ids[0])});
  const step_id on_host = o.step("on_host", {reads(ids[1])}, {.where = place::host});
  const step_id undefined = o.step("undefined", {reads(empty)});
  adopt(o);
  EXPECT_THROW(e->add({"t0", dtype::f32, {1}}), usage_error);
  EXPECT_THROW(e->add({"void", dtype::f32, {3, 0}}), usage_error);
  EXPECT_THROW(static_cast<void>(e->spec({0, 0})), usage_error);
  iteration it = e->begin(0);
  EXPECT_THROW(static_cast<void>(e->begin(1)), usage_error);
  EXPECT_THROW(e->set_order(o), usage_error);
  EXPECT_THROW(static_cast<void>(it.acquire(on_device)), usage_error);
  EXPECT_THROW(static_cast<void>(it.acquire(on_host, compute())), usage_error);
  EXPECT_THROW(static_cast<void>(it.acquire(undefined, compute())), usage_error);
  EXPECT_THROW(static_cast<void>(it.acquire(step_id{17, 0}, compute())), usage_error);
  {
    const lease l = it.acquire(on_host);
    EXPECT_THROW(static_cast<void>(l.data<float>(ids[0])), usage_error);
    EXPECT_THROW(static_cast<void>(l.data<std::int32_t>(ids[1])), usage_error);
    EXPECT_THROW(it.finish(), usage_error);
    EXPECT_THROW(e->write<float>(ids[1], ramp(4096, 0.0F)), usage_error);
    EXPECT_EQ(l.data<float>(ids[1])[1], 2.0F);
  }
  it.finish();
  EXPECT_EQ(contents(*e, ids[1]), ramp(4096, 1.0F));
}

TEST_F(lease_test, ids_of_another_engine_are_refused) {
  use(1_MiB, 1_MiB);
  add(1);
  engine other(small_options(1_MiB, 1_MiB));
  order o;
  o.step("s", {reads(add_floats(other, "t0", 4096))});
  EXPECT_THROW(e->set_order(o), usage_error);
}

// What an independent count sees: the ranges of live leases never overlap, lie in the arena, and add up to less than
// it.
TEST_F(lease_test, live_leases_have_disjoint_ranges_inside_the_arena) {
  use(64_KiB, 256_KiB);
  add(8);
  order o;
  for (std::uint32_t i = 0; i < 8; ++i) {
    o.step("s" + std::to_string(i), {writes(ids[i])}, {.workspace = 4096});
  }
  adopt(o);
  const std::span<std::byte> arena = e->device().arena();
  for (std::uint64_t n = 0; n < 6; ++n) {
    iteration it = e->begin(n);
    for (std::uint32_t i = 0; i < 8; i += 2) {  // two live at once: 2 * (16 + 4) KiB
      std::set<std::byte*> touched;
      std::vector<lease> live;
      for (std::uint32_t k = i; k < i + 2; ++k) {
        live.push_back(it.acquire(step_id{k, 0}, compute()));
        for (const std::span<std::byte> range : {live.back().bytes(ids[k]), live.back().workspace()}) {
          ASSERT_GE(range.data(), arena.data());
          ASSERT_LE(range.data() + range.size(), arena.data() + arena.size());
          for (byte_count at = 0; at < range.size(); at += 256) {
            ASSERT_TRUE(touched.insert(range.data() + at).second) << "two live leases share memory";
          }
        }
      }
    }
    it.finish();
  }
  for (std::uint32_t i = 0; i < 8; ++i) {
    EXPECT_EQ(contents(*e, ids[i]), ramp(4096, static_cast<float>(i)));
  }
}

TEST_F(lease_test, what_cannot_fit_beside_the_own_leases_is_refused_at_once) {
  use(48_KiB, 1_MiB);
  add(4);
  order o;
  const step_id two = o.step("two", {reads(ids[0]), reads(ids[1])});
  const step_id others = o.step("others", {reads(ids[2]), reads(ids[3])});
  const step_id shared = o.step("shared", {reads(ids[1]), reads(ids[2])});
  adopt(o);
  iteration it = e->begin(0);
  {
    const lease first = it.acquire(two, compute());
    EXPECT_THROW(static_cast<void>(it.acquire(others, compute())), capacity_error);
    const lease third = it.acquire(shared, compute());  // one tensor is there already
    EXPECT_EQ(third.bytes(ids[1]).data(), first.bytes(ids[1]).data());
  }
  const lease later = it.acquire(others, compute());
  compute().synchronize();
  EXPECT_EQ(later.data<float>(ids[3])[5], 8.0F);
}

TEST_F(lease_test, a_lease_that_conflicts_with_an_own_one_in_the_other_tier_is_refused_not_waited_for) {
  use(1_MiB, 1_MiB);
  add(1);
  order o;
  const step_id on_device = o.step("on_device", {writes(ids[0])});
  const step_id on_host = o.step("on_host", {writes(ids[0])}, {.where = place::host});
  adopt(o);
  iteration it = e->begin(0);
  {
    const lease held = it.acquire(on_device, compute());
    EXPECT_THROW(static_cast<void>(it.acquire(on_host)), error);
  }
  { const lease l = it.acquire(on_host); }
  it.finish();
}

// Forward and recomputation both hold the tensor: one fetch serves both.
TEST_F(lease_test, a_second_lease_of_the_same_tensor_costs_no_second_fetch) {
  use(16_KiB, 64_KiB + 16_KiB);
  add(3);
  order o;
  const step_id once = o.step("once", {reads(ids[0])});
  const step_id again = o.step("again", {reads(ids[0])});
  const step_id other = o.step("other", {reads(ids[1])});
  const step_id third = o.step("third", {reads(ids[2])});
  adopt(o);
  for (std::uint64_t n = 0; n < 2; ++n) {
    iteration it = e->begin(n);
    {
      const lease first = it.acquire(once, compute());
      const lease second = it.acquire(again, compute());
      EXPECT_EQ(first.bytes(ids[0]).data(), second.bytes(ids[0]).data());
    }
    { const lease l = it.acquire(other, compute()); }
    { const lease l = it.acquire(third, compute()); }
    const iteration_report r = it.finish();
    EXPECT_LE(r.moved.h2d, 4 * 16_KiB);  // three tensors in a device tier of one, and one look-ahead
  }
}

// Another stream's work on a tensor is ordered by the engine: readers after the writer, the writer after the readers.
TEST_F(lease_test, streams_are_ordered_by_what_they_touch) {
  use(1_MiB, 1_MiB);
  add(1);
  order o;
  const step_id write = o.step("write", {writes(ids[0])});
  const step_id read = o.step("read", {reads(ids[0])});
  adopt(o);
  const std::unique_ptr<stream> second = e->device().make_stream(stream_kind::compute);
  std::vector<float> seen(50);
  for (std::uint32_t n = 0; n < 50; ++n) {
    iteration it = e->begin(n);
    {
      const lease l = it.acquire(write, compute());
      compute().launch([data = l.data<float>(ids[0]), n] {
        std::this_thread::sleep_for(std::chrono::microseconds(200));
        data[0] = static_cast<float>(n + 1);
      });
    }
    {
      const lease l = it.acquire(read, *second);
      second->launch([data = l.data<float>(ids[0]), &out = seen[n]] {
        std::this_thread::sleep_for(std::chrono::microseconds(200));
        out = data[0];
      });
    }
    {
      const lease l = it.acquire(write, compute());
      compute().launch([data = l.data<float>(ids[0])] { data[0] = -1.0F; });
    }
    it.finish();
    EXPECT_EQ(seen[n], static_cast<float>(n + 1));
  }
}

TEST_F(lease_test, an_exception_in_a_step_reaches_finish_and_latches) {
  use(1_MiB, 1_MiB);
  add(1);
  order o;
  const step_id s = o.step("s", {writes(ids[0])});
  adopt(o);
  iteration it = e->begin(0);
  {
    const lease l = it.acquire(s, compute());
    compute().launch([] { throw std::domain_error("not today"); });
  }
  EXPECT_THROW(it.finish(), std::domain_error);
}

TEST_F(lease_test, recorded_steps_become_the_order) {
  use(48_KiB, 128_KiB);
  add(6);
  for (std::uint32_t i = 0; i < 6; ++i) {
    e->write<float>(ids[i], ramp(4096, static_cast<float>(i)));
  }
  const auto pass = [&](auto&& acquire) {
    for (std::uint32_t i = 0; i < 6; ++i) {
      const lease l = acquire(i);
      compute().launch([data = l.template data<float>(ids[i])] { data[0] += 1.0F; });
    }
  };
  iteration first = e->record(0);
  pass([&](std::uint32_t i) { return first.acquire("s" + std::to_string(i), {writes(ids[i])}, compute()); });
  first.finish();
  ASSERT_EQ(e->current_order().steps().size(), 6U);
  EXPECT_EQ(e->current_order().steps()[4].name, "s4");
  for (std::uint64_t n = 1; n < 4; ++n) {
    iteration it = e->begin(n);
    pass([&](std::uint32_t i) { return it.acquire(step_id{i, 0}, compute()); });
    it.finish();
  }
  for (std::uint32_t i = 0; i < 6; ++i) {
    EXPECT_EQ(contents(*e, ids[i])[0], static_cast<float>(i) + 4.0F);
  }
}

TEST_F(lease_test, an_abandoned_iteration_leaves_the_engine_usable) {
  use(1_MiB, 1_MiB);
  add(2);
  order o;
  const step_id s = o.step("s", {writes(ids[0])});
  adopt(o);
  try {
    iteration it = e->begin(0);
    const lease l = it.acquire(s, compute());
    throw std::runtime_error("the caller's own");
  } catch (const std::runtime_error&) {
  }
  iteration it = e->begin(1);
  { const lease l = it.acquire(s, compute()); }
  it.finish();
}

// The stream has failed long before anybody asks: what it skipped must not pass for done.
TEST_F(lease_test, a_stream_that_failed_before_its_lease_was_reaped_still_fails_the_iteration) {
  use(1_MiB, 1_MiB);
  add(2);
  order o;
  const step_id first = o.step("first", {writes(ids[0])});
  const step_id second = o.step("second", {reads(ids[1])});
  adopt(o);
  iteration it = e->begin(0);
  {
    const lease l = it.acquire(first, compute());
    compute().launch([] { throw std::domain_error("not today"); });
  }
  while (compute().failure() == nullptr) {
    std::this_thread::yield();
  }
  EXPECT_THROW(
      {
        { const lease l = it.acquire(second, compute()); }
        it.finish();
      },
      std::domain_error);
}

TEST_F(lease_test, a_stream_of_the_callers_may_end_with_the_iteration) {
  use(1_MiB, 1_MiB);
  add(1);
  order o;
  const step_id s = o.step("s", {writes(ids[0])});
  adopt(o);
  for (std::uint64_t n = 0; n < 20; ++n) {
    const std::unique_ptr<stream> own = e->device().make_stream(stream_kind::compute);
    iteration it = e->begin(n);
    {
      const lease l = it.acquire(s, *own);
      own->launch([data = l.data<float>(ids[0])] { data[0] += 1.0F; });
    }
    it.finish();
  }
  EXPECT_EQ(contents(*e, ids[0])[0], 20.0F);
}

TEST_F(lease_test, an_own_lease_that_conflicts_on_another_stream_is_refused) {
  use(1_MiB, 1_MiB);
  add(1);
  order o;
  const step_id write = o.step("write", {writes(ids[0])});
  const step_id read = o.step("read", {reads(ids[0])});
  adopt(o);
  const std::unique_ptr<stream> other = e->device().make_stream(stream_kind::compute);
  iteration it = e->begin(0);
  {
    const lease held = it.acquire(write, compute());
    EXPECT_THROW(static_cast<void>(it.acquire(read, *other)), usage_error);
    const lease same = it.acquire(read, compute());
  }
  { const lease l = it.acquire(read, *other); }
  it.finish();
}

// Two threads, each step fitting alone and both not fitting together: one waits for the other, and both get on.
TEST_F(lease_test, two_threads_share_a_tier_that_holds_one_step_at_a_time) {
  use(64_KiB, 512_KiB);
  add(4);
  order o;
  const step_id a = o.step("a", {writes(ids[0]), writes(ids[1])}, {.workspace = 16 * 1024});
  const step_id b = o.step("b", {writes(ids[2]), writes(ids[3])}, {.workspace = 16 * 1024});
  adopt(o);
  iteration it = e->begin(0);
  const auto work = [&](step_id step, stream& on, std::uint32_t first) {
    for (int i = 0; i < 50; ++i) {
      const lease l = it.acquire(step, on);
      on.launch([x = l.data<float>(ids[first]), y = l.data<float>(ids[first + 1])] {
        x[0] += 1.0F;
        y[0] += 1.0F;
      });
    }
  };
  const std::unique_ptr<stream> second = e->device().make_stream(stream_kind::compute);
  std::thread other([&] { work(b, *second, 2); });
  work(a, compute(), 0);
  other.join();
  it.finish();
  for (std::uint32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(contents(*e, ids[i])[0], static_cast<float>(i) + 50.0F);
  }
}

TEST_F(lease_test, recording_nothing_keeps_the_order) {
  use(1_MiB, 1_MiB);
  add(1);
  e->record(0).finish();
  EXPECT_THROW(static_cast<void>(e->begin(1)), usage_error);
  order o;
  o.step("s", {reads(ids[0])});
  adopt(o);
  e->record(2).finish();
  EXPECT_EQ(e->current_order().steps().size(), 1U);
}

TEST_F(lease_test, a_lease_that_outlives_its_iteration_keeps_the_order_from_changing) {
  use(1_MiB, 1_MiB);
  add(1);
  order o;
  const step_id s = o.step("s", {reads(ids[0])});
  adopt(o);
  lease kept;
  {
    iteration it = e->begin(0);
    kept = it.acquire(s, compute());
  }
  EXPECT_THROW(e->set_order(o), usage_error);
  EXPECT_THROW(static_cast<void>(e->begin(1)), usage_error);
  kept.release();
  e->set_order(o);
}

}  // namespace
}  // namespace forebay
