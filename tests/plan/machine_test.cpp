#include <forebay/plan/machine.hpp>

#include <algorithm>
#include <limits>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include <forebay/base/error.hpp>

namespace forebay::plan {
namespace {

TEST(Machine, ADefaultOneIsValidAndHasNoLimits) {
  const machine m;
  EXPECT_NO_THROW(validate(m));
  EXPECT_EQ(least_storage_seconds(m, 1_TiB, 1_TiB), 0.0);
}

TEST(Machine, RefusesRatesThatAreNotAboveZeroAndNamesThem) {
  const auto message = [](const machine& m) -> std::string {
    try {
      validate(m);
    } catch (const usage_error& e) {
      return e.what();
    }
    return "";
  };
  for (const double bad : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_NE(message({.h2d_rate = bad}).find("h2d_rate"), std::string::npos);
    EXPECT_NE(message({.d2h_rate = bad}).find("d2h_rate"), std::string::npos);
    EXPECT_NE(message({.storage = {{1, 1}, {bad, 1}}}).find("storage[1].read_rate"), std::string::npos);
    EXPECT_NE(message({.storage = {{1, bad}}}).find("storage[0].write_rate"), std::string::npos);
  }
}

TEST(LeastStorageSeconds, SeparateDirectionsOverlap) {
  const machine m{.storage = {{2, 1}, {4, 3}}};
  EXPECT_DOUBLE_EQ(storage_read_rate(m), 6);
  EXPECT_DOUBLE_EQ(storage_write_rate(m), 4);
  EXPECT_DOUBLE_EQ(least_storage_seconds(m, 60, 20), 10);
  EXPECT_DOUBLE_EQ(least_storage_seconds(m, 6, 20), 5);
}

TEST(LeastStorageSeconds, EqualHalfDuplexPathsAddUp) {
  const machine m{.storage = {{2, 1}, {2, 1}, {2, 1}}, .half_duplex_storage = true};
  EXPECT_DOUBLE_EQ(least_storage_seconds(m, 60, 30), 20);  // (60 / 2 + 30 / 1) / 3
  EXPECT_DOUBLE_EQ(least_storage_seconds(m, 60, 0), 10);
  EXPECT_DOUBLE_EQ(least_storage_seconds(m, 0, 0), 0);
}

TEST(LeastStorageSeconds, AnUnlimitedDirectionCostsNothing) {
  const machine m{.storage = {{unlimited_rate, 5}}, .half_duplex_storage = true};
  EXPECT_DOUBLE_EQ(least_storage_seconds(m, 1000, 50), 10);
  const machine none{.storage = {{unlimited_rate, unlimited_rate}}, .half_duplex_storage = true};
  EXPECT_DOUBLE_EQ(least_storage_seconds(none, 1000, 50), 0);
}

/// Can half-duplex paths read `read` and write `written` bytes in `seconds`? Reads go first to where they displace the
/// fewest writes: a fractional knapsack.
bool possible(std::vector<storage_link> paths, double read, double written, double seconds) {
  std::sort(paths.begin(), paths.end(), [](const storage_link& a, const storage_link& b) {
    return a.write_rate * b.read_rate < b.write_rate * a.read_rate;
  });
  double can_write = 0.0;
  for (const storage_link& path : paths) {
    const double reads = std::min(read, path.read_rate * seconds);
    read -= reads;
    can_write += (seconds - reads / path.read_rate) * path.write_rate;
  }
  return read <= 1e-9 && can_write >= written - 1e-9;
}

TEST(LeastStorageSeconds, AgreesWithABisectionOverTheBestSplit) {
  std::mt19937 random(1);
  for (int round = 0; round < 500; ++round) {
    machine m{.half_duplex_storage = true};
    for (unsigned p = 0; p <= random() % 4; ++p) {
      m.storage.push_back({1.0 + static_cast<double>(random() % 9), 1.0 + static_cast<double>(random() % 9)});
    }
    const byte_count read = random() % 100;
    const byte_count written = random() % 100;
    double low = 0.0;
    double high = 1000.0;
    for (int i = 0; i < 60; ++i) {
      const double middle = (low + high) / 2;
      (possible(m.storage, static_cast<double>(read), static_cast<double>(written), middle) ? high : low) = middle;
    }
    EXPECT_NEAR(least_storage_seconds(m, read, written), high, 1e-6);
  }
}

}  // namespace
}  // namespace forebay::plan
