// Bytes come back as they were written: every awkward size, both backends, one and three paths, all kinds of files.
#include <tuple>

#include <gmock/gmock.h>

#include "store_fixture.hpp"

namespace forebay {
namespace {

using store_test::guarded_buffer;
using store_test::page_mover;
using store_test::random_bytes;
using store_test::scratch_directory;

class round_trip : public ::testing::TestWithParam<std::tuple<io::backend_kind, std::size_t, bool, const char*>> {
 protected:
  [[nodiscard]] page_store_options options() {
    page_store_options o;
    for (std::size_t i = 0; i < std::get<1>(GetParam()); ++i) {
      directories_.push_back(std::make_unique<scratch_directory>(parent()));
      o.paths.push_back({directories_.back()->path() / "pages", 64_MiB});
    }
    o.io.kind = std::get<0>(GetParam());
    o.direct = std::get<2>(GetParam());
    return o;
  }
  [[nodiscard]] static std::filesystem::path parent() {
    const std::string name = std::get<3>(GetParam());
    return name.empty() ? std::filesystem::temp_directory_path() : std::filesystem::path(name);
  }

  std::vector<std::unique_ptr<scratch_directory>> directories_;
};

TEST_P(round_trip, every_size_comes_back_and_nothing_beside_it_changes) {
  page_store store(options());
  page_mover mover(store);
  std::uint64_t seed = 1;
  for (const byte_count bytes : {1_B, 2_B, 3_B, 511_B, 512_B, 513_B, 4095_B, 4096_B, 4097_B, 1_MiB - 1, 1_MiB,
                                 1_MiB + 2, 3_MiB + 4097, 14'412'000_B * 2}) {
    const page_id page = store.allocate(bytes, "page of " + std::to_string(bytes));
    const std::vector<std::byte> original = random_bytes(bytes, ++seed);
    guarded_buffer out(store.padded_bytes(bytes));
    std::memcpy(out.data(), original.data(), bytes);
    mover.write(page, out.data());
    guarded_buffer in(store.padded_bytes(bytes));
    mover.read(page, in.data());
    EXPECT_EQ(std::memcmp(in.data(), original.data(), bytes), 0) << bytes;
    EXPECT_EQ(std::memcmp(out.data(), original.data(), bytes), 0) << bytes;
    EXPECT_TRUE(in.canaries_intact() && out.canaries_intact()) << bytes;
  }
}

TEST_P(round_trip, pages_do_not_touch_each_other) {
  page_store_options o = options();
  o.chunk = 64_KiB;
  page_store store(std::move(o));
  page_mover mover(store);
  std::vector<page_id> pages;
  std::vector<std::vector<std::byte>> contents;
  std::vector<std::unique_ptr<guarded_buffer>> buffers;
  for (std::uint64_t i = 0; i < 40; ++i) {
    const byte_count bytes = 1 + (i * 37'117) % 300'000;
    pages.push_back(store.allocate(bytes, "p" + std::to_string(i)));
    contents.push_back(random_bytes(bytes, i));
    buffers.push_back(std::make_unique<guarded_buffer>(store.padded_bytes(bytes)));
    std::memcpy(buffers.back()->data(), contents.back().data(), bytes);
    mover.start(io::operation_kind::write, pages.back(), buffers.back()->data());
  }
  mover.wait();
  for (std::size_t i = 0; i < pages.size(); i += 2) {  // overwrite every other one
    contents[i] = random_bytes(contents[i].size(), 1000 + i);
    std::memcpy(buffers[i]->data(), contents[i].data(), contents[i].size());
    mover.start(io::operation_kind::write, pages[i], buffers[i]->data());
  }
  mover.wait();
  for (std::size_t i = 0; i < pages.size(); ++i) {
    std::memset(buffers[i]->data(), 0, buffers[i]->size());
    mover.start(io::operation_kind::read, pages[i], buffers[i]->data());
  }
  mover.wait();
  for (std::size_t i = 0; i < pages.size(); ++i) {
    EXPECT_EQ(std::memcmp(buffers[i]->data(), contents[i].data(), contents[i].size()), 0) << i;
    EXPECT_TRUE(buffers[i]->canaries_intact()) << i;
  }
}

TEST_P(round_trip, counts_the_bytes_that_moved) {
  page_store store(options());
  page_mover mover(store);
  const page_id page = store.allocate(2_MiB + 5, "counted");
  guarded_buffer memory(store.padded_bytes(2_MiB + 5));
  mover.write(page, memory.data());
  EXPECT_EQ(store.bytes_written(), store.padded_bytes(2_MiB + 5));
  EXPECT_EQ(store.bytes_read(), 0U);
  mover.read(page, memory.data());
  mover.read(page, memory.data());
  EXPECT_EQ(store.bytes_read(), 2 * store.padded_bytes(2_MiB + 5));
}

TEST_P(round_trip, leaves_nothing_behind) {
  {
    page_store store(options());
    const page_id page = store.allocate(1_MiB, "x");
    guarded_buffer memory(1_MiB);
    page_mover(store).write(page, memory.data());
  }
  for (const auto& directory : directories_) {
    EXPECT_TRUE(std::filesystem::is_empty(directory->path()));
  }
}

std::string case_name(const ::testing::TestParamInfo<round_trip::ParamType>& info) {
  const std::string parent = std::get<3>(info.param);
  return std::string(std::get<0>(info.param) == io::backend_kind::automatic ? "automatic" : "threads") + "_" +
         std::to_string(std::get<1>(info.param)) + (std::get<2>(info.param) ? "_direct" : "_buffered") +
         (parent.empty() ? "_disk" : "_tmpfs");
}

INSTANTIATE_TEST_SUITE_P(backends, round_trip,
                         ::testing::Combine(::testing::Values(io::backend_kind::automatic, io::backend_kind::threads),
                                            ::testing::Values(std::size_t{1}, std::size_t{3}), ::testing::Bool(),
                                            ::testing::Values("", "/dev/shm")),
                         case_name);

}  // namespace
}  // namespace forebay
