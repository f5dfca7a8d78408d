#include <forebay/memory/host_arena.hpp>

#include <algorithm>
#include <array>
#include <fstream>
#include <string>
#include <vector>

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <forebay/base/error.hpp>

namespace forebay {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Counted by mincore, apart from what the arena says.
byte_count resident_bytes(std::span<const std::byte> memory) {
  constexpr byte_count page = 4_KiB;
  std::vector<unsigned char> in_core((memory.size() + page - 1) / page);
  void* const start = const_cast<std::byte*>(memory.data());
  EXPECT_EQ(::mincore(start, memory.size(), in_core.data()), 0);
  return page * static_cast<byte_count>(
                    std::count_if(in_core.begin(), in_core.end(), [](unsigned char c) { return (c & 1U) != 0; }));
}

bool is_mapped(const void* address) {
  unsigned char in_core = 0;
  return ::mincore(const_cast<void*>(address), 1, &in_core) == 0;
}

bool is_zero(std::span<const std::byte> s) {
  return std::all_of(s.begin(), s.end(), [](std::byte b) { return b == std::byte{0}; });
}

TEST(host_arena, has_exactly_the_size_asked_for_and_is_zero) {
  for (const byte_count n : {1_B, 4095_B, 4_KiB, 4097_B, 2_MiB - 1, 2_MiB, 2_MiB + 1, 9_MiB + 5}) {
    for (const bool huge : {false, true}) {
      host_arena a(n, {.huge_pages = huge});
      EXPECT_EQ(a.size(), n);
      EXPECT_EQ(a.memory().size(), n);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(a.memory().data()) % (n >= 2_MiB ? 2_MiB : 4_KiB), 0U);
      EXPECT_TRUE(is_zero(a.memory()));
      a.memory().front() = std::byte{1};
      a.memory().back() = std::byte{2};
      EXPECT_GT(resident_bytes(a.memory()), 0U);
    }
  }
}

TEST(host_arena, takes_no_page_before_it_is_touched) {
  const host_arena a(256_MiB, {.huge_pages = false});
  EXPECT_EQ(resident_bytes(a.memory()), 0U);
  a.memory()[100_MiB] = std::byte{1};
  EXPECT_EQ(resident_bytes(a.memory()), 4_KiB);
  EXPECT_EQ(a.pages(), page_kind::base_pages);
  EXPECT_EQ(a.huge_bytes_resident(), 0U);
  EXPECT_THAT(a.degradations(), IsEmpty());
}

TEST(host_arena, with_transparent_huge_pages_no_more_than_2_MiB_a_touch) {
  const host_arena a(64_MiB);
  if (a.pages() == page_kind::huge_pages) {  // taken from the machine's pool, which is set aside anyhow
    EXPECT_EQ(resident_bytes(a.memory()), 64_MiB);
    return;
  }
  EXPECT_EQ(resident_bytes(a.memory()), 0U);
  a.memory()[33_MiB] = std::byte{1};
  EXPECT_LE(resident_bytes(a.memory()), 2_MiB);
}

TEST(host_arena, a_size_far_beyond_the_machine_is_a_reservation_or_a_capacity_error) {
  EXPECT_THROW(host_arena(byte_count{1} << 60U), capacity_error);
  EXPECT_THROW(host_arena(~byte_count{0}), capacity_error);
  try {
    const host_arena a(~byte_count{0} - 5, {.huge_pages = false});
    FAIL() << "the whole address space was given";
  } catch (const capacity_error& e) {
    EXPECT_THAT(e.what(), HasSubstr(std::to_string(~byte_count{0} - 5)));
    EXPECT_THAT(e.what(), HasSubstr("ENOMEM"));
  }
  EXPECT_THROW(host_arena(0), usage_error);
  const host_arena reserved(64_GiB, {.huge_pages = false});  // no memory behind it
  EXPECT_EQ(resident_bytes(reserved.memory().first(1_GiB)), 0U);
}

TEST(host_arena, what_it_says_about_its_pages_is_what_the_kernel_shows) {
  const host_arena a(8_MiB);
  std::fill(a.memory().begin(), a.memory().end(), std::byte{3});
  if (a.pages() == page_kind::base_pages) {
    EXPECT_EQ(a.huge_bytes_resident(), 0U);
    EXPECT_THAT(a.degradations(), Contains(HasSubstr("huge pages: ")));
  } else {
    EXPECT_LE(a.huge_bytes_resident(), 8_MiB);
    EXPECT_THAT(a.degradations(), IsEmpty());
  }
}

TEST(host_arena, describes_its_size_and_what_the_kernel_shows_of_its_pages) {
  const host_arena small(8_MiB, {.huge_pages = false});
  EXPECT_EQ(small.describe(), "8 MiB on pages of 4 KiB");
  const host_arena a(8_MiB);
  std::fill(a.memory().begin(), a.memory().end(), std::byte{3});
  if (a.pages() != page_kind::base_pages) {
    EXPECT_THAT(a.describe(), ::testing::AllOf(::testing::StartsWith("8 MiB on "), HasSubstr("huge pages"),
                                               ::testing::EndsWith(format_bytes(a.huge_bytes_resident()))));
  }
}

// A process may be denied transparent huge pages while madvise still says yes: only looking tells.
TEST(host_arena, denied_huge_pages_are_found_by_looking) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (::prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) != 0) {
      ::_exit(2);
    }
    const host_arena a(8_MiB);
    const bool honest =
        a.pages() == page_kind::huge_pages || (a.pages() == page_kind::base_pages && a.degradations().size() == 2 &&
                                               a.degradations()[0].rfind("huge pages: ", 0) == 0 &&
                                               a.degradations()[1].rfind("transparent huge pages: ", 0) == 0);
    ::_exit(honest ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(host_arena, moves_and_unmaps_once) {
  host_arena a(4_MiB);
  std::byte* const first = a.memory().data();
  first[5] = std::byte{9};
  host_arena b(std::move(a));
  EXPECT_EQ(b.memory().data(), first);
  EXPECT_EQ(b.memory()[5], std::byte{9});
  EXPECT_EQ(a.size(), 0U);  // NOLINT(bugprone-use-after-move): what a moved-from arena is, is being tested
  {
    host_arena c(4_MiB);
    std::byte* const second = c.memory().data();
    c = std::move(b);
    EXPECT_EQ(c.memory().data(), first);
    EXPECT_FALSE(is_mapped(second));
    EXPECT_TRUE(is_mapped(first));
  }
  EXPECT_FALSE(is_mapped(first));
  EXPECT_EQ(b.huge_bytes_resident(), 0U);
}

TEST(host_arena, a_child_of_fork_does_not_share_it) {
  host_arena a(4_KiB);
  a.memory()[0] = std::byte{1};
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::_exit(is_mapped(a.memory().data()) ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(a.memory()[0], std::byte{1});
}

}  // namespace
}  // namespace forebay
