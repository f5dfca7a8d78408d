#include <forebay/checkpoint/safetensors.hpp>

#include <sys/resource.h>
#include <sys/stat.h>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <functional>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <forebay/base/error.hpp>

#include "support.hpp"

namespace forebay {
namespace {

using nlohmann::json;
using test::random_bytes;
using test::read_file;
using test::temporary_folder;

/// A reader of the format of its own, from its published description.
struct parsed_file {
  json header;
  std::string contents;
  std::uint64_t header_bytes = 0;

  explicit parsed_file(const std::string& file) {
    for (std::size_t i = 8; i-- > 0;) {
      header_bytes = header_bytes * 256 + static_cast<unsigned char>(file.at(i));
    }
    header = json::parse(file.substr(8, header_bytes));
    contents = file.substr(8 + header_bytes);
  }

  [[nodiscard]] std::string contents_of(const std::string& name) const {
    const json& offsets = header.at(name).at("data_offsets");
    return contents.substr(offsets.at(0), offsets.at(1).get<std::size_t>() - offsets.at(0).get<std::size_t>());
  }
};

struct owned_tensor {
  std::string name;
  dtype type;
  std::vector<std::uint64_t> shape;
  std::vector<std::byte> bytes;
};

std::vector<tensor_source> sources(const std::vector<owned_tensor>& tensors) {
  std::vector<tensor_source> result;
  for (const owned_tensor& t : tensors) {
    result.push_back(memory_source(t.name, t.type, t.shape, t.bytes));
  }
  return result;
}

std::vector<owned_tensor> many_kinds() {
  return {{"wte", dtype::f32, {7, 3}, random_bytes(84, 1)},
          {"scalar", dtype::f64, {}, random_bytes(8, 2)},
          {"odd", dtype::u8, {13}, random_bytes(13, 3)},
          {"after odd", dtype::bf16, {1, 5, 1}, random_bytes(10, 4)},
          {"nothing", dtype::f32, {4, 0}, {}},
          {"a \"quoted\" \\name\nwith é and 🐧", dtype::f16, {2}, random_bytes(4, 5)},
          {"one piece exactly", dtype::u8, {1U << 20U}, random_bytes(1U << 20U, 6)},
          {"several pieces", dtype::i32, {3, 300001}, random_bytes(3600012, 7)},
          {"one more byte", dtype::u8, {(1U << 20U) + 1}, random_bytes((1U << 20U) + 1, 8)},
          {"i", dtype::i64, {1}, random_bytes(8, 9)}};
}

TEST(SafetensorsExport, AnIndependentReaderFindsEverything) {
  const temporary_folder folder;
  const auto tensors = many_kinds();
  export_safetensors(folder / "a.safetensors", sources(tensors), {{"format", "pt"}, {"é\"", "\n"}});
  const std::string file = read_file(folder / "a.safetensors");
  const parsed_file parsed(file);
  EXPECT_EQ(parsed.header_bytes % 8, 0U);
  EXPECT_EQ(file.at(8), '{');
  EXPECT_EQ(parsed.header.size(), tensors.size() + 1);
  EXPECT_EQ(parsed.header.at("__metadata__"), json({{"format", "pt"}, {"é\"", "\n"}}));
  std::size_t expected_begin = 0;
  for (const owned_tensor& t : tensors) {
    const json& info = parsed.header.at(t.name);
    EXPECT_EQ(info.size(), 3U);
    EXPECT_EQ(info.at("dtype"), std::string(to_string(t.type)));
    EXPECT_EQ(info.at("shape"), json(t.shape));
    EXPECT_EQ(info.at("data_offsets"), json({expected_begin, expected_begin + t.bytes.size()}));
    EXPECT_TRUE(parsed.contents_of(t.name) == test::text_of(t.bytes)) << t.name;
    expected_begin += t.bytes.size();
  }
  EXPECT_EQ(parsed.contents.size(), expected_begin);
  EXPECT_EQ(folder.files(), 1U);
}

TEST(SafetensorsExport, TheEmptyFileIsOneToo) {
  const temporary_folder folder;
  export_safetensors(folder / "a", std::vector<tensor_source>{});
  EXPECT_EQ(read_file(folder / "a"), test::eight_bytes(8) + "{}      ");
}

TEST(SafetensorsExport, AKnownSmallFileByteForByte) {
  const temporary_folder folder;
  const std::vector<std::byte> bytes{std::byte{'x'}, std::byte{'y'}};
  export_safetensors(folder / "a", std::vector{memory_source("t", dtype::u8, {2}, bytes)});
  const std::string header = R"({"t":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})";
  const std::string padding(8 - header.size() % 8, ' ');
  EXPECT_EQ(read_file(folder / "a"), test::eight_bytes(56) + header + padding + "xy");
}

TEST(SafetensorsExport, SourcesAreReadInBoundedPiecesInOrder) {
  const temporary_folder folder;
  byte_count next = 0;
  const tensor_source source{"t", dtype::u8, {(5_MiB) + 3}, [&](byte_count offset, std::span<std::byte> out) {
                               EXPECT_EQ(offset, next);
                               EXPECT_LE(out.size(), 1_MiB);
                               EXPECT_GT(out.size(), 0U);
                               next += out.size();
                               std::fill(out.begin(), out.end(), std::byte{1});
                             }};
  export_safetensors(folder / "a", std::vector{source});
  EXPECT_EQ(next, 5_MiB + 3);
}

TEST(SafetensorsExport, ReplacesAnOldFileAndKeepsTheUsualMode) {
  const temporary_folder folder;
  test::write_file(folder / "a", "old");
  const mode_t mask = ::umask(022);
  export_safetensors(folder / "a", sources(many_kinds()));
  ::umask(mask);
  EXPECT_EQ(safetensors_file(folder / "a").entries().size(), many_kinds().size());
  EXPECT_EQ(static_cast<unsigned>(std::filesystem::status(folder / "a").permissions()), 0644U);
  EXPECT_EQ(folder.files(), 1U);
}

template <typename Error>
std::string message_of(const std::function<void()>& run) {
  try {
    run();
  } catch (const Error& e) {
    return e.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

TEST(SafetensorsExport, RefusesNamesThatTheFormatCannotHold) {
  const temporary_folder folder;
  const std::vector<std::byte> byte(1);
  const auto one = [&](const std::string& name) { return memory_source(name, dtype::u8, {1}, byte); };
  for (const std::vector<tensor_source>& bad :
       {std::vector{one("a"), one("b"), one("a")}, {one("__metadata__")}, {one("caf\xE9")}}) {
    EXPECT_THROW(export_safetensors(folder / "a", bad), usage_error);
  }
  EXPECT_NE(message_of<usage_error>([&] {
              export_safetensors(folder / "a", std::vector{one("dup"), one("dup")});
            }).find("'dup'"),
            std::string::npos);
  EXPECT_EQ(folder.files(), 0U);
}

TEST(SafetensorsExport, RefusesSizesBeyond64Bits) {
  const temporary_folder folder;
  const auto huge = [](std::string name, std::vector<std::uint64_t> shape) {
    return tensor_source{std::move(name), dtype::f32, std::move(shape),
                         [](byte_count, std::span<std::byte>) { FAIL(); }};
  };
  const std::uint64_t two32 = std::uint64_t{1} << 32U;
  EXPECT_THROW(export_safetensors(folder / "a", std::vector{huge("t", {two32, two32})}), usage_error);
  EXPECT_THROW(
      export_safetensors(folder / "a", std::vector{huge("t", {two32, two32 / 8}), huge("u", {two32, two32 / 8})}),
      usage_error);
  EXPECT_EQ((huge("t", {two32, two32, 0}).bytes()), 0U);
  EXPECT_EQ(folder.files(), 0U);
}

TEST(SafetensorsExport, ASourceThatThrowsLeavesTheOldFileAndNothingElse) {
  const temporary_folder folder;
  test::write_file(folder / "a", "old");
  const tensor_source source{"t", dtype::u8, {3_MiB}, [](byte_count offset, std::span<std::byte>) {
                               if (offset >= 2_MiB) {
                                 throw corruption_error("chunk 2");
                               }
                             }};
  EXPECT_THROW(export_safetensors(folder / "a", std::vector{source}), corruption_error);
  EXPECT_EQ(read_file(folder / "a"), "old");
  EXPECT_EQ(folder.files(), 1U);
}

TEST(SafetensorsExport, AFullDeviceIsAnErrorWithPathAndErrno) {
  const std::vector<std::byte> bytes = random_bytes(4096, 1);
  const std::vector tensors{memory_source("t", dtype::u8, {4096}, bytes)};
  try {
    export_safetensors("/dev/full", tensors);
    FAIL() << "no error";
  } catch (const io_error& e) {
    EXPECT_EQ(e.error_number(), ENOSPC);
    EXPECT_NE(std::string(e.what()).find("'/dev/full'"), std::string::npos);
    EXPECT_NE(std::string(e.what()).find("ENOSPC"), std::string::npos);
  }
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));  // written to, not replaced
}

TEST(SafetensorsExport, DevicesAreWrittenToAndNotReplaced) {
  export_safetensors("/dev/null", sources(many_kinds()));
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

TEST(SafetensorsExport, AMissingFolderIsAnError) {
  const temporary_folder folder;
  const std::string message =
      message_of<io_error>([&] { export_safetensors(folder / "none/a", std::vector<tensor_source>{}); });
  EXPECT_NE(message.find("none/a"), std::string::npos);
  EXPECT_NE(message.find("ENOENT"), std::string::npos);
}

/// Files of this process end at `bytes`: the kernel writes a part, then refuses with EFBIG.
class file_size_limit {
 public:
  explicit file_size_limit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit now{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &now);
  }
  ~file_size_limit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  file_size_limit(const file_size_limit&) = delete;
  file_size_limit& operator=(const file_size_limit&) = delete;

 private:
  rlimit before_{};
  void (*handler_)(int);
};

TEST(SafetensorsExport, AShortWriteIsContinuedAndItsErrorRaised) {
  const temporary_folder folder;
  test::write_file(folder / "a", "old");
  const std::vector<std::byte> bytes = random_bytes(3 << 20, 1);
  const std::vector tensors{memory_source("t", dtype::u8, {3_MiB}, bytes)};
  try {
    const file_size_limit limit((1_MiB) + 12345);  // within a piece
    export_safetensors(folder / "a", tensors);
    FAIL() << "no error";
  } catch (const io_error& e) {
    EXPECT_EQ(e.error_number(), EFBIG);
    EXPECT_NE(std::string(e.what()).find(std::to_string((1_MiB) + 12345)), std::string::npos) << e.what();
  }
  EXPECT_EQ(read_file(folder / "a"), "old");
  EXPECT_EQ(folder.files(), 1U);
}

TEST(MemorySource, RefusesContentsOfAnotherLength) {
  const std::vector<std::byte> bytes(7);
  EXPECT_THROW((void)memory_source("t", dtype::f32, {2}, bytes), usage_error);
  EXPECT_THROW((void)memory_source("t", dtype::f32, {}, bytes), usage_error);
  EXPECT_THROW((void)memory_source("t", dtype::f32, {0}, bytes), usage_error);
}

}  // namespace
}  // namespace forebay
