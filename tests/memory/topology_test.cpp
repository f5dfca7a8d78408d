#include <forebay/memory/topology.hpp>

#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <forebay/base/error.hpp>
#include <forebay/memory/host_arena.hpp>

#include "two_nodes.hpp"

namespace forebay {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int mpol_default = 0;
constexpr int mpol_preferred = 1;
constexpr int mpol_f_addr = 2;

/// Runs `check` in a child process, so that bindings, filters and environment end with it; it returns what is wrong.
std::string in_child(const std::function<std::string()>& check) {
  std::array<int, 2> ends{};
  EXPECT_EQ(::pipe(ends.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string wrong = check();
    const bool told = ::write(ends[1], wrong.data(), wrong.size()) == static_cast<ssize_t>(wrong.size());
    ::_exit(told ? 0 : 1);
  }
  ::close(ends[1]);
  std::string text;
  std::array<char, 512> buffer{};
  for (ssize_t n = 0; (n = ::read(ends[0], buffer.data(), buffer.size())) > 0;) {
    text.append(buffer.data(), static_cast<std::size_t>(n));
  }
  ::close(ends[0]);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << "the child died";
  return text;
}

/// Two nodes, taken for this machine: the one way to reach the kernel's calls on a machine with one.
topology pretended_two_nodes() {
  ::setenv("HWLOC_THISSYSTEM", "1", 1);
  topology t(two_nodes_xml("0x0000000f", "0x00000003"));
  ::unsetenv("HWLOC_THISSYSTEM");
  return t;
}

/// What the kernel says of the memory at an address, apart from hwloc: its policy and its nodes.
std::pair<int, unsigned long> policy_at(void* address) {
  int policy = -1;
  std::array<unsigned long, 16> mask{};
  const long rc = ::syscall(SYS_get_mempolicy, &policy, mask.data(), mask.size() * 64, address, mpol_f_addr);
  return {rc == 0 ? policy : -1, mask[0]};
}

bool refuse_system_call(int number, int error) {
  std::array<sock_filter, 4> program{{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(number), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<unsigned>(error)),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) == 0;
}

unsigned allowed_cpus_by_the_kernel() {
  cpu_set_t set;
  CPU_ZERO(&set);
  EXPECT_EQ(::sched_getaffinity(0, sizeof set, &set), 0);
  return static_cast<unsigned>(CPU_COUNT(&set));
}

TEST(topology, this_machine_has_nodes_and_the_cpus_that_the_kernel_allows) {
  const topology t;
  ASSERT_FALSE(t.nodes().empty());
  EXPECT_EQ(t.usable_cpus(), allowed_cpus_by_the_kernel());
  std::size_t cpus = 0;
  bool preferred_exists = false;
  for (const numa_node& n : t.nodes()) {
    EXPECT_GT(n.memory, 0U);
    cpus += n.cpus.size();
    preferred_exists = preferred_exists || n.os_index == t.preferred_node();
  }
  EXPECT_EQ(cpus, t.usable_cpus());
  EXPECT_TRUE(preferred_exists);
}

TEST(topology, a_set_of_cpus_without_the_first_is_taken_as_it_is) {
  EXPECT_EQ(in_child([]() -> std::string {
              cpu_set_t before;
              CPU_ZERO(&before);
              ::sched_getaffinity(0, sizeof before, &before);
              int last = CPU_SETSIZE - 1;
              while (CPU_ISSET(last, &before) == 0) {
                --last;
              }
              cpu_set_t one;
              CPU_ZERO(&one);
              CPU_SET(last, &one);
              for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {  // as taskset does
                if (::sched_setaffinity(std::stoi(thread.path().filename()), sizeof one, &one) != 0) {
                  return "the test can't choose a CPU";
                }
              }
              const topology t;
              if (t.usable_cpus() != 1) {
                return "usable: " + std::to_string(t.usable_cpus());
              }
              for (const numa_node& n : t.nodes()) {
                if (n.os_index == t.preferred_node() && n.cpus != std::vector<unsigned>{static_cast<unsigned>(last)}) {
                  return "the preferred node has other CPUs";
                }
              }
              return {};
            }),
            "");
}

TEST(topology, two_nodes_are_told_apart) {
  const topology t(two_nodes_xml("0x0000000f", "0x00000003"));
  ASSERT_EQ(t.nodes().size(), 2U);
  EXPECT_EQ(t.nodes()[0].os_index, 0U);
  EXPECT_EQ(t.nodes()[0].memory, 1_GiB);
  EXPECT_THAT(t.nodes()[0].cpus, ElementsAre(0U, 1U));
  EXPECT_EQ(t.nodes()[1].os_index, 1U);
  EXPECT_EQ(t.nodes()[1].memory, 2_GiB);
  EXPECT_THAT(t.nodes()[1].cpus, ElementsAre(2U, 3U));
  EXPECT_EQ(t.usable_cpus(), 4U);
  EXPECT_EQ(t.preferred_node(), 0U);  // a tie
}

TEST(topology, a_node_that_is_not_allowed_is_not_there) {
  const topology t(two_nodes_xml("0x0000000c", "0x00000002"));
  ASSERT_EQ(t.nodes().size(), 1U);
  EXPECT_EQ(t.nodes()[0].os_index, 1U);
  EXPECT_THAT(t.nodes()[0].cpus, ElementsAre(2U, 3U));
  EXPECT_EQ(t.usable_cpus(), 2U);
  EXPECT_EQ(t.preferred_node(), 1U);
}

TEST(topology, the_node_with_most_usable_cpus_is_preferred) {
  const topology t(two_nodes_xml("0x0000000e", "0x00000003"));
  EXPECT_EQ(t.preferred_node(), 1U);
  EXPECT_EQ(t.usable_cpus(), 3U);
}

TEST(topology, never_claims_a_binding_on_another_machines_topology) {
  const topology t(two_nodes_xml("0x0000000f", "0x00000003"));
  host_arena a(4_KiB);
  for (const unsigned node : {0U, 1U}) {
    const binding_result memory = t.bind_memory(a.memory(), node);
    EXPECT_FALSE(memory.bound);
    EXPECT_THAT(memory.detail, HasSubstr("not this machine's"));
    EXPECT_FALSE(t.bind_this_thread(node).bound);
  }
}

TEST(topology, nothing_is_bound_where_there_is_one_node) {
  const topology t;
  if (t.nodes().size() != 1) {
    const binding_result r = t.bind_this_thread(t.preferred_node());  // a machine where there is something to do
    EXPECT_FALSE(r.detail.empty());
    return;
  }
  host_arena a(4_KiB, {.huge_pages = false, .bind_to = &t});
  EXPECT_THAT(a.degradations(), IsEmpty());
  const binding_result r = t.bind_memory(a.memory(), t.preferred_node());
  EXPECT_FALSE(r.bound);
  EXPECT_THAT(r.detail, HasSubstr("single NUMA node"));
  EXPECT_EQ(policy_at(a.memory().data()).first, mpol_default);
  EXPECT_FALSE(t.bind_this_thread(t.preferred_node()).bound);
}

TEST(topology, a_node_that_does_not_exist_is_refused_by_name) {
  const topology t = pretended_two_nodes();
  host_arena a(4_KiB);
  const binding_result r = t.bind_memory(a.memory(), 7);
  EXPECT_FALSE(r.bound);
  EXPECT_THAT(r.detail, HasSubstr("NUMA node 7"));
}

// Whether this kernel binds at all is asked by a direct call; then it must be claimed exactly where it is so.
TEST(topology, a_binding_is_claimed_exactly_where_the_kernel_shows_it) {
  EXPECT_EQ(in_child([]() -> std::string {
              const topology t = pretended_two_nodes();
              const host_arena probe(1_MiB, {.huge_pages = false});
              const host_arena a(1_MiB, {.huge_pages = false});
              const unsigned long only_first = 1;
              const bool binds =
                  ::syscall(SYS_mbind, probe.memory().data(), probe.size(), mpol_preferred, &only_first, 64UL, 0U) == 0;
              const binding_result r = t.bind_memory(a.memory(), 0);
              const auto [policy, nodes] = policy_at(a.memory().data());
              const bool shown = policy > mpol_default && nodes == only_first;
              a.memory()[5] = std::byte{1};
              return r.bound == shown && shown == binds ? "" : "claims " + std::to_string(r.bound) + ": " + r.detail;
            }),
            "");
}

TEST(topology, a_refusal_by_the_kernel_is_told_with_its_errno_and_changes_nothing) {
  EXPECT_EQ(in_child([]() -> std::string {
              const topology t = pretended_two_nodes();
              host_arena a(1_MiB, {.huge_pages = false});
              if (!refuse_system_call(SYS_mbind, EPERM)) {
                return "the test can't filter system calls";
              }
              const binding_result r = t.bind_memory(a.memory(), 0);
              const host_arena b(1_MiB, {.huge_pages = false, .bind_to = &t});
              a.memory()[5] = std::byte{1};
              if (r.bound || r.detail.find("EPERM") == std::string::npos) {
                return "bind_memory says: " + r.detail;
              }
              if (b.degradations().size() != 1 || b.degradations()[0].rfind("NUMA binding: ", 0) != 0) {
                return "the arena does not say it once";
              }
              return policy_at(a.memory().data()).first == mpol_default ? "" : "the policy has changed";
            }),
            "");
}

TEST(topology, a_thread_is_bound_to_the_usable_cpus_of_its_node) {
  EXPECT_EQ(in_child([]() -> std::string {
              cpu_set_t first;
              CPU_ZERO(&first);
              ::sched_getaffinity(0, sizeof first, &first);
              const topology t = pretended_two_nodes();
              const numa_node& node = t.nodes()[0];
              if (node.cpus.empty()) {
                return {};  // the test itself may not run on a CPU that the pretended node has
              }
              const binding_result r = t.bind_this_thread(0);
              cpu_set_t now;
              CPU_ZERO(&now);
              ::sched_getaffinity(0, sizeof now, &now);
              bool same = CPU_COUNT(&now) == static_cast<int>(node.cpus.size());
              for (const unsigned cpu : node.cpus) {
                same = same && CPU_ISSET(cpu, &now) != 0 && CPU_ISSET(cpu, &first) != 0;
              }
              return r.bound && same ? "" : r.detail;
            }),
            "");
}

TEST(topology, a_refused_thread_binding_is_told) {
  EXPECT_EQ(in_child([]() -> std::string {
              const topology t = pretended_two_nodes();
              if (!refuse_system_call(SYS_sched_setaffinity, EPERM)) {
                return "the test can't filter system calls";
              }
              const binding_result r = t.bind_this_thread(0);
              const bool told = !r.bound && !r.detail.empty();
              return told || t.nodes()[0].cpus.empty() ? "" : "claims: " + r.detail;
            }),
            "");
}

TEST(topology, text_that_is_no_topology_is_refused) { EXPECT_THROW(topology("<topology>nonsense"), std::exception); }

}  // namespace
}  // namespace forebay
