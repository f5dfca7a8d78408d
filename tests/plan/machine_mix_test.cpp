// Paths whose rates were measured under several mixes of reads and writes.
#include <algorithm>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <forebay/base/error.hpp>
#include <forebay/plan/machine.hpp>
#include <forebay/plan/phase_bound.hpp>

#include "random_trace.hpp"

namespace forebay::plan {
namespace {

machine mixed(std::vector<storage_link> paths) {
  machine m;
  m.storage = std::move(paths);
  m.half_duplex_storage = true;
  return m;
}

TEST(MixedStorage, ALoneRateAndAMixTakeTurns) {
  // Reads alone 2, writes alone 1, half and half 2 in total (taking turns would give 4/3).
  const machine m = mixed({{2, 1, {{0.5, 2}}}});
  EXPECT_DOUBLE_EQ(least_storage_seconds(m, 10, 10), 10);       // all of it mixed
  EXPECT_DOUBLE_EQ(least_storage_seconds(m, 30, 10), 10 + 10);  // 20 mixed, 20 more read at 2
  EXPECT_DOUBLE_EQ(least_storage_seconds(m, 10, 30), 10 + 20);  // 20 mixed, 20 more written at 1
  EXPECT_DOUBLE_EQ(least_storage_seconds(m, 10, 0), 5);
  EXPECT_DOUBLE_EQ(least_storage_seconds(m, 0, 10), 10);
  EXPECT_DOUBLE_EQ(least_storage_seconds(m, 0, 0), 0);
}

TEST(MixedStorage, TheRateOfAMixLiesOnALineInTimePerByte) {
  const machine m = mixed({{2, 1, {{0.5, 2}}}});
  EXPECT_DOUBLE_EQ(storage_rate(m, 0), 1);
  EXPECT_DOUBLE_EQ(storage_rate(m, 0.25), 1 / 0.75);  // between 1 s/byte at 0 and 0.5 s/byte at 0.5
  EXPECT_DOUBLE_EQ(storage_rate(m, 0.5), 2);
  EXPECT_DOUBLE_EQ(storage_rate(m, 0.75), 2);  // 0.5 s/byte at both ends
  EXPECT_DOUBLE_EQ(storage_rate(m, 1), 2);
  EXPECT_EQ(storage_rate(machine{}, 0.5), unlimited_rate);
  EXPECT_THROW(static_cast<void>(storage_rate(m, 1.5)), usage_error);
}

TEST(MixedStorage, TwoPathsShareTheWorkByWhatEachDoesBest) {
  // The first does everything at 4 in total, mixed or not; the second reads at 2, writes at 1, and mixes as badly as
  // taking turns. 30 read and 10 written: in t the second reads 2 t, the first does the rest: 40 - 2 t = 4 t.
  const machine m = mixed({{4, 4, {{0.5, 4}}}, {2, 1, {{0.5, 4.0 / 3}}}});
  EXPECT_DOUBLE_EQ(least_storage_seconds(m, 30, 10), 40.0 / 6);
  EXPECT_DOUBLE_EQ(storage_read_rate(m), 6);
  EXPECT_DOUBLE_EQ(storage_write_rate(m), 5);
}

TEST(MixedStorage, APointSlowerThanTakingTurnsChangesNothing) {
  const machine plain = mixed({{3, 2}, {5, 1}});
  const machine with_points = mixed({{3, 2, {{0.3, 1}, {0.9, 1.5}}}, {5, 1, {{0.5, 1.6}}}});
  for (byte_count read = 0; read < 50; read += 7) {
    for (byte_count written = 0; written < 50; written += 7) {
      EXPECT_DOUBLE_EQ(least_storage_seconds(with_points, read, written), least_storage_seconds(plain, read, written));
    }
  }
}

TEST(MixedStorage, AMixThatReadsFasterThanReadsAloneIsTheReadRate) {
  const machine m = mixed({{2, 1, {{0.9, 10}}}});  // 9 read and 1 written a second: nobody must write
  EXPECT_DOUBLE_EQ(storage_read_rate(m), 9);
  EXPECT_DOUBLE_EQ(least_storage_seconds(m, 90, 0), 10);
  EXPECT_DOUBLE_EQ(storage_write_rate(m), 1);
}

TEST(MixedStorage, TablesThatSayWhatTheFlagsSayGiveTheSame) {
  std::mt19937 random(7);
  const auto rate = [&] { return 1.0 + static_cast<double>(random() % 9); };
  for (int round = 0; round < 300; ++round) {
    machine independent;
    machine as_mixes = mixed({});
    machine turns = mixed({});
    machine turns_as_mixes = mixed({});
    for (unsigned p = 0; p <= random() % 3; ++p) {
      const double r = rate();
      const double w = rate();
      independent.storage.push_back({r, w});
      as_mixes.storage.push_back({r, w, {{r / (r + w), r + w}}});
      turns.storage.push_back({r, w});
      turns_as_mixes.storage.push_back({r, w, {{0.25, 1 / (0.25 / r + 0.75 / w)}, {0.5, 1 / (0.5 / r + 0.5 / w)}}});
    }
    const byte_count read = random() % 100;
    const byte_count written = random() % 100;
    EXPECT_NEAR(least_storage_seconds(as_mixes, read, written), least_storage_seconds(independent, read, written),
                1e-9);
    EXPECT_NEAR(least_storage_seconds(turns_as_mixes, read, written), least_storage_seconds(turns, read, written),
                1e-9);
  }
}

TEST(MixedStorage, UnlimitedRatesCostNothing) {
  EXPECT_DOUBLE_EQ(least_storage_seconds(mixed({{unlimited_rate, 5, {{0.5, 20}}}}), 1000, 50), 5);  // 10 a second
  EXPECT_EQ(least_storage_seconds(mixed({{2, 5, {{0.5, unlimited_rate}}}}), 1000, 50), 0);
}

/// Of one path, from the primal side: at most two operating points are in use, found by trying all pairs of them.
double seconds_of_one(const storage_link& path, double read, double written) {
  std::vector<std::pair<double, double>> points{{path.read_rate, 0.0}, {0.0, path.write_rate}};
  for (const mixed_rate& mix : path.mixes) {
    points.emplace_back(mix.read_share * mix.total_rate, (1 - mix.read_share) * mix.total_rate);
  }
  double least = unlimited_rate;
  for (const auto& [r1, w1] : points) {
    const double alone = std::max(read > 0 ? read / r1 : 0.0, written > 0 ? written / w1 : 0.0);
    least = std::min(least, alone);
    for (const auto& [r2, w2] : points) {
      const double determinant = r1 * w2 - r2 * w1;
      if (determinant == 0.0) {
        continue;
      }
      const double u1 = (read * w2 - r2 * written) / determinant;
      const double u2 = (r1 * written - read * w1) / determinant;
      if (u1 >= 0.0 && u2 >= 0.0) {
        least = std::min(least, u1 + u2);
      }
    }
  }
  return least;
}

double least_of_convex(double high, const std::function<double(double)>& f) {
  double low = 0.0;
  for (int i = 0; i < 100; ++i) {
    const double a = low + (high - low) / 3;
    const double b = high - (high - low) / 3;
    (f(a) < f(b) ? high : low) = f(a) < f(b) ? b : a;
  }
  return f((low + high) / 2);
}

storage_link random_path(std::mt19937& random) {
  const auto rate = [&] { return 1.0 + static_cast<double>(random() % 9); };
  storage_link path{rate(), rate()};
  for (unsigned i = 0; i < random() % 4; ++i) {
    path.mixes.push_back({0.1 + 0.8 * static_cast<double>(random() % 100) / 100, rate()});
  }
  return path;
}

TEST(MixedStorage, AgreesWithTheBestOfAllPairsOfPoints) {
  std::mt19937 random(11);
  for (int round = 0; round < 1000; ++round) {
    const storage_link path = random_path(random);
    const byte_count read = random() % 100;
    const byte_count written = random() % 100;
    EXPECT_NEAR(least_storage_seconds(mixed({path}), read, written),
                seconds_of_one(path, static_cast<double>(read), static_cast<double>(written)), 1e-9);
  }
}

TEST(MixedStorage, NoSplitOverTwoPathsBeatsItAndTheBestReachesIt) {
  std::mt19937 random(12);
  for (int round = 0; round < 40; ++round) {
    const storage_link a = random_path(random);
    const storage_link b = random_path(random);
    const byte_count reads = 1 + random() % 100;
    const byte_count writes = 1 + random() % 100;
    const auto read = static_cast<double>(reads);
    const auto written = static_cast<double>(writes);
    const double bound = least_storage_seconds(mixed({a, b}), reads, writes);
    const auto split = [&](double x, double y) {
      return std::max(seconds_of_one(a, x, y), seconds_of_one(b, read - x, written - y));
    };
    for (int i = 0; i <= 20; ++i) {
      for (int k = 0; k <= 20; ++k) {
        EXPECT_GE(split(read * i / 20, written * k / 20), bound * (1 - 1e-12));
      }
    }
    // The time of a split is convex in it, so nested searches find the best.
    const double best = least_of_convex(
        read, [&](double x) { return least_of_convex(written, [&](double y) { return split(x, y); }); });
    EXPECT_NEAR(best, bound, 1e-6 * bound);
  }
}

TEST(MixedStorage, MoreBytesNeverTakeLessAndMorePointsNeverMore) {
  std::mt19937 random(13);
  for (int round = 0; round < 300; ++round) {
    machine m = mixed({random_path(random), random_path(random)});
    const byte_count read = random() % 100;
    const byte_count written = random() % 100;
    const double seconds = least_storage_seconds(m, read, written);
    EXPECT_GE(least_storage_seconds(m, read + 1 + random() % 10, written), seconds);
    EXPECT_GE(least_storage_seconds(m, read, written + 1 + random() % 10), seconds);
    EXPECT_GE(seconds, static_cast<double>(read) / storage_read_rate(m) * (1 - 1e-12));
    EXPECT_GE(seconds, static_cast<double>(written) / storage_write_rate(m) * (1 - 1e-12));
    m.storage[0].mixes.push_back({0.5, 1.0 + static_cast<double>(random() % 30)});
    EXPECT_LE(least_storage_seconds(m, read, written), seconds * (1 + 1e-12));
  }
}

TEST(MixedStorage, RefusesWrongTablesAndNamesTheField) {
  const auto message = [](const machine& m) -> std::string {
    try {
      validate(m);
    } catch (const usage_error& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_EQ(message(mixed({{1, 1, {{0.25, 1}, {0.75, 1}}}})), "");
  for (const double bad : {0.0, 1.0, -0.5, 1.5, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_NE(message(mixed({{1, 1}, {1, 1, {{0.5, 1}, {bad, 1}}}})).find("storage[1].mixes[1].read_share"),
              std::string::npos);
  }
  EXPECT_NE(message(mixed({{1, 1, {{0.5, 0}}}})).find("storage[0].mixes[0].total_rate"), std::string::npos);
  machine separate = mixed({{1, 1, {{0.5, 1}}}});
  separate.half_duplex_storage = false;
  EXPECT_NE(message(separate).find("storage[0].mixes"), std::string::npos);
}

TEST(MixedStorage, TheBoundOfAnIterationLiesBetweenThoseOfTheTwoFlags) {
  std::mt19937 random(14);
  int between = 0;
  for (int round = 0; round < 60; ++round) {
    const trace t = test::random_trace(random, {});
    machine m = test::random_machine(random, t, true);
    const capacity_needs least = minimum_capacity(t, 0);
    m.device_capacity = least.device.bytes;  // so that much is stored, and slowly
    m.host_capacity = least.host.bytes;
    for (storage_link& path : m.storage) {
      path.read_rate /= 10;
      path.write_rate /= 10;
    }
    const phase_bound bound(t, m);
    m.half_duplex_storage = false;
    const double apart = bound.evaluate(m).seconds;
    m.half_duplex_storage = true;
    const double turns = bound.evaluate(m).seconds;
    for (storage_link& path : m.storage) {
      const double r = path.read_rate;
      const double w = path.write_rate;
      path.mixes.push_back({r / (r + w), 0.75 * (r + w)});
    }
    const double some = bound.evaluate(m).seconds;
    EXPECT_GE(some, apart * (1 - 1e-9));
    EXPECT_LE(some, turns * (1 + 1e-9));
    between += some > apart * (1 + 1e-9) && some < turns * (1 - 1e-9) ? 1 : 0;
  }
  EXPECT_GT(between, 5);
}

}  // namespace
}  // namespace forebay::plan
