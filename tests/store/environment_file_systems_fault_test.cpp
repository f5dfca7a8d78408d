// Stores on file systems of every kind, on images with both sector sizes; and a page beyond what 32 bits hold.
#include <cstdio>
#include <fstream>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include "environment.hpp"
#include "store_fixture.hpp"

namespace forebay {
namespace {

using environment::count_of;
using environment::test_at;
using io_test::child_result;
using io_test::run_command;
using store_test::guarded_buffer;
using store_test::page_mover;
using store_test::random_bytes;
using store_test::scratch_directory;
using ::testing::HasSubstr;
using ::testing::Not;

struct image {
  const char* make;  ///< the command that makes the file system
  byte_count bytes;
  unsigned sector;
};

void PrintTo(const image& i, std::ostream* out) { *out << i.make << " sector " << i.sector; }

class file_system_image : public ::testing::TestWithParam<image> {};

// Direct transfers at the device's own alignment, whatever the size of a page; nothing is degraded.
TEST_P(file_system_image, moves_pages_of_every_size_directly) {
  const scratch_directory scratch;
  const std::filesystem::path disk = scratch.path() / "image";
  const std::filesystem::path mounted = scratch.path() / "mounted";
  std::filesystem::create_directory(mounted);
  std::ofstream(disk).put('\0');
  std::filesystem::resize_file(disk, GetParam().bytes);
  const std::string script = "set -e\nloop=$(losetup -f --show --sector-size " + std::to_string(GetParam().sector) +
                             " '" + disk.string() + "')\ntrap 'umount \"" + mounted.string() +
                             "\" 2>/dev/null; losetup -d $loop' EXIT\n" + GetParam().make + " $loop\nmount $loop '" +
                             mounted.string() + "'\necho the image is mounted\n" +
                             test_at(mounted.string(), "environment_here.moves_pages") + "\n";
  std::ofstream(scratch.path() / "script") << script;
  const child_result child = run_command("unshare -m sh '" + (scratch.path() / "script").string() + "'");
  if (child.output.find("the image is mounted") == std::string::npos) {
    GTEST_SKIP() << "no such image can be made and mounted here: " << child.output;
  }
  EXPECT_EQ(child.status, 0) << child.output;
  EXPECT_THAT(child.output, HasSubstr("backend: "));
  EXPECT_THAT(child.output, Not(HasSubstr("buffered instead")));
}

INSTANTIATE_TEST_SUITE_P(kinds, file_system_image,
                         ::testing::Values(image{"mkfs.ext4 -q", 64_MiB, 512}, image{"mkfs.ext4 -q", 64_MiB, 4096},
                                           image{"mkfs.xfs -q", 320_MiB, 512}, image{"mkfs.xfs -q", 320_MiB, 4096},
                                           image{"mkfs.btrfs -q", 160_MiB, 512}, image{"mkfs.btrfs -q", 160_MiB, 4096}),
                         [](const auto& i) {
                           const std::string make = i.param.make;
                           return make.substr(5, make.find(' ') - 5) + "_" + std::to_string(i.param.sector);
                         });

TEST(file_systems, tmpfs_moves_pages_of_every_size) {
  const scratch_directory scratch;
  const std::string mount = "mount -t tmpfs -o size=64m none '" + scratch.path().string() + "'";
  if (run_command("unshare -m " + mount).status != 0) {
    GTEST_SKIP() << "this user may not mount a file system of its own";
  }
  const child_result child = run_command("unshare -m sh -c \"" + mount + " && " +
                                         test_at(scratch.path().string(), "environment_here.moves_pages") + "\"");
  EXPECT_EQ(child.status, 0) << child.output;
  EXPECT_THAT(child.output, HasSubstr("backend: "));
}

std::filesystem::path data_file_in(const std::filesystem::path& directory) {
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.path().extension() == ".pages") {
      return entry.path();
    }
  }
  return {};
}

std::vector<std::byte> chunk_content(std::uint64_t chunk, byte_count bytes) { return random_bytes(bytes, chunk + 77); }

// 4 GiB and a page: lengths and offsets that 32 bits cut to something small.
TEST(large_page, of_more_than_4_GiB_keeps_every_chunk_in_its_own_place) {
  const scratch_directory scratch;
  constexpr byte_count bytes = 4_GiB + 4_KiB;
  if (std::filesystem::space(scratch.path()).available < bytes + 1_GiB) {
    GTEST_SKIP() << "the disk has no room for a file of 4 GiB";
  }
  page_store_options o;
  o.paths.push_back({scratch.path(), bytes});
  page_store store(std::move(o));
  store.reserve(bytes);
  const page_id page = store.allocate(bytes, "large");
  ASSERT_EQ(store.chunk_count(page), 4097U);
  EXPECT_EQ(store.padded_chunk_bytes(page, 4096), 4_KiB);
  EXPECT_EQ(store.used(), bytes);
  const std::filesystem::path file = data_file_in(scratch.path());
  EXPECT_EQ(std::filesystem::file_size(file), bytes);
  page_mover mover(store);
  guarded_buffer memory(1_MiB);
  constexpr std::array<std::uint64_t, 6> chunks{0, 1, 2047, 2048, 4095, 4096};  // round 2 and 4 GiB, and their aliases
  for (const std::uint64_t chunk : chunks) {
    const std::vector<std::byte> content = chunk_content(chunk, store.padded_chunk_bytes(page, chunk));
    std::memcpy(memory.data(), content.data(), content.size());
    mover.start_chunk(io::operation_kind::write, page, chunk, memory.data());
    mover.wait();
  }
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(descriptor, 0);
  for (const std::uint64_t chunk : chunks) {
    const std::vector<std::byte> content = chunk_content(chunk, store.padded_chunk_bytes(page, chunk));
    mover.start_chunk(io::operation_kind::read, page, chunk, memory.data());
    mover.wait();
    EXPECT_EQ(std::memcmp(memory.data(), content.data(), content.size()), 0) << chunk;
    std::vector<std::byte> there(content.size());
    ASSERT_EQ(::pread(descriptor, there.data(), there.size(), static_cast<off_t>(chunk * 1_MiB)),
              static_cast<ssize_t>(there.size()));
    EXPECT_EQ(there, content) << "chunk " << chunk << " lies elsewhere";
  }
  ::close(descriptor);
}

}  // namespace
}  // namespace forebay
