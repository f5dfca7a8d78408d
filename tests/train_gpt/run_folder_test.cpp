#include "train_gpt/run_folder.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "temporary_folder.hpp"

namespace train_gpt {
namespace {

namespace fs = std::filesystem;

TEST(run_folder, is_fresh_and_removed_with_its_contents) {
  const temporary_folder parent;
  fs::path path;
  {
    const run_folder one(parent.path());
    const run_folder two(parent.path());
    EXPECT_NE(one.path(), two.path());
    EXPECT_TRUE(one.path().filename().string().starts_with("forebay-run-"));
    fs::create_directories(one.storage() / "deep");
    path = one.path();
  }
  EXPECT_FALSE(fs::exists(path));
  EXPECT_TRUE(fs::is_empty(parent.path()));
}

TEST(run_folder, of_a_live_run_is_left_alone) {
  const temporary_folder parent;
  const run_folder live(parent.path());
  EXPECT_TRUE(remove_dead_run_folders(parent.path()).empty());
  EXPECT_TRUE(fs::exists(live.path()));
}

/// Makes a run folder in a process that is then killed.
void leave_a_dead_folder(const fs::path& parent) {
  const pid_t child = ::fork();
  if (child == 0) {
    const run_folder mine(parent);
    fs::create_directories(mine.storage());
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
}

TEST(run_folder, of_a_killed_run_is_removed) {
  const temporary_folder parent;
  leave_a_dead_folder(parent.path());
  ASSERT_FALSE(fs::is_empty(parent.path()));
  EXPECT_EQ(remove_dead_run_folders(parent.path()).size(), 1U);
  EXPECT_TRUE(fs::is_empty(parent.path()));
}

TEST(run_folder, removal_touches_nothing_that_is_not_one) {
  const temporary_folder parent;
  parent.write("forebay-run-abcdef/notes.txt", "a person's own");
  parent.write("forebay-run-toolong/storage/x", "another name");
  parent.write("forebay-run-aaaaaa", "a file");
  parent.write("elsewhere/storage/x", "behind a link");
  fs::create_directory_symlink(parent.path() / "elsewhere", parent.path() / "forebay-run-bbbbbb");
  EXPECT_TRUE(remove_dead_run_folders(parent.path()).empty());
  EXPECT_TRUE(fs::exists(parent.path() / "forebay-run-abcdef/notes.txt"));
  EXPECT_TRUE(fs::exists(parent.path() / "forebay-run-toolong/storage/x"));
  EXPECT_TRUE(fs::exists(parent.path() / "forebay-run-aaaaaa"));
  EXPECT_TRUE(fs::exists(parent.path() / "elsewhere/storage/x"));
}

}  // namespace
}  // namespace train_gpt
