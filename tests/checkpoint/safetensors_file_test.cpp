#include <forebay/checkpoint/safetensors.hpp>

#include <cerrno>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <forebay/base/error.hpp>
#include <forebay/checkpoint/digest.hpp>

#include "support.hpp"

namespace forebay {
namespace {

using test::eight_bytes;
using test::temporary_folder;
using test::write_file;

std::string file_of(const std::string& header, const std::string& contents) {
  return eight_bytes(header.size()) + header + contents;
}

TEST(SafetensorsFile, ReadsAFileWrittenByHand) {
  const temporary_folder folder;
  // Entries in another order than their contents, white space, a field of a later version, an escaped name.
  write_file(folder / "a", file_of(R"({ "b\u00e9": {"shape":[2,1], "dtype":"U8", "data_offsets":[8,10], "new":[{}]},
      "__metadata__": {"who": "me"},
      "z": {"dtype":"F32","shape":[],"data_offsets":[4,8]}, "e": {"dtype":"BF16","shape":[0],"data_offsets":[4,4]},
      "a": {"dtype":"I32","shape":[1,1],"data_offsets":[0,4]}}   )",
                                   "0123abcdxy"));
  const safetensors_file file(folder / "a");
  ASSERT_EQ(file.entries().size(), 4U);
  EXPECT_EQ(file.entries()[0].name, "a");
  EXPECT_EQ(file.entries()[1].name, "e");
  EXPECT_EQ(file.entries()[2].name, "z");
  EXPECT_EQ(file.entries()[3].name, "b\xC3\xA9");
  EXPECT_EQ(file.entries()[3].shape, (std::vector<std::uint64_t>{2, 1}));
  EXPECT_EQ(file.entries()[2].type, dtype::f32);
  EXPECT_TRUE(file.entries()[2].shape.empty());
  EXPECT_EQ(file.metadata(), (safetensors_metadata{{"who", "me"}}));
  std::vector<std::byte> out(2);
  file.read(*file.find("z"), 1, out);
  EXPECT_EQ(test::text_of(out), "bc");
  file.read(*file.find("b\xC3\xA9"), 0, out);
  EXPECT_EQ(test::text_of(out), "xy");
  EXPECT_EQ(file.find("none"), nullptr);
  EXPECT_THROW(file.read(file.entries()[0], 3, out), usage_error);
  EXPECT_THROW(file.read(file.entries()[0], ~byte_count{0}, out), usage_error);
  EXPECT_NO_THROW(file.read(file.entries()[0], 4, {}));
}

TEST(SafetensorsFile, RoundTripsWhatIsExported) {
  const temporary_folder folder;
  const auto big = test::random_bytes(2500000, 1);
  const auto small = test::random_bytes(6, 2);
  const std::vector tensors{memory_source("big", dtype::f16, {2, 625000}, big),
                            memory_source("sm\"all", dtype::bf16, {3}, small)};
  export_safetensors(folder / "a", tensors);
  const safetensors_file file(folder / "a");
  std::vector<tensor_source> back;
  for (const safetensors_entry& entry : file.entries()) {
    back.push_back(file.source(entry));
  }
  EXPECT_EQ(digest(back), digest(tensors));
  export_safetensors(folder / "b", back);
  EXPECT_EQ(test::read_file(folder / "a"), test::read_file(folder / "b"));
}

struct bad_file {
  std::string what;  ///< a part of the message
  std::string file;
};

std::vector<bad_file> bad_files() {
  const std::string ok = R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})";
  const auto one = [](const std::string& info) { return file_of("{\"a\":" + info + "}", "0123"); };
  return {
      {"only 0 bytes", ""},
      {"only 7 bytes", "1234567"},
      {"claims", eight_bytes(1) + ""},
      {"claims", eight_bytes(~std::uint64_t{0}) + "{}"},
      {"claims", eight_bytes(std::uint64_t{1} << 63U) + "{}"},
      {"claims", file_of(ok, "").substr(0, 30)},
      {"begin with", file_of("", "")},
      {"begin with", file_of(" {}", "")},
      {"begin with", file_of("[]", "")},
      {"not JSON", file_of("{", "")},
      {"not JSON", file_of("{} x", "")},
      {"not JSON", file_of(ok.substr(0, 20), "0123")},
      {"not JSON", file_of("{\"\xFF\":1}", "")},
      {"take 4 bytes, but the file holds 3", file_of(ok, "012")},
      {"take 4 bytes, but the file holds 5", file_of(ok, "01234")},
      {"take 0 bytes, but the file holds 1", file_of("{}", "0")},
      {"described", one("3")},
      {"no dtype", one(R"({"shape":[4],"data_offsets":[0,4]})")},
      {"no dtype", one(R"({"dtype":3,"shape":[4],"data_offsets":[0,4]})")},
      {"no shape", one(R"({"dtype":"U8","data_offsets":[0,4]})")},
      {"no shape", one(R"({"dtype":"U8","shape":4,"data_offsets":[0,4]})")},
      {"whole numbers", one(R"({"dtype":"U8","shape":[-4],"data_offsets":[0,4]})")},
      {"whole numbers", one(R"({"dtype":"U8","shape":[4.0],"data_offsets":[0,4]})")},
      {"whole numbers", one(R"({"dtype":"U8","shape":[99999999999999999999],"data_offsets":[0,4]})")},
      {"no data_offsets", one(R"({"dtype":"U8","shape":[4]})")},
      {"valid data_offsets", one(R"({"dtype":"U8","shape":[4],"data_offsets":[0,4,8]})")},
      {"valid data_offsets", one(R"({"dtype":"U8","shape":[4],"data_offsets":[4,0]})")},
      {"by its data_offsets", one(R"({"dtype":"U8","shape":[3],"data_offsets":[0,4]})")},
      {"by its data_offsets", one(R"({"dtype":"F32","shape":[4],"data_offsets":[0,4]})")},
      {"2^64", one(R"({"dtype":"F32","shape":[4294967296,1073741824],"data_offsets":[0,0]})")},
      {"2^64", one(R"({"dtype":"U8","shape":[4294967296,4294967296,4],"data_offsets":[0,4]})")},
      {"a gap", one(R"({"dtype":"U8","shape":[3],"data_offsets":[1,4]})")},
      {"a gap", file_of(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                        R"("b":{"dtype":"U8","shape":[1],"data_offsets":[3,4]}})",
                        "0123")},
      {"an overlap", file_of(R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},)"
                             R"("b":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})",
                             "0123")},
      {"an overlap", file_of(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                             R"("b":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})",
                             "0123")},
      {"comes twice", file_of(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                              R"("a":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})",
                              "0123")},
      {"comes twice", one(R"({"dtype":"U8","dtype":"U8","shape":[4],"data_offsets":[0,4]})")},
      {"not an object", file_of(R"({"__metadata__":[]})", "")},
      {"not text", file_of(R"({"__metadata__":{"a":1}})", "")},
  };
}

TEST(SafetensorsFile, RefusesWhatIsNotValidAndSaysWhy) {
  const temporary_folder folder;
  for (const bad_file& bad : bad_files()) {
    write_file(folder / "bad", bad.file);
    try {
      const safetensors_file file(folder / "bad");
      ADD_FAILURE() << "accepted: " << bad.file.substr(std::min<std::size_t>(8, bad.file.size()));
    } catch (const corruption_error& e) {
      EXPECT_NE(std::string(e.what()).find(bad.what), std::string::npos) << e.what();
      EXPECT_NE(std::string(e.what()).find((folder / "bad").string()), std::string::npos) << e.what();
    }
  }
}

TEST(SafetensorsFile, ADtypeWithoutACounterpartIsUnsupported) {
  const temporary_folder folder;
  write_file(folder / "a", file_of(R"({"mask":{"dtype":"BOOL","shape":[4],"data_offsets":[0,4]}})", "0123"));
  try {
    const safetensors_file file(folder / "a");
    FAIL() << "accepted";
  } catch (const unsupported_error& e) {
    EXPECT_NE(std::string(e.what()).find("'mask'"), std::string::npos);
    EXPECT_NE(std::string(e.what()).find("BOOL"), std::string::npos);
  }
}

TEST(SafetensorsFile, AMissingFileAndAFolderAreTypedErrors) {
  const temporary_folder folder;
  try {
    const safetensors_file file(folder / "none");
    FAIL() << "opened";
  } catch (const io_error& e) {
    EXPECT_EQ(e.error_number(), ENOENT);
  }
  EXPECT_THROW(const safetensors_file file(folder / ""), corruption_error);
}

TEST(SafetensorsFile, DamagedHeadersAreRefusedOrStillDescribeTheFile) {
  const temporary_folder folder;
  const std::string good = file_of(R"({"__metadata__":{"k":"v"},"a":{"dtype":"U8","shape":[2,2],"data_offsets":[0,4]},)"
                                   R"("b":{"dtype":"BF16","shape":[],"data_offsets":[4,6]}})",
                                   "0123ab");
  std::mt19937 random(5);
  int refused = 0;
  for (int i = 0; i < 600; ++i) {
    std::string damaged = good;
    for (unsigned k = 0; k <= random() % 3; ++k) {
      damaged[random() % (good.size() - 6)] = static_cast<char>(random() % 256);
    }
    write_file(folder / "a", damaged);
    try {
      const safetensors_file file(folder / "a");
      byte_count total = 0;
      for (const safetensors_entry& entry : file.entries()) {
        EXPECT_EQ(entry.bytes, file.source(entry).bytes());
        EXPECT_LE(entry.offset + entry.bytes, good.size());
        total += entry.bytes;
      }
      EXPECT_EQ(total, 6U);
    } catch (const error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 200);
  EXPECT_LT(refused, 600);  // a changed letter of a name is fine
}

}  // namespace
}  // namespace forebay
