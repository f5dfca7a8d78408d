// What both backends promise when nothing goes wrong.
#include <set>

#include <gmock/gmock.h>

#include "io_fixture.hpp"

namespace forebay {
namespace {

using io::operation_kind;
using io_test::batch;
using io_test::guarded_buffer;
using io_test::random_bytes;

class backend : public io_test::both_backends {};

TEST_P(backend, bytes_of_every_size_come_back_through_a_buffered_file) {
  const auto io = io::make_backend(options());
  const int file = open_file("sizes");
  batch ops(*io);
  byte_count offset = 0;
  for (const byte_count bytes : {1_B, 2_B, 3_B, 511_B, 512_B, 513_B, 4095_B, 4096_B, 4097_B, 1_MiB + 2, 5_MiB + 3}) {
    guarded_buffer out(bytes);
    guarded_buffer in(bytes);
    const std::vector<std::byte> content = random_bytes(bytes, bytes);
    std::memcpy(out.data(), content.data(), bytes);
    const io::result written = ops.run(operation_kind::write, file, offset, out.data(), bytes);
    EXPECT_EQ(written.error_number, 0);
    EXPECT_EQ(written.bytes, bytes);
    const io::result read = ops.run(operation_kind::read, file, offset, in.data(), bytes);
    EXPECT_EQ(read.error_number, 0);
    EXPECT_EQ(read.bytes, bytes);
    EXPECT_EQ(std::memcmp(in.data(), content.data(), bytes), 0);
    EXPECT_EQ(std::memcmp(out.data(), content.data(), bytes), 0);
    EXPECT_TRUE(in.canaries_intact() && out.canaries_intact());
    offset += bytes;
  }
}

TEST_P(backend, pieces_below_a_low_cap_add_up) {
  io::backend_options o = options();
  o.largest_transfer = 12'288;
  const auto io = io::make_backend(o);
  const int file = open_file("pieces");
  constexpr byte_count bytes = 1_MiB + 4096;
  guarded_buffer out(bytes);
  guarded_buffer in(bytes);
  const std::vector<std::byte> content = random_bytes(bytes, 3);
  std::memcpy(out.data(), content.data(), bytes);
  batch ops(*io);
  EXPECT_EQ(ops.run(operation_kind::write, file, 4096, out.data(), bytes, 4096).bytes, bytes);
  EXPECT_EQ(ops.run(operation_kind::read, file, 4096, in.data(), bytes, 4096).bytes, bytes);
  EXPECT_EQ(std::memcmp(in.data(), content.data(), bytes), 0);
}

TEST_P(backend, a_depth_of_two_carries_many_operations) {
  io::backend_options o = options();
  o.depth = 2;
  const auto io = io::make_backend(o);
  const int file = open_file("many");
  constexpr std::size_t count = 64;
  constexpr byte_count bytes = 64_KiB;
  const std::vector<std::byte> content = random_bytes(count * bytes, 5);
  guarded_buffer out(count * bytes);
  guarded_buffer in(count * bytes);
  std::memcpy(out.data(), content.data(), content.size());
  batch writes(*io);
  for (std::size_t i = 0; i < count; ++i) {
    writes.start(operation_kind::write, file, i * bytes, out.data() + i * bytes, bytes);
  }
  writes.wait();
  batch reads(*io);
  for (std::size_t i = 0; i < count; ++i) {
    reads.start(operation_kind::read, file, i * bytes, in.data() + i * bytes, bytes);
  }
  reads.wait();
  for (std::size_t i = 0; i < count; ++i) {
    EXPECT_EQ(writes.of(i).bytes, bytes);
    EXPECT_EQ(reads.of(i).bytes, bytes);
    EXPECT_EQ(reads.completions(i), 1);
  }
  EXPECT_EQ(std::memcmp(in.data(), content.data(), content.size()), 0);
}

TEST_P(backend, registered_and_other_memory_and_files_mix) {
  const auto io = io::make_backend(options());
  const int known = open_file("known");
  const int other = open_file("other");
  guarded_buffer first(256_KiB);
  guarded_buffer second(256_KiB);
  guarded_buffer plain(256_KiB);
  io->register_memory({first.data(), first.size()});
  io->register_memory({second.data(), second.size()});
  const std::vector<int> files{known};
  io->register_files(files);
  EXPECT_THAT(io->degradations(), ::testing::IsEmpty());
  const std::vector<std::byte> content = random_bytes(256_KiB, 11);
  std::memcpy(first.data(), content.data(), content.size());
  batch ops(*io);
  for (const int file : {known, other}) {
    // The end of one registered range, and a transfer that only begins in one, must not be taken for registered.
    EXPECT_EQ(ops.run(operation_kind::write, file, 0, first.data(), 256_KiB).bytes, 256_KiB);
    EXPECT_EQ(ops.run(operation_kind::read, file, 100, second.data() + 1, 256_KiB - 100).bytes, 256_KiB - 100);
    EXPECT_EQ(std::memcmp(second.data() + 1, content.data() + 100, 256_KiB - 100), 0);
    EXPECT_EQ(ops.run(operation_kind::read, file, 0, plain.data(), 256_KiB).bytes, 256_KiB);
    EXPECT_EQ(std::memcmp(plain.data(), content.data(), 256_KiB), 0);
    std::memset(second.data(), 0, second.size());
    std::memset(plain.data(), 0, plain.size());
  }
}

TEST_P(backend, the_end_of_the_file_is_a_short_success) {
  const auto io = io::make_backend(options());
  const int file = open_file("short");
  ASSERT_EQ(::ftruncate(file, 1000), 0);
  guarded_buffer in(4096);
  batch ops(*io);
  for (const byte_count alignment : {1_B, 512_B}) {
    const io::result outcome = ops.run(operation_kind::read, file, 0, in.data(), 4096, alignment);
    EXPECT_EQ(outcome.error_number, 0);
    EXPECT_EQ(outcome.bytes, 1000U);
  }
  EXPECT_EQ(ops.run(operation_kind::read, file, 8192, in.data(), 4096).bytes, 0U);
}

TEST_P(backend, nothing_to_move_completes) {
  const auto io = io::make_backend(options());
  batch ops(*io);
  const io::result outcome = ops.run(operation_kind::write, -1, 0, nullptr, 0);
  EXPECT_EQ(outcome.error_number, 0);
  EXPECT_EQ(outcome.bytes, 0U);
}

TEST_P(backend, errors_come_as_errno) {
  const auto io = io::make_backend(options());
  guarded_buffer memory(4096);
  batch ops(*io);
  EXPECT_EQ(ops.run(operation_kind::read, -1, 0, memory.data(), 4096).error_number, EBADF);
  const int read_only = ::open("/dev/zero", O_RDONLY | O_CLOEXEC);
  EXPECT_EQ(ops.run(operation_kind::write, read_only, 0, memory.data(), 4096).error_number, EBADF);
  ::close(read_only);
}

TEST_P(backend, a_completion_may_submit_the_next_operation) {
  struct chain {
    io::operation op;
    io::backend* io = nullptr;
    int left = 200;
    std::mutex mutex;
    std::condition_variable changed;
    bool done = false;
  };
  chain c;
  guarded_buffer memory(4096);
  const int file = open_file("chain");
  {
    const auto io = io::make_backend(options());
    c.io = io.get();
    c.op.kind = operation_kind::write;
    c.op.file = file;
    c.op.memory = memory.data();
    c.op.bytes = 4096;
    c.op.context = &c;
    c.op.complete = [](io::operation& self, io::result) noexcept {
      auto& mine = *static_cast<chain*>(self.context);
      if (--mine.left > 0) {
        self.offset += self.bytes;
        mine.io->submit(self);
        return;
      }
      const std::scoped_lock lock(mine.mutex);
      mine.done = true;
      mine.changed.notify_all();
    };
    io->submit(c.op);
    // Destroyed at once: the destructor also sees to what completions submit.
  }
  EXPECT_TRUE(c.done);
  EXPECT_EQ(::lseek(file, 0, SEEK_END), 200 * 4096);
}

TEST_P(backend, automatic_is_one_of_the_two_and_says_which) {
  io::backend_options o = options();
  o.kind = io::backend_kind::automatic;
  const auto io = io::make_backend(o);
  EXPECT_THAT(io->name(), ::testing::AnyOf("io_uring", "threads"));
  EXPECT_EQ(io->name() == "threads", !io->degradations().empty());
}

INSTANTIATE_TEST_SUITE_P(kinds, backend, ::testing::Values(io::backend_kind::uring, io::backend_kind::threads),
                         io_test::backend_name);

}  // namespace
}  // namespace forebay
