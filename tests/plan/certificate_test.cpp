#include <forebay/plan/certificate.hpp>

#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <forebay/base/error.hpp>

#include "dense_certificate.hpp"
#include "instances.hpp"
#include "random_trace.hpp"

namespace forebay::plan {
namespace {

using test::below;

/// Legal prices: runs of equal ones, zero more often than not, adding up to 1 or less.
certificate random_prices(std::mt19937& random, const trace& t, const machine& m) {
  certificate c = no_prices(t, m);
  std::vector<double> link(3 + 2 * m.storage.size(), 0.0);
  for (std::size_t k = 0; k < c.h2d.size(); ++k) {
    if (k == 0 || below(random, 4) == 0) {
      double sum = 1e-9;
      for (double& price : link) {
        price = below(random, 2) == 0 ? 0.0 : static_cast<double>(below(random, 5));
        sum += price;
      }
      for (double& price : link) {
        price /= sum;
      }
    }
    c.h2d[k] = link[0];
    c.d2h[k] = link[1];
    c.cpu[k] = link[2];
    for (std::size_t p = 0; p < m.storage.size(); ++p) {
      c.storage_read[p][k] = link[3 + 2 * p];
      c.storage_write[p][k] = link[4 + 2 * p];
    }
    const auto memory = [&] {
      return below(random, 3) > 0 ? 0.0 : static_cast<double>(1 + below(random, 8)) / (8.0 * m.h2d_rate);
    };
    c.device[k] = memory();
    c.host[k] = memory();
  }
  return c;
}

/// Legal prices stay legal; any of them may fall.
certificate perturbed(std::mt19937& random, const machine& m, certificate c) {
  const auto change = [&](double& price) { price *= static_cast<double>(below(random, 100)) / 100.0; };
  for (std::size_t k = 0; k < c.h2d.size(); ++k) {
    change(c.h2d[k]);
    change(c.d2h[k]);
    change(c.cpu[k]);
    change(c.device[k]);
    change(c.host[k]);
    for (std::size_t p = 0; p < m.storage.size(); ++p) {
      change(c.storage_read[p][k]);
      change(c.storage_write[p][k]);
    }
  }
  return c;
}

TEST(Certificate, NoPricesProveTheTimeOfTheSteps) {
  trace t;
  t.steps = {{place::device, 2.0, 0, "", {}}, {place::host, 9.0, 0, "", {}}, {place::device, 3.0, 0, "", {}}};
  EXPECT_NEAR(check_certificate(t, {}, no_prices(t, {})), 5.0, 1e-12);
  t.steps = {{place::host, 9.0, 0, "", {}}};
  EXPECT_NEAR(check_certificate(t, {}, no_prices(t, {})), 9.0, 1e-12);
  EXPECT_EQ(check_certificate({}, {}, no_prices({}, {})), 0.0);
}

/// Host steps of 9 seconds that nothing ties to the device's.
TEST(Certificate, TheOtherEngineTakesItsTime) {
  trace t;
  t.steps = {{place::device, 2.0, 0, "", {}}, {place::host, 9.0, 0, "", {}}, {place::device, 3.0, 0, "", {}}};
  certificate c = no_prices(t, {});
  c.cpu.assign(4, 1.0);
  EXPECT_NEAR(check_certificate(t, {}, c), 9.0, 1e-12);
}

/// The host changes 6 bytes between two device steps that use them: they go down, wait for the host and come up again.
trace round_trip() {
  trace t;
  t.item_bytes = {6};
  t.steps = {{place::device, 2.0, 0, "", {{0, uses::write}}},
             {place::host, 5.0, 0, "", {{0, uses::write}}},
             {place::device, 3.0, 0, "", {{0, uses::read}}}};
  return t;
}

TEST(Certificate, WaitsForTheHostInTheMiddle) {
  const trace t = round_trip();
  const machine m{100, 100, 2.0, 3.0, {}, false};
  certificate c = no_prices(t, m);
  c.cpu[1] = 1.0;  // after step 0 and before step 1 the host takes its 5 seconds
  EXPECT_NEAR(check_certificate(t, m, c), 2.0 + 5.0 + 3.0, 1e-12);
  c.cpu[1] = 0.0;
  c.h2d[1] = 0.25;  // and bytes go up for 3 seconds, and down for 2
  c.d2h[1] = 0.75;
  EXPECT_NEAR(check_certificate(t, m, c), 2.0 + 0.25 * 3.0 + 0.75 * 2.0 + 3.0, 1e-12);
}

/// 10 bytes of which 4 fit beside what each step needs: 8 of 12 go up again and again.
TEST(Certificate, WhatDoesNotFitIsBroughtEveryTime) {
  trace t;
  t.item_bytes = {6, 6};
  t.steps = {{place::device, 1.0, 0, "", {{0, uses::read}}}, {place::device, 1.0, 0, "", {{1, uses::read}}}};
  const machine m{10, 100, 0.5, 1.0, {}, false};
  certificate c = no_prices(t, m);
  c.h2d.assign(4, 1.0);
  c.device[0] = c.device[2] = 2.0;  // seconds per byte at half a byte a second
  // Of the 12 bytes 10 are there at either start, so that 2 of the other item come up in either half.
  EXPECT_NEAR(check_certificate(t, m, c), 2 * 2 / 0.5, 1e-9);
}

TEST(Certificate, WholeItemsWaitForRoom) {
  trace t;
  t.item_bytes = {6, 6};
  t.steps = {{place::device, 5.0, 0, "", {{0, uses::read}}}, {place::device, 7.0, 0, "", {{1, uses::read}}}};
  const machine m{11, 100, 2.0, 2.0, {}, false};
  certificate c = no_prices(t, m);
  c.h2d[1] = c.h2d[3] = 1.0;
  EXPECT_NEAR(check_certificate(t, m, c, true), 5.0 + 7.0 + 2 * 3.0, 1e-12);
  EXPECT_NEAR(check_certificate(t, m, c, false), 5.0 + 7.0, 1e-12);
}

TEST(Certificate, HalfDuplexDirectionsShareASecond) {
  trace t;
  t.item_bytes = {8};
  t.steps = {{place::host, 1.0, 0, "", {{0, uses::write}}}, {place::host, 1.0, 4 * 4096, "", {}}};
  machine m{0, 4 * 4096, 1.0, 1.0, {{2.0, 4.0}}, true};
  certificate c = no_prices(t, m);
  c.storage_read[0] = c.storage_write[0] = {0.0, 1.0, 0.0, 1.0};
  // The second step leaves no room in the host, nor is there any in the device: out and in, between steps.
  c.host[2] = c.host[3] = c.device[2] = c.device[3] = 1.0;
  EXPECT_NEAR(check_certificate(t, m, c), 2.0 + 8.0 / 2.0 + 8.0 / 4.0, 1e-8);
  m.half_duplex_storage = false;
  EXPECT_THROW(static_cast<void>(check_certificate(t, m, c)), usage_error);
  m.half_duplex_storage = true;
  m.storage[0].mixes = {{0.5, 6.0}};  // 3 bytes each way: more than its share of a second's prices
  EXPECT_THROW(static_cast<void>(check_certificate(t, m, c)), usage_error);
}

TEST(Certificate, AsTheDenseComputation) {
  for (std::uint32_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    test::trace_shape shape;
    shape.steps = 3 + below(random, 8);
    shape.persistent = 1 + below(random, 4);
    shape.transient = below(random, 3);
    shape.workspaces = below(random, 2) == 0;
    trace t = test::random_trace(random, shape);
    if (below(random, 8) == 0) {
      for (trace_step& s : t.steps) {
        s.where = place::host;
      }
    }
    const machine m = test::random_machine(random, t, below(random, 3) > 0);
    for (trace_step& s : t.steps) {
      for (item_access& a : s.accesses) {  // contents that are overwritten, or end at once
        a.how = below(random, 12) == 0 ? uses::create : a.how;
        a.how = below(random, 12) == 0 ? a.how | uses::free : a.how;
      }
    }
    const certificate c = random_prices(random, t, m);
    for (const bool whole : {false, true}) {
      const double expected = test::dense_certificate(t, m, c, whole).value();
      EXPECT_NEAR(check_certificate(t, m, c, whole), expected, 1e-9 * (1.0 + std::abs(expected)));
    }
  }
}

TEST(Certificate, AnyPricesProveNoMoreThanTheOptimum) {
  std::mt19937 random(1);
  for (const instance& i : read_instances(FOREBAY_INSTANCES, "tiny")) {
    SCOPED_TRACE(i.name);
    for (int n = 0; n < 200; ++n) {
      const certificate c = random_prices(random, i.trace, i.machine);
      EXPECT_LE(check_certificate(i.trace, i.machine, c, true), *i.optimum);
      EXPECT_LE(check_certificate(i.trace, i.machine, perturbed(random, i.machine, c), true), *i.optimum);
    }
  }
}

std::string refusal(const trace& t, const machine& m, const certificate& c) {
  try {
    return std::to_string(check_certificate(t, m, c)) + " seconds";
  } catch (const usage_error& e) {
    return e.what();
  }
}

TEST(Certificate, IllegalPricesAreRefused) {
  const trace t = round_trip();
  const machine m{100, 100, 2.0, 3.0, {{1.0, 1.0}}, false};
  certificate c = no_prices(t, m);
  c.h2d[2] = -0.5;
  EXPECT_EQ(refusal(t, m, c), "the certificate's h2d[2] is -0.5; it must be finite, and zero or more");
  c.h2d[2] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(refusal(t, m, c), "the certificate's h2d[2] is nan; it must be finite, and zero or more");
  c.h2d[2] = 0.0;
  c.host[0] = std::numeric_limits<double>::infinity();
  EXPECT_EQ(refusal(t, m, c), "the certificate's host[0] is inf; it must be finite, and zero or more");
  c = no_prices(t, m);
  c.cpu[3] = c.storage_read[0][3] = 0.75;
  EXPECT_EQ(refusal(t, m, c), "the certificate's prices in sub-slot 3 add up to 1.5; the limit is 1");
  c = no_prices(t, m);
  c.cpu[2] = c.storage_read[0][2] = 0.75;  // while a step runs there is no limit, and nothing gained
  EXPECT_NEAR(check_certificate(t, m, c), 5.0 - 1.5 * 3.0, 1e-12);
  c = no_prices(t, m);
  c.device.pop_back();
  EXPECT_EQ(refusal(t, m, c), "the certificate's device has 3 prices; the trace has 4 sub-slots");
  c = no_prices(t, m);
  c.storage_write.clear();
  EXPECT_EQ(refusal(t, m, c), "the certificate's storage_write has 0 paths; the machine has 1");
}

TEST(Certificate, InvalidTracesAreRefused) {
  trace t = round_trip();
  t.steps[0].accesses.push_back({0, uses::read});
  EXPECT_EQ(refusal(t, {}, no_prices(t, {})), "step 0 accesses item 0 twice");
  t = round_trip();
  t.steps[1].accesses[0].item = 1;
  EXPECT_EQ(refusal(t, {}, no_prices(t, {})), "step 1 accesses item 1, and there are 1");
  t = round_trip();
  t.steps[2].seconds = -1.0;
  EXPECT_EQ(refusal(t, {}, no_prices(t, {})), "step 2 takes -1 seconds; it must be a finite time, zero or more");
}

}  // namespace
}  // namespace forebay::plan
