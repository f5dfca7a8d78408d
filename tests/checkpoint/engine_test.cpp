#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <forebay/base/error.hpp>
#include <forebay/checkpoint/digest.hpp>
#include <forebay/checkpoint/safetensors.hpp>
#include <forebay/device/emulated_device.hpp>
#include <forebay/engine/engine.hpp>

#include "support.hpp"

namespace forebay {
namespace {

using test::random_bytes;
using test::temporary_folder;

/// An engine whose tensors exceed its device and host tiers together, and what they hold.
struct small_engine {
  explicit small_engine(const temporary_folder& folder, const std::string& name)
      : memory([&] {
          engine_options options;
          options.device = emulated_device({.capacity = 4_MiB});
          options.host.capacity = 4_MiB;
          options.host.pin = false;
          options.chunk = 64_KiB;
          options.storage = {{folder / name, 64_MiB, 0, 0}};
          return options;
        }()) {
    const std::vector<std::pair<dtype, std::vector<std::uint64_t>>> kinds{
        {dtype::f32, {700, 1000}}, {dtype::bf16, {3}},         {dtype::f32, {}},
        {dtype::u8, {1U << 20U}},  {dtype::f64, {1, 333333}},  {dtype::u8, {1}},
        {dtype::i64, {200, 999}},  {dtype::bf16, {999, 1001}}, {dtype::f32, {1000, 700}}};
    for (const auto& [type, shape] : kinds) {
      ids.push_back(memory.add({"t." + std::to_string(ids.size()) + " \"é\"", type, shape, role::parameter}));
    }
    order steps;
    for (const tensor_id t : ids) {
      steps.step("use", {reads(t)});
    }
    memory.set_order(steps);
  }

  void fill(unsigned seed) {
    for (const tensor_id t : ids) {
      contents.push_back(random_bytes(memory.spec(t).bytes(), seed + t.index));
      memory.write(t, std::span<const std::byte>(contents.back()));
    }
  }

  [[nodiscard]] std::vector<tensor_source> plain() const {
    std::vector<tensor_source> sources;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const tensor_spec& spec = memory.spec(ids[i]);
      sources.push_back(memory_source(spec.name, spec.type, spec.shape, contents[i]));
    }
    return sources;
  }

  engine memory;
  std::vector<tensor_id> ids;
  std::vector<std::vector<std::byte>> contents;
};

TEST(CheckpointOfAnEngine, EqualsThatOfPlainMemory) {
  const temporary_folder folder;
  small_engine e(folder, "a");
  e.fill(1);
  EXPECT_EQ(digest(e.memory, e.ids), digest(e.plain()));
  export_safetensors(folder / "engine.safetensors", e.memory, e.ids, {{"format", "pt"}});
  export_safetensors(folder / "plain.safetensors", e.plain(), {{"format", "pt"}});
  EXPECT_TRUE(test::read_file(folder / "engine.safetensors") == test::read_file(folder / "plain.safetensors"));
}

TEST(CheckpointOfAnEngine, ImportsIntoAnother) {
  const temporary_folder folder;
  small_engine from(folder, "a");
  from.fill(1);
  export_safetensors(folder / "file", from.memory, from.ids);
  small_engine to(folder, "b");
  to.fill(100);
  const std::string before = digest(to.memory, to.ids);
  import_safetensors(folder / "file", to.memory, to.ids);
  EXPECT_NE(digest(to.memory, to.ids), before);
  EXPECT_EQ(digest(to.memory, to.ids), digest(from.memory, from.ids));
}

TEST(CheckpointOfAnEngine, ImportsIntoTensorsThatHoldNothingYet) {
  const temporary_folder folder;
  small_engine from(folder, "a");
  from.fill(1);
  export_safetensors(folder / "file", from.memory, from.ids);
  small_engine to(folder, "b");
  import_safetensors(folder / "file", to.memory, to.ids);
  EXPECT_EQ(digest(to.memory, to.ids), digest(from.memory, from.ids));
}

TEST(CheckpointOfAnEngine, ImportsOnlyWhatIsAskedFor) {
  const temporary_folder folder;
  small_engine from(folder, "a");
  from.fill(1);
  export_safetensors(folder / "file", from.memory, from.ids);
  small_engine to(folder, "b");
  to.fill(100);
  const std::vector<tensor_id> some{to.ids[2], to.ids[0]};
  import_safetensors(folder / "file", to.memory, some);
  to.contents[0] = from.contents[0];
  to.contents[2] = from.contents[2];
  EXPECT_EQ(digest(to.memory, to.ids), digest(to.plain()));
}

TEST(CheckpointOfAnEngine, RefusesAFileThatDoesNotFitBeforeItWritesAnything) {
  const temporary_folder folder;
  small_engine e(folder, "a");
  e.fill(1);
  const std::string before = digest(e.memory, e.ids);
  std::vector<tensor_source> tensors = e.plain();
  const std::vector<std::byte> other = random_bytes(6, 9);
  const auto refused = [&](const std::vector<tensor_source>& contents) -> std::string {
    export_safetensors(folder / "file", contents);
    try {
      import_safetensors(folder / "file", e.memory, e.ids);
    } catch (const error& failure) {
      return failure.what();
    }
    return "";
  };
  std::vector<tensor_source> changed = tensors;
  changed[0] = memory_source(tensors[0].name, dtype::f32, {1000, 700}, e.contents[0]);
  EXPECT_NE(refused(changed).find("F32 [1000,700]"), std::string::npos);
  changed = tensors;
  changed[1] = memory_source(tensors[1].name, dtype::f16, {3}, other);
  EXPECT_NE(refused(changed).find("F16 [3]"), std::string::npos);
  changed = tensors;
  changed.pop_back();
  EXPECT_NE(refused(changed).find("holds no tensor 't.8"), std::string::npos);
  EXPECT_EQ(digest(e.memory, e.ids), before);
}

TEST(CheckpointOfAnEngine, RefusesATensorThatHoldsNothing) {
  const temporary_folder folder;
  small_engine e(folder, "a");
  EXPECT_THROW((void)digest(e.memory, e.ids), usage_error);
  EXPECT_THROW(export_safetensors(folder / "file", e.memory, e.ids), usage_error);
  EXPECT_FALSE(std::filesystem::exists(folder / "file"));
}

}  // namespace
}  // namespace forebay
