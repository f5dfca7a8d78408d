// Scripts at work on both backends: what reaches the file and the memory, and in which order completions come.
#include <cerrno>
#include <condition_variable>
#include <mutex>

#include <gmock/gmock.h>

#include <forebay/testing/io_faults.hpp>

#include "../io/io_fixture.hpp"

namespace forebay {
namespace {

using io::operation_kind;
using io_test::batch;
using io_test::guarded_buffer;
using io_test::random_bytes;
using ::testing::ElementsAre;
using testing::fault_trigger;
using ::testing::HasSubstr;
using testing::io_faults;
using testing::parse_fault_script;
using namespace std::chrono_literals;

constexpr byte_count kib64 = 64_KiB;

class scripted_backend : public io_test::both_backends {
 protected:
  std::unique_ptr<io::backend> make(io_faults& faults) {
    io::backend_options o = options();
    faults.install(o);
    return io::make_backend(o);
  }

  /// What the file holds, told by the kernel.
  static std::vector<std::byte> file_bytes(int file, byte_count bytes) {
    std::vector<std::byte> content(bytes);
    EXPECT_EQ(::pread(file, content.data(), bytes, 0), static_cast<ssize_t>(bytes));
    return content;
  }

  /// A file with random bytes, which are returned.
  std::vector<std::byte> fill(int file, byte_count bytes, std::uint64_t seed) {
    std::vector<std::byte> content = random_bytes(bytes, seed);
    EXPECT_EQ(::pwrite(file, content.data(), bytes, 0), static_cast<ssize_t>(bytes));
    return content;
  }
};

TEST_P(scripted_backend, a_torn_write_leaves_a_prefix_and_reports_success) {
  bool partly = false;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const int file = open_file("torn");
    const std::vector<std::byte> old = fill(file, kib64, 1);
    const std::vector<std::byte> content = random_bytes(kib64, 2);
    guarded_buffer memory(kib64);
    std::memcpy(memory.data(), content.data(), kib64);
    io_faults faults(parse_fault_script("tear nth 1"), seed);
    const auto io = make(faults);
    batch ops(*io);
    const io::result outcome = ops.run(operation_kind::write, file, 0, memory.data(), kib64, 4096);
    EXPECT_EQ(outcome.error_number, 0);
    EXPECT_EQ(outcome.bytes, kib64);
    const std::vector<std::byte> found = file_bytes(file, kib64);
    byte_count prefix = 0;
    while (prefix < kib64 && std::memcmp(found.data() + prefix, content.data() + prefix, 4096) == 0) {
      prefix += 4096;
    }
    ASSERT_LT(prefix, kib64);  // something is missing
    EXPECT_EQ(std::memcmp(found.data() + prefix, old.data() + prefix, kib64 - prefix), 0);
    EXPECT_EQ(std::memcmp(memory.data(), content.data(), kib64), 0);
    EXPECT_EQ(faults.seen().torn, 1U);
    partly = partly || prefix > 0;
    ops.run(operation_kind::write, file, 0, memory.data(), kib64, 4096);  // the next one is whole
    EXPECT_EQ(file_bytes(file, kib64), content);
  }
  EXPECT_TRUE(partly);
}

TEST_P(scripted_backend, a_torn_direct_write_is_torn_too) {
  const int file = open_file("torn", O_DIRECT);
  EXPECT_EQ(::ftruncate(file, kib64), 0);
  const std::vector<std::byte> content = random_bytes(kib64, 2);
  guarded_buffer memory(kib64);
  std::memcpy(memory.data(), content.data(), kib64);
  io_faults faults;
  faults.tear();
  const auto io = make(faults);
  batch ops(*io);
  EXPECT_EQ(ops.run(operation_kind::write, file, 0, memory.data(), kib64, 4096).bytes, kib64);
  guarded_buffer back(kib64);
  ASSERT_EQ(::pread(file, back.data(), kib64, 0), static_cast<ssize_t>(kib64));
  EXPECT_NE(std::memcmp(back.data(), content.data(), kib64), 0);
  EXPECT_EQ(back.data()[kib64 - 1], std::byte{0});  // the end is what it was
}

TEST_P(scripted_backend, a_stale_read_reports_success_and_leaves_the_memory) {
  const int file = open_file("stale");
  const std::vector<std::byte> content = fill(file, kib64, 3);
  io_faults faults(parse_fault_script("stale read nth 2"));
  const auto io = make(faults);
  batch ops(*io);
  guarded_buffer memory(kib64);
  const auto held = [&](std::byte value) {
    std::memset(memory.data(), std::to_integer<int>(value), kib64);
    EXPECT_EQ(ops.run(operation_kind::read, file, 0, memory.data(), kib64).bytes, kib64);
    return std::vector<std::byte>(memory.data(), memory.data() + kib64);
  };
  EXPECT_EQ(held(std::byte{1}), content);
  EXPECT_EQ(held(std::byte{2}), std::vector<std::byte>(kib64, std::byte{2}));
  EXPECT_EQ(held(std::byte{3}), content);
  EXPECT_EQ(faults.seen().stale_reads, 1U);
  EXPECT_TRUE(memory.canaries_intact());
}

TEST_P(scripted_backend, a_stale_completion_reports_what_an_earlier_transfer_did) {
  const int file = open_file("stale");
  const std::vector<std::byte> content = fill(file, kib64, 4);
  io_faults faults(parse_fault_script("stale completion nth 1"));
  const auto io = make(faults);
  batch ops(*io);
  guarded_buffer memory(kib64);
  // The first of its kind has no earlier one; the second is struck, and says what the first did.
  ops.run(operation_kind::write, file, 0, memory.data(), kib64);
  EXPECT_EQ(faults.seen().stale_completions, 0U);
  std::memset(memory.data(), 7, kib64);
  const io::result outcome = ops.run(operation_kind::write, file, 0, memory.data(), kib64);
  EXPECT_EQ(outcome.error_number, 0);
  EXPECT_EQ(outcome.bytes, kib64);
  EXPECT_EQ(faults.seen().stale_completions, 1U);
  EXPECT_EQ(file_bytes(file, kib64), std::vector<std::byte>(kib64, io_test::canary));  // of the first
}

TEST_P(scripted_backend, a_stale_completion_of_a_longer_transfer_is_not_believed) {
  const int file = open_file("stale");
  fill(file, kib64, 5);
  io_faults faults(parse_fault_script("stale completion nth 1"));
  const auto io = make(faults);
  batch ops(*io);
  guarded_buffer memory(kib64);
  EXPECT_EQ(ops.run(operation_kind::read, file, 0, memory.data(), kib64).bytes, kib64);
  EXPECT_EQ(ops.run(operation_kind::read, file, 0, memory.data(), 4096).error_number, EIO);
}

/// Notes in which order operations complete.
class recorder {
 public:
  explicit recorder(io::backend& backend) : backend_(backend) {}
  void start(int name, operation_kind kind, int file, std::byte* memory) {
    item& added = items_.emplace_back();
    added.owner = this;
    added.name = name;
    added.op.kind = kind;
    added.op.file = file;
    added.op.offset = static_cast<byte_count>(name) * 1_MiB;  // nothing to merge
    added.op.memory = memory;
    added.op.bytes = 4096;
    added.op.context = &added;
    added.op.complete = [](io::operation& self, io::result) noexcept {
      auto& mine = *static_cast<item*>(self.context);
      const std::scoped_lock lock(mine.owner->mutex_);
      mine.owner->order_.push_back(mine.name);
      mine.owner->changed_.notify_all();
    };
    backend_.submit(added.op);
  }
  std::vector<int> wait_for(std::size_t n) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return order_.size() >= n; });
    return order_;
  }

 private:
  struct item {
    io::operation op;
    recorder* owner = nullptr;
    int name = 0;
  };
  io::backend& backend_;
  std::deque<item> items_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<int> order_;
};

TEST_P(scripted_backend, a_reordered_completion_waits_for_later_operations) {
  const int file = open_file("order");
  guarded_buffer memory(4096);
  io_faults faults(parse_fault_script("reorder 3 within 1000s nth 1"));
  const auto io = make(faults);
  recorder ops(*io);
  ops.start(0, operation_kind::write, file, memory.data());
  ops.start(1, operation_kind::write, file, memory.data());
  ops.wait_for(1);
  ops.start(2, operation_kind::write, file, memory.data());
  EXPECT_THAT(ops.wait_for(2), ElementsAre(1, 2));  // two are not three
  ops.start(3, operation_kind::write, file, memory.data());
  EXPECT_THAT(ops.wait_for(4), ::testing::UnorderedElementsAre(0, 1, 2, 3));
  EXPECT_EQ(faults.seen().reordered, 1U);
}

TEST_P(scripted_backend, a_reordered_completion_waits_no_longer_than_its_limit) {
  const int file = open_file("order");
  guarded_buffer memory(4096);
  io_faults faults(parse_fault_script("reorder 1000 within 5ms"));
  const auto io = make(faults);
  recorder ops(*io);
  const time_point before = std::chrono::steady_clock::now();
  ops.start(0, operation_kind::write, file, memory.data());
  EXPECT_THAT(ops.wait_for(1), ElementsAre(0));
  EXPECT_GE(std::chrono::steady_clock::now() - before, 5ms);
}

TEST_P(scripted_backend, the_end_lets_go_of_what_is_held) {
  const int file = open_file("order");
  guarded_buffer memory(16 * 4096);
  io_faults faults(parse_fault_script("reorder 1000 within 1000s chance 0.5"), 3);
  auto io = make(faults);
  batch ops(*io);
  for (std::size_t i = 0; i < 16; ++i) {
    ops.start(operation_kind::write, file, i * 4096, memory.data() + i * 4096, 4096);
  }
  io.reset();
  EXPECT_EQ(ops.pending(), 0U);
  for (std::size_t i = 0; i < 16; ++i) {
    EXPECT_EQ(ops.completions(i), 1);
    EXPECT_EQ(ops.of(i).bytes, 4096U);
  }
  EXPECT_GT(faults.seen().reordered, 0U);
}

TEST_P(scripted_backend, without_installation_a_reordered_result_is_held_for_the_limit) {
  const int file = open_file("order");
  guarded_buffer memory(4096);
  io_faults faults(parse_fault_script("reorder 1 within 5ms"));
  const auto io = io::make_backend(options(&faults));
  recorder ops(*io);
  const time_point before = std::chrono::steady_clock::now();
  ops.start(0, operation_kind::write, file, memory.data());
  ops.start(1, operation_kind::write, file, memory.data());
  ops.wait_for(2);
  EXPECT_GE(std::chrono::steady_clock::now() - before, 5ms);
  EXPECT_EQ(faults.seen().reordered, 2U);
}

TEST_P(scripted_backend, faults_of_one_path_leave_the_others_alone) {
  const int first = open_file("first");
  const int second = open_file("second");
  io_faults faults(parse_fault_script("fail ENODEV write path 1"));
  const auto io = make(faults);
  const std::vector<int> files{first, second};
  io->register_files(files);
  batch ops(*io);
  guarded_buffer memory(4096);
  EXPECT_EQ(ops.run(operation_kind::write, first, 0, memory.data(), 4096).error_number, 0);
  EXPECT_EQ(ops.run(operation_kind::write, second, 0, memory.data(), 4096).error_number, ENODEV);
  EXPECT_EQ(ops.run(operation_kind::read, second, 0, memory.data(), 4096).error_number, 0);
}

INSTANTIATE_TEST_SUITE_P(kinds, scripted_backend, ::testing::Values(io::backend_kind::uring, io::backend_kind::threads),
                         io_test::backend_name);

TEST(scripted_services, a_refused_ring_becomes_threads_and_names_the_errno) {
  io_faults faults(parse_fault_script("refuse ring EPERM"));
  io::backend_options o;
  faults.install(o);
  const auto io = io::make_backend(o);
  EXPECT_EQ(io->name(), "threads");
  ASSERT_EQ(io->degradations().size(), 1U);
  EXPECT_THAT(io->degradations().front(), HasSubstr("EPERM"));
  o.kind = io::backend_kind::uring;
  EXPECT_THROW(static_cast<void>(io::make_backend(o)), unsupported_error);
}

TEST(scripted_services, refused_registrations_are_said_and_change_nothing) {
  io_test::scratch_directory directory;
  io_faults faults(parse_fault_script("refuse memory ENOMEM\nrefuse files EINVAL"));
  io::backend_options o;
  faults.install(o);
  const auto io = io::make_backend(o);
  if (io->name() != "io_uring") {
    GTEST_SKIP() << "the kernel refuses io_uring altogether";
  }
  const int file = ::open((directory.path() / "f").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_GE(file, 0);
  guarded_buffer memory(kib64);
  io->register_memory({memory.data(), memory.size()});
  const std::vector<int> files{file};
  io->register_files(files);
  const std::vector<std::string> said = io->degradations();
  ASSERT_EQ(said.size(), 2U);
  EXPECT_THAT(said[0], HasSubstr("ENOMEM"));
  EXPECT_THAT(said[1], HasSubstr("EINVAL"));
  batch ops(*io);
  EXPECT_EQ(ops.run(operation_kind::write, file, 0, memory.data(), kib64).bytes, kib64);
  ::close(file);
}

}  // namespace
}  // namespace forebay
