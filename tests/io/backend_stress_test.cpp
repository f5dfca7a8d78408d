// Many threads submit at once, with delays and retries under way.
#include <atomic>
#include <thread>

#include <forebay/testing/io_faults.hpp>

#include "io_fixture.hpp"

namespace forebay {
namespace {

using io::operation_kind;
using io_test::batch;
using io_test::guarded_buffer;
using io_test::random_bytes;
using testing::fault_trigger;
using testing::io_faults;
using namespace std::chrono_literals;

class crowded_backend : public io_test::both_backends {};

TEST_P(crowded_backend, serves_many_threads_and_mixes_nothing_up) {
  constexpr std::size_t threads = 4;
  constexpr std::size_t rounds = 15;
  constexpr std::size_t pieces = 16;
  constexpr byte_count bytes = 5'000;
  io_faults faults(8);
  faults.delay(0us, 500us, fault_trigger::chance(0.5))
      .fail(EAGAIN, fault_trigger::chance(0.05))
      .shorten(fault_trigger::chance(0.1));
  io::backend_options o = options(&faults);
  o.depth = 8;
  const auto io = io::make_backend(o);
  const int file = open_file("crowd");
  std::atomic<int> wrong{0};
  const auto work = [&](std::size_t thread) {
    guarded_buffer out(pieces * bytes);
    guarded_buffer in(pieces * bytes);
    const byte_count start = thread * pieces * bytes;
    for (std::size_t round = 0; round < rounds; ++round) {
      const std::vector<std::byte> content = random_bytes(pieces * bytes, thread * rounds + round);
      std::memcpy(out.data(), content.data(), content.size());
      for (const operation_kind kind : {operation_kind::write, operation_kind::read}) {
        batch ops(*io);
        std::byte* memory = kind == operation_kind::write ? out.data() : in.data();
        for (std::size_t i = 0; i < pieces; ++i) {
          ops.start(kind, file, start + i * bytes, memory + i * bytes, bytes);
        }
        ops.wait();
        for (std::size_t i = 0; i < pieces; ++i) {
          wrong += ops.of(i).bytes == bytes && ops.of(i).error_number == 0 && ops.completions(i) == 1 ? 0 : 1;
        }
      }
      wrong += std::memcmp(in.data(), content.data(), content.size()) == 0 && in.canaries_intact() ? 0 : 1;
    }
  };
  std::vector<std::thread> crowd;
  for (std::size_t thread = 0; thread < threads; ++thread) {
    crowd.emplace_back(work, thread);
  }
  for (std::thread& thread : crowd) {
    thread.join();
  }
  EXPECT_EQ(wrong, 0);
}

TEST_P(crowded_backend, starts_and_ends_many_times) {
  const int file = open_file("short life");
  guarded_buffer memory(4096);
  for (int i = 0; i < 50; ++i) {
    const auto io = io::make_backend(options());
    io->register_memory({memory.data(), memory.size()});
    batch ops(*io);
    if (i % 2 == 0) {
      EXPECT_EQ(ops.run(operation_kind::write, file, 0, memory.data(), 4096).bytes, 4096U);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(kinds, crowded_backend, ::testing::Values(io::backend_kind::uring, io::backend_kind::threads),
                         io_test::backend_name);

}  // namespace
}  // namespace forebay
