// Files of every kind: coarse alignments, and buffered ones that must not fill the page cache.
#include <atomic>

#include <gmock/gmock.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "../io/child_process.hpp"
#include "store_fixture.hpp"

namespace forebay {
namespace {

using store_test::guarded_buffer;
using store_test::page_mover;
using store_test::random_bytes;
using store_test::scratch_directory;

/// Checks every transfer that reaches the kernel.
class alignment_watch final : public io::interceptor {
 public:
  explicit alignment_watch(byte_count alignment) : alignment_(alignment) {}
  std::int64_t before(const transfer& t) noexcept override {
    ++transfers;
    illegal += t.bytes == 0 || t.bytes % alignment_ != 0 || t.offset % alignment_ != 0 ? 1U : 0U;
    return 0;
  }
  std::atomic<unsigned> transfers{0};
  std::atomic<unsigned> illegal{0};

 private:
  byte_count alignment_;
};

class file_alignment : public ::testing::TestWithParam<byte_count> {};

TEST_P(file_alignment, holds_for_every_transfer_of_every_size) {
  scratch_directory directory;
  alignment_watch watch(GetParam());
  page_store_options o;
  o.paths.push_back({directory.path(), 32_MiB});
  o.chunk = 128_KiB;
  o.least_alignment = GetParam();
  o.io.faults = &watch;
  page_store store(std::move(o));
  page_mover mover(store);
  for (const byte_count bytes : {1_B, 513_B, 4097_B, 65'537_B, 1_MiB + 2}) {
    const page_id page = store.allocate(bytes, "p");
    const std::vector<std::byte> content = random_bytes(bytes, bytes);
    guarded_buffer memory(store.padded_bytes(bytes));
    std::memcpy(memory.data(), content.data(), bytes);
    mover.write(page, memory.data());
    std::memset(memory.data(), 0, memory.size());
    mover.read(page, memory.data());
    EXPECT_EQ(std::memcmp(memory.data(), content.data(), bytes), 0);
    EXPECT_TRUE(memory.canaries_intact());
  }
  EXPECT_GT(watch.transfers, 20U);
  EXPECT_EQ(watch.illegal, 0U);
}

INSTANTIATE_TEST_SUITE_P(bytes, file_alignment, ::testing::Values(512, 4096, 65536));

byte_count cached_bytes(const std::filesystem::path& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat status {};
  EXPECT_EQ(::fstat(file, &status), 0);
  const auto bytes = static_cast<std::size_t>(status.st_size);
  void* map = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file, 0);
  EXPECT_NE(map, MAP_FAILED);
  std::vector<unsigned char> resident(ceil_div(bytes, 4096));
  EXPECT_EQ(::mincore(map, bytes, resident.data()), 0);
  ::munmap(map, bytes);
  ::close(file);
  byte_count cached = 0;
  for (const unsigned char page : resident) {
    cached += (page & 1U) != 0 ? 4096U : 0U;
  }
  return cached;
}

class page_cache : public ::testing::TestWithParam<bool> {};

TEST_P(page_cache, stays_small_whatever_is_moved) {
  scratch_directory directory;
  page_store_options o;
  o.paths.push_back({directory.path(), 256_MiB});
  o.direct = GetParam();
  page_store store(std::move(o));
  page_mover mover(store);
  store.reserve(256_MiB);
  std::filesystem::path file;
  for (const auto& entry : std::filesystem::directory_iterator(directory.path())) {
    if (entry.path().extension() == ".pages") {
      file = entry.path();
    }
  }
  guarded_buffer memory(64_MiB);
  std::vector<page_id> pages;
  byte_count most = 0;
  for (int i = 0; i < 4; ++i) {
    pages.push_back(store.allocate(64_MiB, "p"));
    mover.start(io::operation_kind::write, pages.back(), memory.data());
    most = std::max(most, cached_bytes(file));  // in the middle of it
    mover.wait();
    most = std::max(most, cached_bytes(file));
  }
  for (const page_id page : pages) {
    mover.start(io::operation_kind::read, page, memory.data());
    most = std::max(most, cached_bytes(file));
    mover.wait();
    most = std::max(most, cached_bytes(file));
  }
  EXPECT_LT(most, 16_MiB);
}

INSTANTIATE_TEST_SUITE_P(direct, page_cache, ::testing::Bool());

/// Says what it got; the case below runs it where O_DIRECT does not work.
TEST(store_here, moves_bytes) {
  scratch_directory directory;
  page_store_options o;
  o.paths.push_back({directory.path(), 4_MiB});
  page_store store(std::move(o));
  page_mover mover(store);
  const std::vector<std::byte> content = random_bytes(1_MiB + 1, 5);
  guarded_buffer memory(store.padded_bytes(content.size()));
  std::memcpy(memory.data(), content.data(), content.size());
  const page_id page = store.allocate(content.size(), "p");
  mover.write(page, memory.data());
  std::memset(memory.data(), 0, memory.size());
  mover.read(page, memory.data());
  EXPECT_EQ(std::memcmp(memory.data(), content.data(), content.size()), 0);
  for (const std::string& line : store.degradations()) {
    std::printf("degraded: %s\n", line.c_str());
  }
}

TEST(file_kinds, a_path_that_refuses_direct_transfers_is_buffered_and_says_so_once) {
  if (!io_test::can_trace()) {
    GTEST_SKIP() << "strace is missing, or may not trace here";
  }
  // The first pwrite tells the lock's holder; the next four are the trials of four alignments.
  const io_test::child_result child = io_test::run_command(
      io_test::child_test(io_test::inject("pwrite64", "error=EINVAL:when=2..5"), "store_here.moves_bytes"));
  EXPECT_EQ(child.status, 0) << child.output;
  EXPECT_THAT(child.output, ::testing::HasSubstr("buffered instead"));
  EXPECT_THAT(child.output, ::testing::HasSubstr("EINVAL"));
}

}  // namespace
}  // namespace forebay
