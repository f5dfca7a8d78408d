// Faults under a streaming order: each ends in the right bytes or in a typed error that names what failed. Never a
// hang.
#include <cerrno>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <forebay/testing/delayed_device.hpp>
#include <forebay/testing/io_faults.hpp>

#include "small_engine.hpp"

namespace forebay {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing_support::add_floats;
using testing_support::contents;
using testing_support::ramp;
using testing_support::scratch_directory;
using testing_support::small_options;

constexpr std::uint64_t floats = 40'000;  // three chunks, the last one odd
constexpr std::uint32_t layers = 8;

class failure_test : public ::testing::TestWithParam<io::backend_kind> {
 protected:
  void open(testing::io_faults& faults, testing::delayed_device** device = nullptr) {
    engine_options o = small_options(2 * 163'840, 3 * 163'840 + 2 * 64_KiB, &directory);
    if (device != nullptr) {
      testing::delayed_device_options none;
      none.max_h2d_delay = none.max_d2h_delay = duration::zero();
      auto wrapped = std::make_unique<testing::delayed_device>(std::move(o.device), none);
      *device = wrapped.get();
      o.device = std::move(wrapped);
    }
    o.io.kind = GetParam();
    o.io.faults = &faults;
    e.emplace(std::move(o));
    order steps;
    for (std::uint32_t i = 0; i < layers; ++i) {
      steps.step("s" + std::to_string(i), {writes(add_floats(*e, "layer" + std::to_string(i), floats))});
    }
    e->set_order(steps);
    for (const tensor_id t : e->tensors()) {
      e->write<float>(t, ramp(floats, static_cast<float>(t.index)));
    }
  }

  void run(std::uint64_t iterations) {
    for (std::uint64_t n = 0; n < iterations; ++n) {
      iteration it = e->begin(n);
      for (std::uint32_t i = 0; i < layers; ++i) {
        const lease l = it.acquire(step_id{i, 0}, e->compute_stream());
        e->compute_stream().launch([data = l.data<float>(e->tensors()[i])] { data.back() += 1.0F; });
      }
      it.finish();
    }
  }

  void expect_right(std::uint64_t iterations) {
    for (const tensor_id t : e->tensors()) {
      std::vector<float> expected = ramp(floats, static_cast<float>(t.index));
      expected.back() += static_cast<float>(iterations);
      EXPECT_EQ(contents(*e, t), expected);
    }
  }

  template <typename Failure>
  std::string message_of_run() {
    try {
      run(5);
      for (const tensor_id t : e->tensors()) {
        static_cast<void>(contents(*e, t));
      }
    } catch (const Failure& failure) {
      return failure.what();
    }
    return "no failure";
  }

  scratch_directory directory;
  std::optional<engine> e;
};

TEST_P(failure_test, transient_errors_and_short_transfers_change_nothing) {
  testing::io_faults faults(7);
  faults.fail(EAGAIN, testing::fault_trigger::chance(0.1))
      .fail(EINTR, testing::fault_trigger::chance(0.1))
      .shorten(testing::fault_trigger::chance(0.2))
      .underreport(testing::fault_trigger::chance(0.2))
      .delay(duration::zero(), std::chrono::milliseconds(2), testing::fault_trigger::chance(0.3));
  open(faults);
  run(6);
  expect_right(6);
  EXPECT_GT(faults.seen().failed + faults.seen().shortened, 0U);
  e.reset();
}

TEST_P(failure_test, a_write_that_fails_for_good_names_tensor_path_and_errno) {
  testing::io_faults faults;
  faults.fail(EIO, testing::fault_trigger{20, 1, ~std::uint64_t{0}, 1.0}, {io::operation_kind::write, -1});
  open(faults);
  EXPECT_THAT(message_of_run<io_error>(), AllOf(HasSubstr("layer"), HasSubstr("store"), HasSubstr("EIO")));
  EXPECT_THROW(static_cast<void>(e->begin(9)), io_error);  // the first failure stays
  e.reset();
}

TEST_P(failure_test, a_read_that_fails_for_good_names_tensor_path_and_errno) {
  testing::io_faults faults;
  faults.fail(EIO, testing::fault_trigger{10, 1, ~std::uint64_t{0}, 1.0}, {io::operation_kind::read, -1});
  open(faults);
  EXPECT_THAT(message_of_run<io_error>(), AllOf(HasSubstr("layer"), HasSubstr("store"), HasSubstr("EIO")));
  e.reset();
}

TEST_P(failure_test, a_full_disk_in_mid_run_is_an_error_with_its_name) {
  testing::io_faults faults;
  faults.fail(ENOSPC, testing::fault_trigger{40, 1, ~std::uint64_t{0}, 1.0}, {io::operation_kind::write, -1});
  open(faults);
  EXPECT_THAT(message_of_run<io_error>(), HasSubstr("ENOSPC"));
  e.reset();
}

TEST_P(failure_test, one_flipped_bit_is_read_again_and_many_are_corruption) {
  testing::io_faults once;
  once.flip_bit(testing::fault_trigger::nth(5), {io::operation_kind::read, -1});
  open(once);
  run(4);
  expect_right(4);
  e.reset();
  testing::io_faults always;
  always.flip_bit(testing::fault_trigger{5, 1, ~std::uint64_t{0}, 1.0}, {io::operation_kind::read, -1});
  open(always);
  EXPECT_THAT(message_of_run<corruption_error>(), AllOf(HasSubstr("layer"), HasSubstr("store")));
  e.reset();
}

TEST_P(failure_test, an_engine_can_be_destroyed_with_transfers_under_way) {
  for (int round = 0; round < 5; ++round) {
    testing::io_faults slow(static_cast<std::uint64_t>(round) + 1);
    slow.delay(std::chrono::milliseconds(1), std::chrono::milliseconds(10));
    open(slow);
    iteration it = e->begin(0);
    for (std::uint32_t i = 0; i < 3; ++i) {
      const lease l = it.acquire(step_id{i, 0}, e->compute_stream());
    }
    it.finish();
    e.reset();  // prefetches and write-backs are still on their way
  }
}

TEST_P(failure_test, a_failed_copy_reaches_the_caller) {
  for (const copy_direction direction : {copy_direction::host_to_device, copy_direction::device_to_host}) {
    testing::io_faults none;
    testing::delayed_device* device = nullptr;
    open(none, &device);
    run(1);
    device->fail_copy(direction, 3);
    EXPECT_NE(message_of_run<device_error>(), "no failure");
    e.reset();
  }
}

INSTANTIATE_TEST_SUITE_P(backends, failure_test, ::testing::Values(io::backend_kind::uring, io::backend_kind::threads),
                         [](const auto& kind) {
                           return std::string(kind.param == io::backend_kind::uring ? "uring" : "threads");
                         });

}  // namespace
}  // namespace forebay
