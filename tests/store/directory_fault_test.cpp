// Whose a storage directory is: locks, dead runs, killed and forked processes.
#include <csignal>
#include <fstream>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/wait.h>

#include <forebay/base/error.hpp>

#include "store_fixture.hpp"

namespace forebay {
namespace {

using store_test::guarded_buffer;
using store_test::page_mover;
using store_test::scratch_directory;
using ::testing::HasSubstr;

page_store_options at(const std::filesystem::path& directory) {
  page_store_options o;
  o.paths.push_back({directory, 4_MiB});
  return o;
}

std::vector<std::string> names_in(const std::filesystem::path& directory) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    names.push_back(entry.path().filename().string());
  }
  return names;
}

TEST(directory, missing_ones_are_made_and_removed_again) {
  scratch_directory scratch;
  {
    const page_store store(at(scratch.path() / "a" / "b"));
    EXPECT_TRUE(std::filesystem::is_directory(scratch.path() / "a" / "b"));
  }
  EXPECT_TRUE(std::filesystem::is_empty(scratch.path()));
}

TEST(directory, other_files_and_directories_stay) {
  scratch_directory scratch;
  std::filesystem::create_directory(scratch.path() / "old");
  std::ofstream(scratch.path() / "old" / "mine.txt") << "mine";
  std::ofstream(scratch.path() / "old" / "forebay-notes.pages") << "mine too";
  { const page_store store(at(scratch.path() / "old")); }
  EXPECT_THAT(names_in(scratch.path() / "old"), ::testing::UnorderedElementsAre("mine.txt", "forebay-notes.pages"));
}

TEST(directory, a_second_live_engine_is_refused_with_directory_and_holder) {
  scratch_directory scratch;
  page_store first(at(scratch.path()));
  const std::vector<std::string> before = names_in(scratch.path());
  try {
    const page_store second(at(scratch.path()));
    ADD_FAILURE() << "two engines in one directory";
  } catch (const usage_error& refused) {
    EXPECT_THAT(refused.what(), HasSubstr(scratch.path().string()));
    EXPECT_THAT(refused.what(), HasSubstr("process " + std::to_string(::getpid())));
  }
  EXPECT_THAT(names_in(scratch.path()), ::testing::UnorderedElementsAreArray(before));
  const page_id page = first.allocate(1_MiB, "still working");
  guarded_buffer memory(1_MiB);
  page_mover(first).write(page, memory.data());
}

TEST(directory, the_same_one_twice_is_refused) {
  scratch_directory scratch;
  page_store_options o = at(scratch.path());
  o.paths.push_back({scratch.path() / ".", 1_MiB});
  EXPECT_THROW(page_store{std::move(o)}, usage_error);
  EXPECT_TRUE(std::filesystem::is_empty(scratch.path()));
}

TEST(directory, one_in_the_place_of_a_file_is_an_io_error_with_the_path) {
  scratch_directory scratch;
  std::ofstream(scratch.path() / "file") << "x";
  try {
    const page_store store(at(scratch.path() / "file" / "below"));
    ADD_FAILURE();
  } catch (const io_error& refused) {
    EXPECT_EQ(refused.error_number(), ENOTDIR);
    EXPECT_THAT(refused.what(), HasSubstr((scratch.path() / "file").string()));
  }
}

TEST(directory, a_lock_file_that_is_a_link_is_not_followed) {
  scratch_directory scratch;
  std::filesystem::create_symlink(scratch.path() / "elsewhere", scratch.path() / "forebay.lock");
  EXPECT_THROW(page_store{at(scratch.path())}, io_error);
  EXPECT_FALSE(std::filesystem::exists(scratch.path() / "elsewhere"));
}

/// A process that owns a store in `directory`, killed by SIGKILL once it says it does.
class owner_process {
 public:
  explicit owner_process(const std::filesystem::path& directory) {
    std::array<int, 2> ready{};
    if (::pipe2(ready.data(), O_CLOEXEC) != 0) {
      throw std::runtime_error("pipe");
    }
    pid_ = ::fork();
    if (pid_ == 0) {
      run(directory, ready[1]);
    }
    ::close(ready[1]);
    char byte = 0;
    started_ = ::read(ready[0], &byte, 1) == 1;
    ::close(ready[0]);
  }
  ~owner_process() { kill(); }
  void kill() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
      pid_ = -1;
    }
  }
  [[nodiscard]] bool started() const { return started_; }
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  [[noreturn]] static void run(const std::filesystem::path& directory, int ready) {
    try {
      page_store store(at(directory));
      store.reserve(4_MiB);
      const page_id page = store.allocate(2_MiB, "written while dying");
      guarded_buffer memory(2_MiB);
      page_mover mover(store);
      mover.write(page, memory.data());
      if (::write(ready, "x", 1) == 1) {
        for (;;) {
          mover.write(page, memory.data());
        }
      }
    } catch (...) {
    }
    ::_exit(1);
  }
  pid_t pid_ = -1;
  bool started_ = false;
};

TEST(directory, files_of_a_killed_run_are_removed_by_the_next) {
  scratch_directory scratch;
  for (int round = 0; round < 5; ++round) {
    owner_process owner(scratch.path() / "run");
    ASSERT_TRUE(owner.started());
    owner.kill();
    EXPECT_EQ(names_in(scratch.path() / "run").size(), 2U);  // the lock and the pages of the dead, and of no one before
  }
  {
    page_store store(at(scratch.path() / "run"));
    EXPECT_THAT(store.degradations(), ::testing::IsEmpty());
    EXPECT_EQ(names_in(scratch.path() / "run").size(), 2U);  // its own
    const page_id page = store.allocate(1_MiB, "next");
    guarded_buffer memory(1_MiB);
    page_mover(store).write(page, memory.data());
  }
  EXPECT_THAT(names_in(scratch.path() / "run"), ::testing::IsEmpty());
}

TEST(directory, files_of_another_live_process_are_left_alone) {
  scratch_directory scratch;
  owner_process owner(scratch.path());
  ASSERT_TRUE(owner.started());
  const std::vector<std::string> before = names_in(scratch.path());
  try {
    const page_store store(at(scratch.path()));
    ADD_FAILURE();
  } catch (const usage_error& refused) {
    EXPECT_THAT(refused.what(), HasSubstr("process " + std::to_string(owner.pid())));
  }
  EXPECT_THAT(names_in(scratch.path()), ::testing::UnorderedElementsAreArray(before));
}

TEST(directory, a_forked_child_that_ends_takes_nothing_with_it) {
  scratch_directory scratch;
  {
    auto store = std::make_unique<page_store>(at(scratch.path()));
    const page_id page = store->allocate(1_MiB, "p");
    guarded_buffer memory(1_MiB);
    page_mover(*store).write(page, memory.data());
    const std::vector<std::string> before = names_in(scratch.path());
    const pid_t child = ::fork();
    if (child == 0) {
      store.reset();
      ::_exit(0);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    EXPECT_THAT(names_in(scratch.path()), ::testing::UnorderedElementsAreArray(before));
    page_mover(*store).read(page, memory.data());
  }
  EXPECT_TRUE(std::filesystem::is_empty(scratch.path()));
}

}  // namespace
}  // namespace forebay
