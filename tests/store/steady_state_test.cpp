// A store that is used for long takes no more of anything than one that is used briefly.
#include <filesystem>
#include <iterator>
#include <map>
#include <string>

#include <gmock/gmock.h>

#include "store_fixture.hpp"

namespace forebay {
namespace {

using store_test::guarded_buffer;
using store_test::page_mover;
using store_test::scratch_directory;

/// What the process and the directory hold.
struct holdings {
  std::ptrdiff_t descriptors = 0;
  std::map<std::string, byte_count> files;
  byte_count used = 0;

  [[nodiscard]] bool operator==(const holdings&) const = default;
};

std::ptrdiff_t entries(const char* directory) {
  return std::distance(std::filesystem::directory_iterator(directory), std::filesystem::directory_iterator());
}

holdings held(const page_store* store, const std::vector<std::filesystem::path>& directories) {
  holdings h;
  h.descriptors = entries("/proc/self/fd");
  for (const auto& directory : directories) {
    for (const auto& file : std::filesystem::directory_iterator(directory)) {
      h.files[file.path().string()] = file.file_size();
    }
  }
  h.used = store == nullptr ? 0 : store->used();
  return h;
}

TEST(steady_state, two_hundred_steps_hold_what_five_hold_and_the_end_holds_nothing) {
  const scratch_directory first;
  const scratch_directory second;
  const std::vector<std::filesystem::path> directories{first.path(), second.path()};
  const holdings before = held(nullptr, directories);
  {
    page_store_options o;
    o.paths.push_back({first.path(), 4_MiB});
    o.paths.push_back({second.path(), 4_MiB});
    o.chunk = 16_KiB;
    o.adaptive = false;
    page_store store(std::move(o));
    store.reserve(6_MiB);
    page_mover mover(store);
    guarded_buffer memory(1_MiB);
    std::vector<page_id> pages;
    for (int i = 0; i < 4; ++i) {
      pages.push_back(store.allocate(256_KiB, "kept"));
    }
    holdings early;
    for (int step = 1; step <= 200; ++step) {
      // Shares that sway, and a page that lives for a step, as the activations of a step do.
      store.weigh_paths({step % 2 == 0 ? 2.0 : 1.0, step % 3 == 0 ? 2.0 : 1.0});
      const page_id brief = store.allocate(100'000, "brief");
      mover.write(brief, memory.data());
      for (const page_id page : pages) {
        store.renew(page);
        mover.write(page, memory.data());
        mover.read(page, memory.data());
      }
      store.free(brief);
      if (step == 6) {
        early = held(&store, directories);
      }
    }
    EXPECT_EQ(held(&store, directories), early);
    EXPECT_LE(store.peak(), 4 * 256_KiB + store.padded_bytes(100'000));
  }
  EXPECT_EQ(held(nullptr, directories), before);
}

}  // namespace
}  // namespace forebay
