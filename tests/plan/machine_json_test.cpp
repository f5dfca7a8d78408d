#include <limits>
#include <sstream>
#include <string>
#include <tuple>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <forebay/base/error.hpp>
#include <forebay/plan/machine_json.hpp>

namespace forebay::plan {
namespace {

machine_description all_of_it() {
  machine_description d;
  d.model.device_capacity = 80_GiB;
  d.model.host_capacity = ~byte_count{0};  // 64 bits survive
  d.model.h2d_rate = 1e10 / 3;             // no short decimal
  d.model.d2h_rate = std::numeric_limits<double>::denorm_min();
  d.model.storage = {{2e9, unlimited_rate, {{0.25, 0.1}, {1.0 / 3, 3e9}}}, {1.5, 2.5}};
  d.model.half_duplex_storage = true;
  d.device_name = "a \"device\"\n";
  d.host_capacity_source = "MemAvailable";
  d.storage_directories = {"/mnt/a", "/mnt/b"};
  d.link_both_ways = {5.5, 6.5};
  d.compute = {1.5e10, 2.5e10, 2e9, 5.6e10, 17};
  return d;
}

std::string written(const machine_description& d) {
  std::ostringstream out;
  write_machine(out, d);
  return out.str();
}

machine_description read(const std::string& text) {
  std::istringstream in(text);
  return read_machine_description(in);
}

auto fields_of(const machine& m) {
  return std::tie(m.device_capacity, m.host_capacity, m.h2d_rate, m.d2h_rate, m.half_duplex_storage);
}

void expect_equal(const machine_description& a, const machine_description& b) {
  EXPECT_EQ(fields_of(a.model), fields_of(b.model));
  ASSERT_EQ(a.model.storage.size(), b.model.storage.size());
  for (std::size_t p = 0; p < a.model.storage.size(); ++p) {
    const storage_link& x = a.model.storage[p];
    const storage_link& y = b.model.storage[p];
    EXPECT_EQ(x.read_rate, y.read_rate);
    EXPECT_EQ(x.write_rate, y.write_rate);
    ASSERT_EQ(x.mixes.size(), y.mixes.size());
    for (std::size_t i = 0; i < x.mixes.size(); ++i) {
      EXPECT_EQ(x.mixes[i].read_share, y.mixes[i].read_share);
      EXPECT_EQ(x.mixes[i].total_rate, y.mixes[i].total_rate);
    }
  }
  EXPECT_EQ(std::tie(a.device_name, a.host_capacity_source, a.storage_directories),
            std::tie(b.device_name, b.host_capacity_source, b.storage_directories));
  EXPECT_EQ(std::tie(a.link_both_ways.h2d, a.link_both_ways.d2h), std::tie(b.link_both_ways.h2d, b.link_both_ways.d2h));
  const auto rates = [](const compute_rates& c) {
    return std::tie(c.copy_one_thread, c.copy_all_threads, c.adam_elements, c.adam_bytes, c.threads);
  };
  EXPECT_EQ(rates(a.compute), rates(b.compute));
}

TEST(MachineJson, ReadsBackWhatItWrote) {
  expect_equal(read(written(all_of_it())), all_of_it());
  expect_equal(read(written({})), {});
  std::istringstream in(written(all_of_it()));
  EXPECT_EQ(fields_of(read_machine(in)), fields_of(all_of_it().model));
}

TEST(MachineJson, UnitsAreInTheNamesAndUnlimitedIsNull) {
  const nlohmann::json j = nlohmann::json::parse(written(all_of_it()));
  EXPECT_EQ(j.at("version"), 1);
  EXPECT_EQ(j.at("device").at("capacity_bytes"), 85899345920U);
  EXPECT_EQ(j.at("storage").at("paths").at(0).at("read_bytes_per_second"), 2e9);
  EXPECT_TRUE(j.at("storage").at("paths").at(0).at("write_bytes_per_second").is_null());
  EXPECT_EQ(j.at("storage").at("paths").at(0).at("mixes").at(1).at("bytes_per_second"), 3e9);
  EXPECT_FALSE(nlohmann::json::parse(written({})).at("host").contains("adam_elements_per_second"));
}

TEST(MachineJson, AFileByHandLeavesOutWhatItDoesNotKnow) {
  const machine m = read(R"({"version": 1, "storage": {"half_duplex": true, "paths": [
      {"read_bytes_per_second": 2e9, "mixes": [{"read_share": 0.5, "bytes_per_second": null}]}, {}]}})")
                        .model;
  EXPECT_EQ(m.device_capacity, 0U);
  EXPECT_EQ(m.h2d_rate, unlimited_rate);
  ASSERT_EQ(m.storage.size(), 2U);
  EXPECT_EQ(m.storage[0].read_rate, 2e9);
  EXPECT_EQ(m.storage[0].write_rate, unlimited_rate);
  EXPECT_EQ(m.storage[0].mixes.at(0).total_rate, unlimited_rate);
  EXPECT_EQ(m.storage[1].read_rate, unlimited_rate);
}

struct wrong {
  const char* text;
  const char* named;
};

class MachineJsonRefuses : public testing::TestWithParam<wrong> {};

TEST_P(MachineJsonRefuses, AndNamesTheField) {
  try {
    static_cast<void>(read(GetParam().text));
    FAIL() << "was taken: " << GetParam().text;
  } catch (const usage_error& e) {
    EXPECT_NE(std::string(e.what()).find(GetParam().named), std::string::npos) << e.what();
  }
}

INSTANTIATE_TEST_SUITE_P(
    Texts, MachineJsonRefuses,
    testing::Values(
        wrong{"", "not JSON"}, wrong{"{\"version\": 1", "not JSON"}, wrong{"[]", "description"},
        wrong{"{\"version\": 1} x", "not JSON"}, wrong{"{}", "version"},
        wrong{R"({"version": 1, "speed": 1})", "speed"}, wrong{R"({"version": 1, "device": 3})", "device"},
        wrong{R"({"version": 1, "device": {"h2d_rate": 1}})", "device.h2d_rate"},
        wrong{R"({"version": 1, "device": {"h2d_bytes_per_second": 0}})", "device.h2d_bytes_per_second"},
        wrong{R"({"version": 1, "device": {"d2h_bytes_per_second": "fast"}})", "device.d2h_bytes_per_second"},
        wrong{R"({"version": 1, "device": {"capacity_bytes": -1}})", "device.capacity_bytes"},
        wrong{R"({"version": 1, "device": {"capacity_bytes": 1.5}})", "device.capacity_bytes"},
        wrong{R"({"version": 1, "device": {"name": 5}})", "device.name"},
        wrong{R"({"version": 1, "host": {"capacity_bytes": 18446744073709551616}})", "host.capacity_bytes"},
        wrong{R"({"version": 1, "host": {"threads": 4294967296}})", "host.threads"},
        wrong{R"({"version": 1, "host": {"adam_elements_per_second": null}})", "host.adam_elements_per_second"},
        wrong{R"({"version": 1, "host": {"adam_bytes_per_second": 1e999}})", "not JSON"},
        wrong{R"({"version": 1, "storage": {"half_duplex": 1}})", "storage.half_duplex"},
        wrong{R"({"version": 1, "storage": {"paths": {}}})", "storage.paths"},
        wrong{R"({"version": 1, "storage": {"paths": [{}, {"write_bytes_per_second": -2}]}})",
              "storage.paths[1].write_bytes_per_second"},
        wrong{R"({"version": 1, "storage": {"paths": [{"mixes": [{"read_share": 0.5}]}]}})",
              "storage.paths[0].mixes[0].bytes_per_second is missing"},
        wrong{R"({"version": 1, "storage": {"half_duplex": true,
                "paths": [{"mixes": [{"read_share": 1, "bytes_per_second": 1}]}]}})",
              "storage[0].mixes[0].read_share"},
        wrong{R"({"version": 1, "storage": {"paths": [{"mixes": [{"read_share": 0.5, "bytes_per_second": 1}]}]}})",
              "storage[0].mixes"}));

TEST(MachineJson, OtherVersionsAreUnsupportedByName) {
  for (const char* text : {R"({"version": 2})", R"({"version": "1"})", R"({"version": 1.5})"}) {
    try {
      static_cast<void>(read(text));
      FAIL() << text;
    } catch (const unsupported_error& e) {
      EXPECT_NE(std::string(e.what()).find("version"), std::string::npos);
    }
  }
}

TEST(MachineJson, RefusesToWriteWhatIsNotValid) {
  machine_description d;
  d.model.h2d_rate = 0;
  EXPECT_THROW(written(d), usage_error);
  d = all_of_it();
  d.storage_directories.pop_back();
  EXPECT_THROW(written(d), usage_error);
}

TEST(MachineJson, AFailedStreamIsAnError) {
  std::ostringstream out;
  out.setstate(std::ios::badbit);
  EXPECT_THROW(write_machine(out, {}), error);
  std::istringstream in;
  in.setstate(std::ios::badbit);
  EXPECT_THROW(static_cast<void>(read_machine(in)), error);
}

}  // namespace
}  // namespace forebay::plan
