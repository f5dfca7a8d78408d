#include <forebay/base/function.hpp>

#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include <gtest/gtest.h>

namespace forebay {
namespace {

static_assert(!std::is_copy_constructible_v<unique_function<void()>>);
static_assert(std::is_nothrow_move_constructible_v<unique_function<void()>>);
static_assert(!std::is_constructible_v<unique_function<void()>, int>);
static_assert(!std::is_constructible_v<unique_function<int()>, std::function<std::string()>>);

struct counted {
  explicit counted(int& alive) : alive_(&alive) { ++*alive_; }
  counted(counted&& other) noexcept : alive_(other.alive_) { ++*alive_; }
  counted(const counted&) = delete;
  ~counted() { --*alive_; }
  int operator()() const { return 1; }
  int* alive_;
};

TEST(UniqueFunction, IsEmptyUntilGivenSomething) {
  unique_function<int()> f;
  EXPECT_FALSE(f);
  f = [] { return 4; };
  ASSERT_TRUE(f);
  EXPECT_EQ(f(), 4);
  f = nullptr;
  EXPECT_FALSE(f);
}

TEST(UniqueFunction, HoldsMoveOnlyCallables) {
  unique_function<int(int)> f = [p = std::make_unique<int>(40)](int x) { return *p + x; };
  unique_function<int(int)> g = std::move(f);
  EXPECT_FALSE(f);  // NOLINT(bugprone-use-after-move): moved from is empty
  EXPECT_EQ(g(2), 42);
}

TEST(UniqueFunction, PassesReferencesAndMoveOnlyArguments) {
  int n = 0;
  unique_function<void(int&)> add = [](int& x) { ++x; };
  add(n);
  add(n);
  EXPECT_EQ(n, 2);
  unique_function<std::unique_ptr<int>(std::unique_ptr<int>)> pass = [](std::unique_ptr<int> p) { return p; };
  EXPECT_EQ(*pass(std::make_unique<int>(9)), 9);
}

TEST(UniqueFunction, KeepsStateAndDiscardsResultsForVoid) {
  int calls = 0;
  unique_function<void()> f = [n = 0, &calls]() mutable {
    calls = ++n;
    return "ignored";
  };
  f();
  f();
  EXPECT_EQ(calls, 2);
}

TEST(UniqueFunction, DestroysWhatItHoldsOnce) {
  int alive = 0;
  {
    unique_function<int()> f{counted(alive)};
    EXPECT_EQ(alive, 1);
    unique_function<int()> g = std::move(f);
    EXPECT_EQ(alive, 1);
    EXPECT_EQ(g(), 1);
    g = [] { return 0; };
    EXPECT_EQ(alive, 0);
    g = counted(alive);
    EXPECT_EQ(alive, 1);
  }
  EXPECT_EQ(alive, 0);
}

TEST(UniqueFunction, LetsExceptionsThrough) {
  unique_function<int(int)> f = [](int x) -> int { throw std::to_string(x); };
  EXPECT_THROW((void)f(1), std::string);
}

}  // namespace
}  // namespace forebay
