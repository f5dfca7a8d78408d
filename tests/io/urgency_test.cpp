// A demand overtakes whatever waits, on its file, in both backends.
#include <future>
#include <mutex>
#include <set>
#include <vector>

#include "io_fixture.hpp"

namespace forebay {
namespace {

using io::operation_kind;
using io_test::batch;
using io_test::guarded_buffer;
using io_test::random_bytes;

/// Notes the order in which transfers start, and stops the backend at the first one until it may go on.
class turnstile final : public io::interceptor {
 public:
  std::int64_t before(const transfer& t) noexcept override {
    bool first = false;
    {
      const std::scoped_lock lock(mutex_);
      first = started_.empty();
      started_.push_back(t.offset);
    }
    if (first) {
      reached.set_value();
      open.get_future().wait();
    }
    return 0;
  }
  [[nodiscard]] std::vector<byte_count> started() const {
    const std::scoped_lock lock(mutex_);
    return started_;
  }
  std::promise<void> reached;
  std::promise<void> open;

 private:
  mutable std::mutex mutex_;
  std::vector<byte_count> started_;
};

class urgency : public io_test::both_backends {};

TEST_P(urgency, nothing_less_urgent_starts_between_a_demand_and_its_own_start) {
  constexpr byte_count bytes = 16_KiB;
  constexpr byte_count place_of_demand = 1_MiB;
  turnstile order;
  io::backend_options o = options(&order);
  o.threads = 1;
  o.merge = bytes;  // no two go together
  const auto io = io::make_backend(o);
  const int file = open_file("f");
  const std::vector<int> files{file};
  io->register_files(files);
  guarded_buffer memory(1_MiB);
  guarded_buffer demanded(bytes);
  batch ops(*io);
  ops.start(operation_kind::write, file, 0, memory.data(), bytes, 1, 3);
  order.reached.get_future().wait();
  constexpr std::size_t waiting = 20;
  for (std::size_t i = 1; i <= waiting; ++i) {
    ops.start(i % 2 == 0 ? operation_kind::write : operation_kind::read, file, i * bytes, memory.data() + i * bytes,
              bytes, 1, static_cast<std::uint8_t>(1 + i % 3));
  }
  ops.start(operation_kind::write, file, place_of_demand, demanded.data(), bytes, 1, 0);
  order.open.set_value();
  ops.wait();
  const std::vector<byte_count> started = order.started();
  ASSERT_GE(started.size(), waiting + 2);
  EXPECT_EQ(started[1], place_of_demand);
  const auto class_of = [&](byte_count offset) { return 1 + offset / bytes % 3; };
  for (std::size_t i = 3; i < waiting + 2; ++i) {
    EXPECT_LE(class_of(started[i - 1]), class_of(started[i])) << i;
  }
}

TEST_P(urgency, small_neighbours_in_any_order_and_memory_anywhere_come_back) {
  constexpr byte_count bytes = 8_KiB;
  constexpr std::size_t count = 700;
  io::backend_options o = options();
  o.depth = 2;
  o.merge = 128_KiB;
  const auto io = io::make_backend(o);
  const int file = open_file("f");
  guarded_buffer out(count * bytes);
  guarded_buffer in(count * bytes);
  io->register_memory({in.data(), in.size()});
  const std::vector<std::byte> content = random_bytes(count * bytes, 21);
  std::memcpy(out.data(), content.data(), content.size());
  const auto place = [&](std::size_t i) { return i * 311 % count; };  // 311 and 700 have no common factor
  batch writes(*io);
  for (std::size_t i = 0; i < count; ++i) {
    writes.start(operation_kind::write, file, place(i) * bytes, out.data() + i * bytes, bytes);
  }
  writes.wait();
  batch reads(*io);
  for (std::size_t i = 0; i < count; ++i) {
    reads.start(operation_kind::read, file, place(count - 1 - i) * bytes, in.data() + (count - 1 - i) * bytes, bytes);
  }
  reads.wait();
  for (std::size_t i = 0; i < count; ++i) {
    ASSERT_EQ(writes.of(i).bytes, bytes);
    ASSERT_EQ(reads.of(i).bytes, bytes);
    ASSERT_EQ(reads.completions(i), 1);
  }
  EXPECT_EQ(std::memcmp(in.data(), content.data(), content.size()), 0);
}

INSTANTIATE_TEST_SUITE_P(backends, urgency, ::testing::Values(io::backend_kind::uring, io::backend_kind::threads),
                         io_test::backend_name);

}  // namespace
}  // namespace forebay
