// A disk of 1 MiB: refused before the run where it can be, and what is reserved can always be written.
#include <cstdio>
#include <fstream>

#include <gmock/gmock.h>

#include <forebay/base/error.hpp>

#include "../io/child_process.hpp"
#include "store_fixture.hpp"

namespace forebay {
namespace {

using io_test::child_result;
using io_test::child_test;
using io_test::run_command;
using store_test::guarded_buffer;
using store_test::page_mover;
using ::testing::HasSubstr;

constexpr const char* place_variable = "FOREBAY_TEST_PLACE";

/// Fills the disk with a file of somebody else.
void fill(const std::filesystem::path& directory) {
  std::ofstream other(directory / "other", std::ios::binary);
  const std::vector<char> block(4096, 'x');
  while (other.write(block.data(), 4096) && other.flush()) {
  }
}

/// Runs on the small disk of the case below; elsewhere there is nothing to see.
TEST(small_disk, holds_what_it_reserved_and_refuses_more) {
  const char* place = std::getenv(place_variable);
  if (place == nullptr) {
    return;
  }
  page_store_options o;
  o.paths.push_back({place, 4_MiB});  // more than there is
  o.chunk = 64_KiB;
  page_store store(std::move(o));
  page_mover mover(store);
  try {
    store.reserve(4_MiB);
    ADD_FAILURE() << "4 MiB were reserved on a disk of 1 MiB";
  } catch (const capacity_error& refused) {
    EXPECT_THAT(refused.what(), ::testing::AllOf(HasSubstr(place), HasSubstr("4 MiB"), HasSubstr("free")));
  }
  store.reserve(512_KiB);
  const page_id page = store.allocate(512_KiB, "reserved");
  fill(place);
  EXPECT_EQ(std::filesystem::space(place).available, 0U);
  EXPECT_THROW((void)store.allocate(64_KiB, "more"), capacity_error);
  EXPECT_EQ(store.used(), 512_KiB);
  guarded_buffer memory(512_KiB);
  mover.write(page, memory.data());  // its blocks are its own
  mover.read(page, memory.data());
  std::filesystem::remove(std::filesystem::path(place) / "other");
  store.free(store.allocate(64_KiB, "again"));
  std::puts("small disk seen");
}

TEST(full_disk, is_found_before_the_run_and_never_in_it) {
  const io_test::scratch_directory directory;
  const std::string where = directory.path().string();
  const std::string mount = "mount -t tmpfs -o size=1m none '" + where + "'";
  if (run_command("unshare -m " + mount).status != 0) {
    GTEST_SKIP() << "this user may not mount a file system of its own";
  }
  const child_result child = run_command("unshare -m sh -c \"" + mount + " && " + place_variable + "='" + where + "' " +
                                         child_test("", "small_disk.holds_what_it_reserved_and_refuses_more") + "\"");
  EXPECT_EQ(child.status, 0) << child.output;
  EXPECT_THAT(child.output, HasSubstr("small disk seen"));
}

}  // namespace
}  // namespace forebay
