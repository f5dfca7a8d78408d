// Opening, alignment and preallocation.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <forebay/io/file.hpp>

#include "io_fixture.hpp"

namespace forebay {
namespace {

using io::direct_file;
using io_test::guarded_buffer;
using io_test::scratch_directory;

struct stat status_of(const direct_file& file) {
  struct stat status {};
  EXPECT_EQ(::fstat(file.descriptor(), &status), 0);
  return status;
}

class file_on : public ::testing::TestWithParam<const char*> {
 protected:
  scratch_directory directory_{std::string(GetParam()).empty() ? std::filesystem::temp_directory_path()
                                                               : std::filesystem::path(GetParam())};
};

TEST_P(file_on, is_private_empty_and_closed_on_exec) {
  const direct_file file = direct_file::create(directory_.path() / "f");
  EXPECT_EQ(status_of(file).st_mode & 07777U, 0600U);
  EXPECT_EQ(status_of(file).st_size, 0);  // the trial leaves nothing
  EXPECT_NE(::fcntl(file.descriptor(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST_P(file_on, transfers_at_the_alignment_that_it_tells) {
  direct_file file = direct_file::create(directory_.path() / "f");
  const io::geometry& layout = file.layout();
  EXPECT_EQ(layout.direct, (::fcntl(file.descriptor(), F_GETFL) & O_DIRECT) != 0);
  EXPECT_EQ(layout.direct, layout.degradation.empty());
  const byte_count unit = std::max(layout.memory_alignment, layout.offset_alignment);
  EXPECT_TRUE(is_power_of_two(layout.memory_alignment) && is_power_of_two(layout.offset_alignment));
  guarded_buffer memory(4 * unit);
  std::memset(memory.data(), 7, 4 * unit);
  std::byte* odd = memory.data() + layout.memory_alignment;  // aligned to this and no more
  const auto length = static_cast<ssize_t>(layout.offset_alignment);
  ASSERT_EQ(::pwrite(file.descriptor(), odd, layout.offset_alignment, length), length);
  ASSERT_EQ(::pread(file.descriptor(), odd, layout.offset_alignment, length), length);
}

TEST_P(file_on, buffered_takes_any_place) {
  direct_file file = direct_file::create(directory_.path() / "f", false);
  EXPECT_FALSE(file.layout().direct);
  EXPECT_FALSE(file.layout().degradation.empty());
  EXPECT_EQ(::pwrite(file.descriptor(), "abc", 3, 5), 3);
}

TEST_P(file_on, an_old_file_is_opened_and_its_bytes_stay) {
  const std::filesystem::path path = directory_.path() / "f";
  {
    direct_file file = direct_file::create(path, false);
    ASSERT_EQ(::pwrite(file.descriptor(), "kept", 4, 0), 4);
  }
  direct_file file = direct_file::create(path);
  EXPECT_EQ(status_of(file).st_size, 4);
  direct_file again = direct_file::create(path, false);
  std::array<char, 4> text{};
  EXPECT_EQ(::pread(again.descriptor(), text.data(), 4, 0), 4);
  EXPECT_EQ(std::string(text.data(), 4), "kept");
}

TEST_P(file_on, symbolic_links_and_directories_are_refused_with_the_path) {
  const std::filesystem::path target = directory_.path() / "target";
  const std::filesystem::path link = directory_.path() / "link";
  std::filesystem::create_symlink(target, link);
  for (const std::filesystem::path& path : {link, directory_.path()}) {
    try {
      (void)direct_file::create(path);
      ADD_FAILURE() << path << " was opened";
    } catch (const io_error& refused) {
      EXPECT_THAT(refused.what(), ::testing::HasSubstr(path.string()));
      EXPECT_NE(refused.error_number(), 0);
    }
  }
  EXPECT_FALSE(std::filesystem::exists(target));
}

TEST_P(file_on, preallocation_takes_the_space_and_only_grows) {
  direct_file file = direct_file::create(directory_.path() / "f");
  file.preallocate(1_MiB);
  EXPECT_EQ(status_of(file).st_size, static_cast<off_t>(1_MiB));
  EXPECT_GE(byte_count(status_of(file).st_blocks) * 512, 1_MiB);
  file.preallocate(4_KiB);
  EXPECT_EQ(status_of(file).st_size, static_cast<off_t>(1_MiB));
  file.preallocate(3_MiB);
  EXPECT_EQ(status_of(file).st_size, static_cast<off_t>(3_MiB));
  EXPECT_GE(byte_count(status_of(file).st_blocks) * 512, 3_MiB);
}

TEST_P(file_on, too_large_a_preallocation_names_path_need_and_what_is_free_and_takes_nothing) {
  direct_file file = direct_file::create(directory_.path() / "f");
  file.preallocate(1_MiB);
  try {
    file.preallocate(1'000_TiB + 1_MiB);
    ADD_FAILURE() << "a petabyte was allocated";
  } catch (const capacity_error& refused) {
    EXPECT_THAT(refused.what(), ::testing::AllOf(::testing::HasSubstr(file.path().string()),
                                                 ::testing::HasSubstr("1000 TiB"), ::testing::HasSubstr("free")));
  }
  EXPECT_EQ(status_of(file).st_size, static_cast<off_t>(1_MiB));
}

TEST_P(file_on, moving_hands_the_descriptor_over) {
  direct_file first = direct_file::create(directory_.path() / "a");
  const int descriptor = first.descriptor();
  direct_file second = std::move(first);
  EXPECT_EQ(second.descriptor(), descriptor);
  second = direct_file::create(directory_.path() / "b");
  EXPECT_NE(second.descriptor(), descriptor);  // opened before the old one was closed
  EXPECT_EQ(::fcntl(descriptor, F_GETFD), -1);
}

INSTANTIATE_TEST_SUITE_P(file_systems, file_on, ::testing::Values("", "/dev/shm"),
                         [](const ::testing::TestParamInfo<const char*>& tested) {
                           return std::string(tested.param).empty() ? "disk" : "tmpfs";
                         });

TEST(file, a_missing_directory_is_an_io_error_with_the_errno) {
  try {
    (void)direct_file::create("/nonexistent/forebay/f");
    ADD_FAILURE();
  } catch (const io_error& refused) {
    EXPECT_EQ(refused.error_number(), ENOENT);
    EXPECT_THAT(refused.what(), ::testing::HasSubstr("ENOENT"));
  }
}

}  // namespace
}  // namespace forebay
