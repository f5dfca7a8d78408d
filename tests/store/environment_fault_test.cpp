// What the machine refuses to a store: the ring, locked memory, directories. A case runs the plain tests below in a
// child process that has less than this one.
#include <cstdio>
#include <fstream>

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <forebay/base/error.hpp>

#include "environment.hpp"
#include "store_fixture.hpp"

namespace forebay {
namespace {

using environment::as_nobody;
using environment::count_of;
using environment::given_place;
using environment::test_at;
using environment::with_memlock;
using io_test::child_result;
using io_test::run_command;
using store_test::guarded_buffer;
using store_test::page_mover;
using store_test::random_bytes;
using store_test::scratch_directory;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr byte_count registered = 32_MiB;
constexpr const char* moves_pages = "environment_here.moves_pages";
constexpr const char* makes_a_store = "environment_here.makes_a_store_or_says_why_not";

/// Moves pages of many sizes through memory that was registered, and says what it got.
TEST(environment_here, moves_pages) {
  environment::refuse_what_was_asked();
  const scratch_directory own;
  const std::filesystem::path place = given_place() == nullptr ? own.path() : std::filesystem::path(given_place());
  page_store_options o;
  o.paths.push_back({place / "pages", 24_MiB});
  o.chunk = 64_KiB;
  page_store store(std::move(o));
  guarded_buffer memory(registered);
  store.register_memory({memory.data(), registered});
  store.reserve(16_MiB);
  page_mover mover(store);
  for (const byte_count bytes : {1_B, 511_B, 512_B, 1024_B, 4095_B, 4097_B, 65'537_B, 1'000'000_B, 3_MiB + 1024}) {
    const page_id page = store.allocate(bytes, "page");
    const std::vector<std::byte> content = random_bytes(bytes, bytes);
    std::memcpy(memory.data(), content.data(), bytes);
    mover.write(page, memory.data());
    std::byte* other = memory.data() + 16_MiB;
    std::memset(other, 0, bytes);
    mover.read(page, other);
    ASSERT_EQ(std::memcmp(other, content.data(), bytes), 0) << bytes;
  }
  EXPECT_TRUE(memory.canaries_intact());
  std::printf("backend: %s\n", store.backend_name().c_str());
  for (const std::string& line : store.degradations()) {
    std::printf("degraded: %s\n", line.c_str());
  }
}

/// Says what becomes of a store at a place.
TEST(environment_here, makes_a_store_or_says_why_not) {
  if (given_place() == nullptr) {
    return;
  }
  page_store_options o;
  o.paths.push_back({given_place(), 4_MiB});
  try {
    page_store store(std::move(o));
    page_mover mover(store);
    guarded_buffer memory(64_KiB);
    mover.write(store.allocate(64_KiB, "page"), memory.data());
    std::puts("made");
  } catch (const io_error& refused) {
    std::printf("io_error %s: %s\n", describe_errno(refused.error_number()).c_str(), refused.what());
  }
}

bool has_uring() {
  try {
    return io::make_backend({.kind = io::backend_kind::uring}) != nullptr;
  } catch (const unsupported_error&) {
    return false;
  }
}

class refused_ring_setup : public ::testing::TestWithParam<int> {};

// A container's filter refuses the ring: threads do the same, and the errno is named once.
TEST_P(refused_ring_setup, leaves_threads_that_move_the_same_bytes) {
  const scratch_directory directory;
  const std::string refuse = std::string(environment::refusal_variable) + "=" + std::to_string(GetParam()) + " ";
  const child_result child = run_command(refuse + test_at(directory.path().string(), moves_pages));
  EXPECT_EQ(child.status, 0) << child.output;
  if (child.output.find("no filter can be installed") != std::string::npos) {
    GTEST_SKIP() << "this kernel installs no system call filter";
  }
  EXPECT_THAT(child.output, HasSubstr("backend: threads"));
  EXPECT_EQ(count_of(child.output, "degraded: "), 1U) << child.output;
  EXPECT_EQ(count_of(child.output, describe_errno(GetParam())), 1U) << child.output;
}

INSTANTIATE_TEST_SUITE_P(errors, refused_ring_setup, ::testing::Values(EPERM, ENOSYS, EACCES, ENOMEM),
                         [](const auto& error) { return std::string(strerrorname_np(error.param)); });

class small_memlock : public ::testing::TestWithParam<byte_count> {};

// Locked memory is what registration costs: what does not fit goes unregistered, and that is said once.
TEST_P(small_memlock, leaves_memory_unregistered_and_says_limit_and_need) {
  if (run_command(with_memlock(GetParam()) + " true").status != 0 || !has_uring()) {
    GTEST_SKIP() << "prlimit, setpriv or io_uring is missing";
  }
  const scratch_directory directory;
  const child_result child = run_command(test_at(directory.path().string(), moves_pages, with_memlock(GetParam())));
  EXPECT_EQ(child.status, 0) << child.output;
  EXPECT_THAT(child.output, HasSubstr("backend: io_uring"));
  EXPECT_EQ(count_of(child.output, "degraded: "), 1U) << child.output;
  EXPECT_THAT(child.output, AllOf(HasSubstr("RLIMIT_MEMLOCK"), HasSubstr(format_bytes(GetParam())),
                                  HasSubstr(format_bytes(registered)), HasSubstr("ENOMEM")));
}

INSTANTIATE_TEST_SUITE_P(limits, small_memlock, ::testing::Values(64_KiB, 8_MiB));

// Directories: what each is, and what the store makes of it.

child_result make_at(const std::filesystem::path& place, const std::string& wrapper = "") {
  return run_command(test_at(place.string(), makes_a_store, wrapper));
}

TEST(storage_directory, that_is_a_file_is_an_io_error_with_the_path) {
  const scratch_directory scratch;
  std::ofstream(scratch.path() / "file") << "mine";
  const child_result child = make_at(scratch.path() / "file");
  EXPECT_THAT(child.output, AllOf(HasSubstr("io_error ENOTDIR"), HasSubstr((scratch.path() / "file").string())));
  std::string kept;
  std::ifstream(scratch.path() / "file") >> kept;
  EXPECT_EQ(kept, "mine");
}

TEST(storage_directory, that_is_missing_is_made_with_any_name_and_removed_again) {
  const scratch_directory scratch;
  const child_result child = make_at(scratch.path() / "a b" / "\xc3\xa9");
  EXPECT_THAT(child.output, HasSubstr("made"));
  EXPECT_TRUE(std::filesystem::is_empty(scratch.path()));
}

TEST(storage_directory, that_is_a_link_to_one_is_used_and_stays) {
  const scratch_directory scratch;
  std::filesystem::create_directory(scratch.path() / "drive");
  std::filesystem::create_directory_symlink(scratch.path() / "drive", scratch.path() / "link");
  EXPECT_THAT(make_at(scratch.path() / "link").output, HasSubstr("made"));
  EXPECT_TRUE(std::filesystem::is_symlink(scratch.path() / "link"));
  EXPECT_TRUE(std::filesystem::is_empty(scratch.path() / "drive"));
}

TEST(storage_directory, that_is_a_link_to_nothing_or_to_a_file_is_an_io_error) {
  const scratch_directory scratch;
  std::ofstream(scratch.path() / "file") << "mine";
  std::filesystem::create_symlink(scratch.path() / "file", scratch.path() / "to_file");
  std::filesystem::create_symlink(scratch.path() / "nothing", scratch.path() / "to_nothing");
  for (const char* name : {"to_file", "to_nothing"}) {
    const child_result child = make_at(scratch.path() / name);
    EXPECT_THAT(child.output, AllOf(HasSubstr("io_error ENOTDIR"), HasSubstr(name)));
  }
  EXPECT_FALSE(std::filesystem::exists(scratch.path() / "nothing"));
}

TEST(storage_directory, that_may_not_be_written_is_an_io_error_with_the_path) {
  const std::string nobody = as_nobody();
  if (nobody.empty()) {
    GTEST_SKIP() << "this user can't become another that may run this program";
  }
  const scratch_directory scratch;
  ::chmod(scratch.path().c_str(), 0755);
  std::filesystem::create_directory(scratch.path() / "read_only");
  ::chmod((scratch.path() / "read_only").c_str(), 0555);
  for (const char* name : {"read_only", "read_only/below", "missing"}) {
    const child_result child = make_at(scratch.path() / name, nobody);
    EXPECT_THAT(child.output, AllOf(HasSubstr("io_error EACCES"), HasSubstr((scratch.path() / name).string())));
  }
}

TEST(storage_directory, of_someone_else_is_an_io_error_with_the_path) {
  const std::string nobody = as_nobody();
  if (nobody.empty()) {
    GTEST_SKIP() << "this user can't become another that may run this program";
  }
  const scratch_directory scratch;
  ::chmod(scratch.path().c_str(), 0755);
  std::filesystem::create_directory(scratch.path() / "private");
  ::chmod((scratch.path() / "private").c_str(), 0700);
  EXPECT_THAT(make_at(scratch.path() / "private", nobody).output,
              AllOf(HasSubstr("io_error EACCES"), HasSubstr((scratch.path() / "private").string())));
  // Writable by all, with the lock of someone else's engine in it.
  std::filesystem::create_directory(scratch.path() / "shared");
  ::chmod((scratch.path() / "shared").c_str(), 01777);
  std::ofstream(scratch.path() / "shared" / "forebay.lock") << "1\n";
  ::chmod((scratch.path() / "shared" / "forebay.lock").c_str(), 0600);
  EXPECT_THAT(make_at(scratch.path() / "shared", nobody).output,
              AllOf(HasSubstr("io_error EACCES"), HasSubstr((scratch.path() / "shared" / "forebay.lock").string())));
  EXPECT_TRUE(std::filesystem::exists(scratch.path() / "shared" / "forebay.lock"));
}

TEST(storage_directory, on_a_read_only_file_system_is_an_io_error_with_the_path) {
  const scratch_directory scratch;
  const std::string where = "'" + scratch.path().string() + "'";
  const std::string mount = "mount -t tmpfs -o ro none " + where;
  if (run_command("unshare -m " + mount).status != 0) {
    GTEST_SKIP() << "this user may not mount a file system of its own";
  }
  for (const char* name : {"", "below"}) {
    const std::filesystem::path place = name[0] == '\0' ? scratch.path() : scratch.path() / name;
    const child_result child =
        run_command("unshare -m sh -c \"" + mount + " && " + test_at(place.string(), makes_a_store) + "\"");
    EXPECT_THAT(child.output, AllOf(HasSubstr("io_error EROFS"), HasSubstr(place.string())));
  }
}

}  // namespace
}  // namespace forebay
