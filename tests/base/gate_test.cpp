#include <forebay/base/gate.hpp>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace forebay {
namespace {

TEST(Gate, ClosesAtOnceWhenEmptyAndStaysClosed) {
  gate g;
  ASSERT_TRUE(g.enter());
  g.leave();
  g.close();
  EXPECT_FALSE(g.enter());
  g.close();
}

TEST(Gate, CloseWaitsForThoseInside) {
  gate g;
  ASSERT_TRUE(g.enter());
  ASSERT_TRUE(g.enter());
  std::atomic<bool> closed{false};
  std::thread closer([&] {
    g.close();
    closed = true;
  });
  while (g.enter()) {  // until the closer has shut it
    g.leave();
    std::this_thread::yield();
  }
  g.leave();
  EXPECT_FALSE(g.enter());
  EXPECT_FALSE(closed);  // one is still inside
  g.leave();
  closer.join();
  EXPECT_TRUE(closed);
}

TEST(Gate, MayBeDestroyedAsSoonAsCloseReturns) {
  for (int round = 0; round < 300; ++round) {
    auto g = std::make_unique<gate>();
    std::atomic<int> started{0};
    std::atomic<int> left{0};
    int entered = 0;
    std::vector<std::thread> workers;
    for (int i = 0; i < 3; ++i) {
      ASSERT_TRUE(g->enter());
      ++entered;
      workers.emplace_back([&started, &left, p = g.get()] {
        ++started;
        ++left;
        p->leave();
      });
    }
    g->close();
    EXPECT_EQ(left, entered);
    g.reset();  // the last leaver must not touch it any more: sanitizers watch
    for (auto& worker : workers) {
      worker.join();
    }
  }
}

}  // namespace
}  // namespace forebay
