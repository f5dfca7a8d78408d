#include <forebay/memory/host_limits.hpp>

#include <filesystem>
#include <fstream>
#include <string>

#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace forebay {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

/// A folder that looks like "/" to the code.
class host_limits : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "forebay-limits-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    put("proc/meminfo", "MemTotal:       16777216 kB\nMemFree:         1000 kB\nMemAvailable:    8388608 kB\n");
  }
  void TearDown() override { fs::remove_all(root_); }

  void put(const std::string& file, const std::string& text) const {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }
  void v2(const std::string& group, const std::string& max, byte_count current, byte_count inactive_file = 0) const {
    const std::string folder = "sys/fs/cgroup" + group;
    put(folder + "/memory.max", max + "\n");
    put(folder + "/memory.current", std::to_string(current) + "\n");
    put(folder + "/memory.stat",
        "anon 5\ninactive_file_not 1\ninactive_file " + std::to_string(inactive_file) + "\nfile 7\n");
  }
  void v1(const std::string& group, const std::string& limit, byte_count usage, byte_count inactive_file = 0) const {
    const std::string folder = "sys/fs/cgroup/memory" + group;
    put(folder + "/memory.limit_in_bytes", limit + "\n");
    put(folder + "/memory.usage_in_bytes", std::to_string(usage) + "\n");
    put(folder + "/memory.stat",
        "cache 9\ninactive_file 3\ntotal_inactive_file " + std::to_string(inactive_file) + "\n");
  }

  fs::path root_;
};

TEST_F(host_limits, without_cgroups_it_is_what_the_kernel_calls_available) {
  const host_limit l = available_host_memory(root_);
  EXPECT_EQ(l.available, 8_GiB);
  EXPECT_EQ(l.source, "MemAvailable");
}

TEST_F(host_limits, v2_limit_less_use) {
  put("proc/self/cgroup", "0::/job\n");
  v2("/job", std::to_string(512_MiB), 100_MiB);
  const host_limit l = available_host_memory(root_);
  EXPECT_EQ(l.available, 412_MiB);
  EXPECT_THAT(l.source, HasSubstr("cgroup v2"));
  EXPECT_THAT(l.source, HasSubstr("sys/fs/cgroup/job memory.max"));
}

TEST_F(host_limits, v2_max_is_no_limit) {
  put("proc/self/cgroup", "0::/job\n");
  v2("/job", "max", 100_MiB);
  EXPECT_EQ(available_host_memory(root_).source, "MemAvailable");
}

TEST_F(host_limits, a_smaller_parent_counts) {
  put("proc/self/cgroup", "0::/a/b/c\n");
  v2("/a/b/c", std::to_string(4_GiB), 1_MiB);
  v2("/a/b", "max", 1_MiB);
  v2("/a", std::to_string(600_MiB), 500_MiB);
  const host_limit l = available_host_memory(root_);
  EXPECT_EQ(l.available, 100_MiB);
  EXPECT_THAT(l.source, HasSubstr("sys/fs/cgroup/a memory.max"));
}

TEST_F(host_limits, a_parent_with_a_larger_limit_but_less_room_counts) {
  put("proc/self/cgroup", "0::/a/b\n");
  v2("/a/b", std::to_string(512_MiB), 0);
  v2("/a", std::to_string(2_GiB), 2_GiB - 50_MiB);
  EXPECT_EQ(available_host_memory(root_).available, 50_MiB);
}

TEST_F(host_limits, the_root_of_a_container_is_read_too) {
  put("proc/self/cgroup", "0::/\n");
  v2("", std::to_string(512_MiB), 12_MiB);
  EXPECT_EQ(available_host_memory(root_).available, 500_MiB);
}

TEST_F(host_limits, reclaimable_page_cache_is_not_use) {
  put("proc/self/cgroup", "0::/job\n");
  v2("/job", std::to_string(512_MiB), 500_MiB, 300_MiB);
  EXPECT_EQ(available_host_memory(root_).available, 312_MiB);
  v2("/job", std::to_string(512_MiB), 100_MiB, 300_MiB);  // the files are not read at one instant
  EXPECT_EQ(available_host_memory(root_).available, 512_MiB);
}

TEST_F(host_limits, more_use_than_the_limit_leaves_nothing) {
  put("proc/self/cgroup", "0::/job\n");
  v2("/job", std::to_string(512_MiB), 600_MiB);
  EXPECT_EQ(available_host_memory(root_).available, 0U);
}

TEST_F(host_limits, v1_limit_less_use_and_its_own_words) {
  put("proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/docker/abc\n0::/\n");
  v1("/docker/abc", std::to_string(1_GiB), 300_MiB, 100_MiB);
  v1("/docker", "9223372036854771712", 1_GiB);
  v1("", "9223372036854771712", 2_GiB);
  const host_limit l = available_host_memory(root_);
  EXPECT_EQ(l.available, 824_MiB);
  EXPECT_THAT(l.source, HasSubstr("cgroup v1"));
  EXPECT_THAT(l.source, HasSubstr("memory.limit_in_bytes"));
}

TEST_F(host_limits, a_v1_container_sees_its_group_mounted_as_the_root) {
  put("proc/self/cgroup", "4:memory:/docker/abc\n");  // the path of the host, which is not visible inside
  v1("", std::to_string(256_MiB), 56_MiB);
  EXPECT_EQ(available_host_memory(root_).available, 200_MiB);
}

TEST_F(host_limits, a_v1_controller_among_others_and_a_path_with_colons) {
  put("proc/self/cgroup", "4:cpu,memory,cpuset:/a:b\n");
  v1("/a:b", std::to_string(256_MiB), 0);
  EXPECT_EQ(available_host_memory(root_).available, 256_MiB);
}

TEST_F(host_limits, a_hybrid_machine_keeps_v2_under_unified) {
  put("proc/self/cgroup", "0::/job\n");
  v2("/unified/job", std::to_string(300_MiB), 0);
  EXPECT_EQ(available_host_memory(root_).available, 300_MiB);
}

TEST_F(host_limits, a_group_above_the_visible_root_is_taken_as_the_root) {
  put("proc/self/cgroup", "0::/../../other\n");
  v2("", std::to_string(300_MiB), 0);
  fs::create_directories(root_ / "sys/fs/other");
  put("sys/fs/other/memory.max", "1\n");
  EXPECT_EQ(available_host_memory(root_).available, 300_MiB);
}

TEST_F(host_limits, a_large_limit_does_not_hide_that_the_machine_is_full) {
  put("proc/self/cgroup", "0::/job\n");
  v2("/job", std::to_string(100_GiB), 0);
  const host_limit l = available_host_memory(root_);
  EXPECT_EQ(l.available, 8_GiB);
  EXPECT_EQ(l.source, "MemAvailable");
}

TEST(host_limits_of_this_machine, are_more_than_nothing_and_less_than_the_memory_there_is) {
  const host_limit l = available_host_memory();
  const auto installed = static_cast<byte_count>(::sysconf(_SC_PHYS_PAGES)) * static_cast<byte_count>(::getpagesize());
  EXPECT_GT(l.available, 0U);
  EXPECT_LE(l.available, installed);
  EXPECT_FALSE(l.source.empty());
}

}  // namespace
}  // namespace forebay
