#include "train_gpt/corpus.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <forebay/base/error.hpp>
#include <set>
#include <string>

#include "temporary_folder.hpp"

namespace train_gpt {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

std::string text_of(const corpus& c) {
  std::string text(c.bytes(), '\0');
  c.read(0, {reinterpret_cast<std::uint8_t*>(text.data()), text.size()});
  return text;
}

TEST(corpus, is_its_files_sorted_and_one_after_another) {
  const temporary_folder folder;
  folder.write("b.txt", "second ");
  folder.write("a/z.txt", "first ");
  folder.write("c/d/e.txt", "third");
  folder.write("c/empty.txt", "");
  const corpus c({folder.path()});
  EXPECT_EQ(c.files(), 3U);
  EXPECT_EQ(text_of(c), "first second third");
}

TEST(corpus, keeps_the_order_of_its_sources) {
  const temporary_folder folder;
  const auto a = folder.write("a", "one ");
  const auto b = folder.write("b", "two ");
  EXPECT_EQ(text_of(corpus({b, a})), "two one ");
}

TEST(corpus, reads_any_window_across_files) {
  const temporary_folder folder;
  std::string all;
  for (int i = 0; i < 5; ++i) {
    const std::string part = std::string(static_cast<std::size_t>(i * 3), static_cast<char>('a' + i));
    folder.write(std::to_string(i), part);
    all += part;
  }
  const corpus c({folder.path()});
  ASSERT_EQ(c.bytes(), all.size());
  for (std::size_t from = 0; from <= all.size(); ++from) {
    for (std::size_t count = 0; from + count <= all.size(); ++count) {
      std::string got(count, '\0');
      c.read(from, {reinterpret_cast<std::uint8_t*>(got.data()), count});
      EXPECT_EQ(got, all.substr(from, count));
    }
  }
  std::vector<std::uint8_t> too_many(all.size() + 1);
  EXPECT_THROW(c.read(0, too_many), forebay::usage_error);
}

TEST(corpus, names_what_it_cannot_read) {
  const temporary_folder folder;
  EXPECT_THAT([&] { corpus({folder.path() / "missing"}); },
              ThrowsMessage<forebay::usage_error>(HasSubstr("missing does not exist")));
  const auto shrinking = folder.write("shrinking", "0123456789");
  const corpus c({shrinking});
  folder.write("shrinking", "0123");
  std::vector<std::uint8_t> bytes(10);
  EXPECT_THAT([&] { c.read(0, bytes); }, ThrowsMessage<forebay::io_error>(HasSubstr("shrinking ends at byte 4")));
}

TEST(corpus, refuses_a_context_that_the_text_cannot_fill) {
  const temporary_folder folder;
  const corpus c({folder.write("text", "12345")});
  EXPECT_NO_THROW(c.check_holds(4));
  EXPECT_THAT([&] { c.check_holds(5); }, ThrowsMessage<forebay::usage_error>(HasSubstr("5 bytes in 1 files")));
}

/// Text in which every position can be told from its bytes.
corpus numbered_text(const temporary_folder& folder) {
  std::string text;
  for (int i = 0; i < 256; ++i) {
    text.push_back(static_cast<char>(i));
  }
  return corpus({folder.write("numbers", text)});
}

std::vector<std::uint8_t> sample(const corpus& c, const model_shape& shape, std::uint64_t seed, std::uint64_t step,
                                 std::uint64_t micro_batch) {
  std::vector<std::uint8_t> out(shape.token_bytes());
  c.sample(shape, seed, step, micro_batch, out);
  return out;
}

TEST(sample, gives_windows_of_the_text) {
  const temporary_folder folder;
  const corpus c = numbered_text(folder);
  const model_shape shape{.layers = 1, .width = 1, .heads = 1, .context = 7, .batch = 50};
  const std::vector<std::uint8_t> got = sample(c, shape, 1, 1, 0);
  for (std::size_t i = 0; i < shape.batch; ++i) {
    for (std::size_t j = 1; j <= shape.context; ++j) {
      EXPECT_EQ(got[i * 8 + j], got[i * 8] + j);
    }
  }
}

TEST(sample, depends_on_seed_step_and_micro_batch_alone) {
  const temporary_folder folder;
  const corpus c = numbered_text(folder);
  const model_shape shape{.layers = 1, .width = 1, .heads = 1, .context = 7, .batch = 4};
  std::set<std::vector<std::uint8_t>> all;
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    for (std::uint64_t step = 1; step < 5; ++step) {
      for (std::uint64_t micro = 0; micro < 3; ++micro) {
        const std::vector<std::uint8_t> got = sample(c, shape, seed, step, micro);
        EXPECT_EQ(got, sample(c, shape, seed, step, micro));
        all.insert(got);
      }
    }
  }
  EXPECT_EQ(all.size(), 36U) << "two micro-batches got the same text";
}

TEST(sample, reaches_both_ends_of_the_text) {
  const temporary_folder folder;
  const corpus c = numbered_text(folder);
  const model_shape shape{.layers = 1, .width = 1, .heads = 1, .context = 127, .batch = 4096};
  const std::vector<std::uint8_t> got = sample(c, shape, 1, 1, 0);
  std::set<std::uint8_t> starts;
  for (std::size_t i = 0; i < shape.batch; ++i) {
    starts.insert(got[i * 128]);
  }
  // 129 possible windows; each is missed with probability (128/129)^4096 < 2e-14.
  EXPECT_EQ(starts.size(), 129U);
  EXPECT_EQ(*starts.begin(), 0);
  EXPECT_EQ(*starts.rbegin(), 128);
}

TEST(default_text, takes_the_newest_headers) {
  const temporary_folder root;
  root.write("usr/include/c++/9/vector", "nine");
  root.write("usr/include/c++/12/vector", "twelve");
  EXPECT_EQ(default_text(root.path()).filename(), "12");
}

TEST(default_text, says_where_it_looked) {
  const temporary_folder root;
  EXPECT_THAT([&] { static_cast<void>(default_text(root.path())); },
              ThrowsMessage<forebay::error>(testing::AllOf(HasSubstr("usr/include/c++"), HasSubstr("--data"))));
}

}  // namespace
}  // namespace train_gpt
