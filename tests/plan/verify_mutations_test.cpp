#include <random>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include <forebay/plan/verify.hpp>

#include "random_schedule.hpp"
#include "token_executor.hpp"

namespace forebay::plan {
namespace {

using test::below;

void mutate(std::mt19937& random, schedule& s, const trace& t, const machine& m) {
  auto& all = s.operations;
  const auto any = [&] { return below(random, static_cast<std::uint32_t>(all.size())); };
  const auto at = [&](std::uint32_t k) { return all.begin() + static_cast<std::ptrdiff_t>(k); };
  const std::uint32_t k = any();
  const operation copy = all[k];
  switch (below(random, 7)) {
    case 0:
      std::swap(all[k], all[any()]);
      break;
    case 1:
      std::swap(all[k], all[(k + 1) % all.size()]);
      break;
    case 2:
      all.erase(at(k));
      break;
    case 3:
      all.insert(at(any()), copy);
      break;
    case 4:  // elsewhere
      all.erase(at(k));
      all.insert(at(any()), copy);
      break;
    case 5:
      all[k].index = copy.what == operation::kind::step
                         ? copy.index
                         : below(random, static_cast<std::uint32_t>(t.item_bytes.size()));
      break;
    default:
      all[k].over = static_cast<link>(below(random, m.storage.empty() ? 2 : 4));
      all[k].path = m.storage.empty() ? 0 : below(random, static_cast<std::uint32_t>(m.storage.size()));
      all[k].gone = static_cast<copies>(1U << below(random, 3));
  }
}

TEST(plan_verify, whatever_it_accepts_runs_concurrently) {
  std::mt19937 random(5);
  int accepted = 0;
  int refused = 0;
  int executed_wrongly = 0;
  while (accepted + refused < 6000) {
    const trace t = test::random_trace(random, {7, 3, 3, 9, true, false});
    const machine m = test::random_machine(random, t, below(random, 2) == 0);
    const auto good = test::random_schedule(random, t, m).make();
    if (!good) {
      continue;
    }
    const auto none = verify(t, m, *good);
    ASSERT_FALSE(none) << none->what;
    EXPECT_EQ(test::token_executor(random, t, m, *good, 3).run(), "");
    for (int k = 0; k < 20; ++k) {
      schedule s = *good;
      for (std::uint32_t n = below(random, 2) + 1; n > 0; --n) {
        mutate(random, s, t, m);
      }
      const auto wrong = verify(t, m, s);
      const std::string ran = test::token_executor(random, t, m, s, 3).run();
      ASSERT_TRUE(wrong || ran.empty()) << "accepted, but " << ran;
      accepted += wrong ? 0 : 1;
      refused += wrong ? 1 : 0;
      executed_wrongly += ran.empty() ? 0 : 1;
    }
  }
  EXPECT_GT(accepted, 600);
  EXPECT_GT(refused, 2000);
  EXPECT_GT(executed_wrongly, refused / 2);  // most of what it refuses does go wrong
  RecordProperty("accepted", accepted);
  RecordProperty("executed_wrongly", executed_wrongly);
}

}  // namespace
}  // namespace forebay::plan
