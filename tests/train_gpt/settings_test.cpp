#include "train_gpt/settings.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

namespace train_gpt {
namespace {

using testing::AllOf;
using testing::HasSubstr;

struct parsed {
  command_line line;
  std::string out;
  std::string errors;
};

parsed parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "train_gpt");
  std::ostringstream out;
  std::ostringstream errors;
  command_line line = parse_command_line(static_cast<int>(arguments.size()), arguments.data(), out, errors);
  return {std::move(line), out.str(), errors.str()};
}

void expect_refused(const std::vector<const char*>& arguments, const char* option, const char* value,
                    const char* limit) {
  const parsed p = parse(arguments);
  EXPECT_FALSE(p.line.chosen.has_value());
  EXPECT_EQ(p.line.exit_code, exit_usage);
  EXPECT_THAT(p.errors, AllOf(HasSubstr(option), HasSubstr(value), HasSubstr(limit)));
}

TEST(settings, defaults_are_the_demonstration) {
  const parsed p = parse({});
  ASSERT_TRUE(p.line.chosen.has_value());
  const settings& s = *p.line.chosen;
  EXPECT_GE(tensor_table(s.shape, forebay::dtype::f32).parameter_elements(), 25'165'824U);
  EXPECT_LE(s.device_memory, 64U << 20U);
  EXPECT_LE(s.host_memory, 192U << 20U);
  EXPECT_GE(s.steps, 20U);
  EXPECT_TRUE(s.storage.empty());
  EXPECT_FALSE(s.resident);
}

TEST(settings, takes_every_option) {
  const parsed p = parse({"--data",
                          "a",
                          "b",
                          "--layers",
                          "3",
                          "--width",
                          "24",
                          "--heads",
                          "6",
                          "--context",
                          "9",
                          "--batch",
                          "2",
                          "--micro-batches",
                          "5",
                          "--steps",
                          "7",
                          "--seed",
                          "18446744073709551615",
                          "--lr",
                          "2e-3",
                          "--clip",
                          "0",
                          "--weight-decay",
                          "0.1",
                          "--device-memory",
                          "1MiB",
                          "--host-memory",
                          "2 MiB",
                          "--storage",
                          "x",
                          "--storage",
                          "y",
                          "--storage-capacity",
                          "1GiB",
                          "--device",
                          "emulated",
                          "--h2d-rate",
                          "1GB",
                          "--d2h-rate",
                          "2GB",
                          "--recompute",
                          "none",
                          "--resident",
                          "--io",
                          "threads",
                          "--json",
                          "j",
                          "--trace",
                          "t",
                          "--dump",
                          "d",
                          "--storage-read-rate",
                          "3MB",
                          "--storage-write-rate",
                          "4MB",
                          "--quiet"});
  ASSERT_TRUE(p.line.chosen.has_value()) << p.errors;
  const settings& s = *p.line.chosen;
  EXPECT_THAT(s.data, testing::ElementsAre("a", "b"));
  EXPECT_EQ(s.shape.layers, 3U);
  EXPECT_EQ(s.shape.width, 24U);
  EXPECT_EQ(s.shape.heads, 6U);
  EXPECT_EQ(s.shape.context, 9U);
  EXPECT_EQ(s.shape.batch, 2U);
  EXPECT_EQ(s.shape.micro_batches, 5U);
  EXPECT_EQ(s.steps, 7U);
  EXPECT_EQ(s.seed, ~std::uint64_t{0});
  EXPECT_EQ(s.lr, 2e-3F);
  EXPECT_EQ(s.clip, 0.0F);
  EXPECT_EQ(s.weight_decay, 0.1F);
  EXPECT_EQ(s.device_memory, 1U << 20U);
  EXPECT_EQ(s.host_memory, 2U << 20U);
  EXPECT_THAT(s.storage, testing::ElementsAre("x", "y"));
  EXPECT_EQ(s.storage_capacity, 1U << 30U);
  EXPECT_EQ(s.device, device_kind::emulated);
  EXPECT_EQ(s.h2d_rate, 1'000'000'000U);
  EXPECT_EQ(s.d2h_rate, 2'000'000'000U);
  EXPECT_EQ(s.recompute, forebay::recompute_policy::none);
  EXPECT_TRUE(s.resident);
  EXPECT_EQ(s.io, forebay::io::backend_kind::threads);
  EXPECT_EQ(s.json, "j");
  EXPECT_EQ(s.trace, "t");
  EXPECT_EQ(s.dump, "d");
  EXPECT_EQ(s.storage_read_rate, 3'000'000U);
  EXPECT_EQ(s.storage_write_rate, 4'000'000U);
  EXPECT_TRUE(s.quiet);
}

TEST(settings, refuse_with_option_value_and_limit) {
  expect_refused({"--layers", "0"}, "--layers", "'0'", "from 1 to");
  expect_refused({"--layers", "-3"}, "--layers", "'-3'", "from 1 to");
  expect_refused({"--width", "5.5"}, "--width", "'5.5'", "whole number");
  expect_refused({"--batch", "99999999999999999999"}, "--batch", "'99999999999999999999'", "to 1048576");
  expect_refused({"--lr", "0"}, "--lr", "'0'", "above 0");
  expect_refused({"--lr", "nan"}, "--lr", "'nan'", "finite");
  expect_refused({"--clip", "-1"}, "--clip", "'-1'", "at least 0");
  expect_refused({"--weight-decay", "inf"}, "--weight-decay", "'inf'", "finite");
  expect_refused({"--device-memory", "64potatoes"}, "--device-memory", "'64potatoes'", "64MiB");
  expect_refused({"--device-memory", "0"}, "--device-memory", "'0'", "at least 1 B");
  expect_refused({"--h2d-rate", "fast"}, "--h2d-rate", "'fast'", "a size");
  expect_refused({"--device", "tpu"}, "--device", "'tpu'", "auto|cuda|emulated");
  expect_refused({"--io", "aio"}, "--io", "'aio'", "auto|threads|uring");
  expect_refused({"--recompute", "some"}, "--recompute", "'some'", "all|auto|none");
  expect_refused({"--heads", "3"}, "--heads", "'3'", "--width 512");
  expect_refused({"--json", ""}, "--json", "''", "a file name");
  expect_refused({"--no-such-option"}, "--no-such-option", "", "");
  expect_refused({"--steps"}, "--steps", "", "");
}

TEST(settings, help_names_every_option_and_is_no_error) {
  const parsed p = parse({"--help"});
  EXPECT_FALSE(p.line.chosen.has_value());
  EXPECT_EQ(p.line.exit_code, 0);
  for (const char* name : {"--data",
                           "--layers",
                           "--width",
                           "--heads",
                           "--context",
                           "--batch",
                           "--micro-batches",
                           "--steps",
                           "--seed",
                           "--lr",
                           "--clip",
                           "--weight-decay",
                           "--device-memory",
                           "--host-memory",
                           "--storage",
                           "--storage-capacity",
                           "--device",
                           "--h2d-rate",
                           "--d2h-rate",
                           "--recompute",
                           "--resident",
                           "--io",
                           "--json",
                           "--trace",
                           "--dump",
                           "--quiet",
                           "--storage-read-rate",
                           "--storage-write-rate"}) {
    EXPECT_THAT(p.out, HasSubstr(name));
  }
}

}  // namespace
}  // namespace train_gpt
