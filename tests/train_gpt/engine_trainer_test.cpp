#include "train_gpt/engine_trainer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <forebay/base/error.hpp>
#include <forebay/checkpoint/digest.hpp>
#include <forebay/device/emulated_device.hpp>
#include <forebay/io/backend.hpp>
#include <forebay/testing/delayed_device.hpp>
#include <forebay/testing/io_faults.hpp>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "temporary_folder.hpp"
#include "train_gpt/json_log.hpp"
#include "train_gpt/random.hpp"
#include "train_gpt/resident_trainer.hpp"

namespace train_gpt {
namespace {

using namespace forebay::literals;
using forebay::byte_count;
using forebay::tier_bytes;
using forebay::io::backend_kind;
using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

/// One way to run the small model. Whatever it says, the numbers must be the same.
struct configuration {
  std::size_t micro_batches = 1;
  float clip = 0.0F;
  // Beyond the minimum, in eighths of what everything needs: 0 is the minimum itself, 8 and more is everything.
  unsigned device_eighths = 2;
  unsigned host_eighths = 2;
  std::size_t paths = 1;
  backend_kind io = backend_kind::automatic;
  unsigned update_threads = 0;
  byte_count link_rate = 0;     ///< of both directions
  byte_count storage_rate = 0;  ///< of reads and writes
  bool delays = false;          ///< of 0-20 ms on every copy and every storage transfer, in random order
  bool prefetch = true;
  byte_count chunk = 16_KiB;
  forebay::recompute_policy recompute = forebay::recompute_policy::automatic;

  friend std::ostream& operator<<(std::ostream& out, const configuration& c) {
    return out << "micro-batches " << c.micro_batches << ", clip " << c.clip << ", device " << c.device_eighths
               << "/8, host " << c.host_eighths << "/8, paths " << c.paths << ", io " << static_cast<int>(c.io)
               << ", threads " << c.update_threads << ", links " << c.link_rate << ", storage " << c.storage_rate
               << ", delays " << c.delays << ", prefetch " << c.prefetch << ", chunk " << c.chunk << ", recompute "
               << static_cast<int>(c.recompute);
  }
};

model_shape shape_of(const configuration& c) {
  return {.layers = 2, .width = 32, .heads = 4, .context = 12, .batch = 2, .micro_batches = c.micro_batches};
}

optimizer_settings optimizer_of(const configuration& c) {
  optimizer_settings o;
  o.lr = 3e-3F;
  o.clip = c.clip;
  o.weight_decay = 0.05F;
  o.threads = c.update_threads;
  o.subgroup_bytes = 96_KiB;
  return o;
}

step_text text_of(const model_shape& shape, std::uint64_t step) {
  step_text text(shape.micro_batches, std::vector<std::uint8_t>(shape.token_bytes()));
  for (std::size_t m = 0; m < text.size(); ++m) {
    for (std::size_t i = 0; i < text[m].size(); ++i) {
      text[m][i] = static_cast<std::uint8_t>(random_below(step * 100 + m, i, 60));
    }
  }
  return text;
}

/// All that a run computes, bit by bit.
struct outcome {
  std::vector<std::string> losses;
  std::vector<double> norms;
  std::string digest;

  friend bool operator==(const outcome&, const outcome&) = default;
  friend std::ostream& operator<<(std::ostream& out, const outcome& o) {
    for (const std::string& loss : o.losses) {
      out << loss << ' ';
    }
    return out << o.digest;
  }
};

constexpr std::uint64_t seed = 5;
constexpr std::uint64_t steps = 3;

outcome train(trainer& t, const model_shape& shape) {
  outcome result;
  for (std::uint64_t step = 1; step <= steps; ++step) {
    const step_result r = t.run(step, text_of(shape, step));
    EXPECT_TRUE(r.non_finite_tensor.empty());
    result.losses.push_back(bits_of(r.loss));
    result.norms.push_back(r.gradient_norm);
  }
  result.digest = forebay::digest(t.state());
  return result;
}

outcome train_resident(const configuration& c) {
  const model<float> m(shape_of(c));
  resident_trainer t(m, optimizer_of(c), seed);
  return train(t, m.shape());
}

/// The engine's side of one configuration, with what must outlive it.
class engine_run {
 public:
  explicit engine_run(const configuration& c) : c_(c), model_(shape_of(c)) {
    faults_.delay(std::chrono::milliseconds(0), std::chrono::milliseconds(20));
    // Too little device memory for all, so that the update is on the host there too.
    minimum_ = engine_trainer::minimum_capacity(model_, optimizer_of(c_), options({64_KiB, 4_MiB, 0}));
  }

  /// For all tensors at once, m and v included, each block padded.
  [[nodiscard]] byte_count everything() const {
    byte_count sum = 0;
    for (const forebay::tensor_spec& spec : model_.tensors().specs()) {
      const bool has_moments = spec.role == forebay::role::parameter;
      sum += forebay::align_up(spec.bytes(), 4_KiB) * (has_moments ? 3 : 1);
    }
    return 2 * sum + 1_MiB;  // and the largest workspace
  }
  [[nodiscard]] tier_bytes minimum() const { return minimum_; }
  [[nodiscard]] tier_bytes capacity() const {
    const auto between = [&](byte_count least, unsigned eighths) {
      return eighths == 0 ? least : std::max(least, everything() * eighths / 8);
    };
    return {between(minimum_.device, c_.device_eighths), between(minimum_.host, c_.host_eighths), 0};
  }

  outcome run(const tier_bytes& capacity) {
    engine_trainer t(model_, optimizer_of(c_), seed, options(capacity));
    const outcome result = train(t, model_.shape());
    const forebay::engine_report report = t.report();
    EXPECT_EQ(report.capacity.device, capacity.device);
    EXPECT_EQ(report.capacity.host, capacity.host);
    EXPECT_LE(report.peak.device, capacity.device);
    EXPECT_LE(report.peak.host, capacity.host);
    return result;
  }

 private:
  [[nodiscard]] forebay::engine_options options(const tier_bytes& capacity) {
    forebay::engine_options o;
    o.device = forebay::emulated_device({capacity.device, c_.link_rate, c_.link_rate});
    if (c_.delays) {
      o.device = std::make_unique<forebay::testing::delayed_device>(std::move(o.device));
      o.io.faults = &faults_;
    }
    o.host.capacity = capacity.host;
    for (std::size_t i = 0; i < c_.paths; ++i) {
      o.storage.push_back({folder_.path() / std::to_string(i), 64_MiB, c_.storage_rate, c_.storage_rate});
    }
    o.io.kind = c_.io;
    o.chunk = c_.chunk;
    o.packed_block_bytes = 32_KiB;
    o.prefetch = c_.prefetch;
    o.recompute = c_.recompute;
    o.poison_freed_memory = true;
    return o;
  }

  configuration c_;
  model<float> model_;
  temporary_folder folder_;
  forebay::testing::io_faults faults_;
  tier_bytes minimum_;
};

bool available(backend_kind kind) {
  try {
    forebay::io::backend_options options;
    options.kind = kind;
    static_cast<void>(forebay::io::make_backend(options));
    return true;
  } catch (const forebay::unsupported_error&) {
    return false;
  }
}

class same_numbers : public testing::TestWithParam<configuration> {};

TEST_P(same_numbers, as_the_resident_run) {
  const configuration& c = GetParam();
  if (!available(c.io)) {
    GTEST_SKIP() << "io_uring is refused here";
  }
  engine_run run(c);
  EXPECT_EQ(run.run(run.capacity()), train_resident(c));
}

configuration with(configuration c, void (*change)(configuration&)) {
  change(c);
  return c;
}

std::vector<configuration> chosen() {
  std::vector<configuration> all;
  for (const unsigned device : {0U, 1U, 3U, 8U}) {
    for (const unsigned host : {0U, 1U, 3U, 8U}) {
      configuration c;
      c.device_eighths = device;
      c.host_eighths = host;
      c.micro_batches = device == 1 ? 4 : 1;
      c.clip = host == 1 ? 0.02F : 0.0F;
      all.push_back(c);
    }
  }
  const configuration base;
  all.push_back(with(base, [](configuration& c) { c.paths = 3; }));
  for (const unsigned eighths : {0U, 1U}) {
    configuration c;
    c.recompute = forebay::recompute_policy::all;
    c.device_eighths = c.host_eighths = eighths;
    c.micro_batches = 1 + 2 * eighths;
    all.push_back(c);
  }
  all.push_back(with(base, [](configuration& c) { c.recompute = forebay::recompute_policy::none; }));
  all.push_back(with(base, [](configuration& c) { c.io = backend_kind::uring; }));
  all.push_back(with(base, [](configuration& c) { c.io = backend_kind::threads; }));
  all.push_back(with(base, [](configuration& c) { c.prefetch = false; }));
  all.push_back(with(base, [](configuration& c) { c.chunk = 4_KiB; }));
  all.push_back(with(base, [](configuration& c) { c.chunk = 1_MiB; }));
  for (const unsigned threads : {1U, 2U, 3U, 7U}) {
    configuration c;
    c.update_threads = threads;
    c.clip = 0.02F;
    all.push_back(c);
  }
  all.push_back(with(base, [](configuration& c) { c.link_rate = 100_MiB; }));
  all.push_back(with(base, [](configuration& c) { c.storage_rate = 50_MiB; }));
  for (const unsigned eighths : {0U, 2U}) {
    configuration c;
    c.delays = true;
    c.device_eighths = eighths;
    c.host_eighths = eighths;
    c.paths = 1 + eighths;
    c.chunk = 64_KiB;
    all.push_back(c);
  }
  return all;
}

/// Any combination of all of it, drawn from a fixed seed.
std::vector<configuration> drawn() {
  std::vector<configuration> all;
  for (std::uint64_t i = 0; i < 24; ++i) {
    const auto draw = [&](std::uint64_t what, std::uint64_t n) { return random_below(1000 + i, what, n); };
    configuration c;
    c.micro_batches = draw(0, 2) == 0 ? 1 : 4;
    c.clip = draw(1, 2) == 0 ? 0.0F : 0.02F;
    c.device_eighths = static_cast<unsigned>(draw(2, 9));
    c.host_eighths = static_cast<unsigned>(draw(3, 9));
    c.paths = draw(4, 2) == 0 ? 1 : 3;
    c.io = draw(5, 2) == 0 ? backend_kind::automatic : backend_kind::threads;
    c.update_threads = static_cast<unsigned>(1 + draw(6, 4));
    c.link_rate = draw(7, 4) == 0 ? 200_MiB : 0;
    c.storage_rate = draw(8, 4) == 0 ? 200_MiB : 0;
    c.prefetch = draw(9, 5) != 0;
    c.chunk = 4_KiB << (2 * draw(10, 4));
    all.push_back(c);
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(chosen, same_numbers, testing::ValuesIn(chosen()));
INSTANTIATE_TEST_SUITE_P(drawn, same_numbers, testing::ValuesIn(drawn()));

/// The sweep would say nothing if clipping, micro-batches and steps did not matter.
TEST(same_numbers, differ_where_the_mathematics_differs) {
  const outcome plain = train_resident({});
  const outcome clipped = train_resident(with({}, [](configuration& c) { c.clip = 0.02F; }));
  EXPECT_EQ(plain.losses[0], clipped.losses[0]);
  EXPECT_NE(plain.digest, clipped.digest);
  EXPECT_NE(plain.digest, train_resident(with({}, [](configuration& c) { c.micro_batches = 4; })).digest);
  EXPECT_NE(plain.losses[0], plain.losses[1]);
}

TEST(engine_trainer, at_the_minimum_moves_data_through_every_link) {
  configuration c;
  c.device_eighths = 0;
  c.host_eighths = 0;
  engine_run run(c);
  EXPECT_LT(run.capacity().device, run.everything() / 2) << "nothing would have to move";
  EXPECT_EQ(run.run(run.capacity()), train_resident(c));
}

TEST(engine_trainer, refuses_one_byte_less_than_the_minimum) {
  engine_run run({});
  const tier_bytes least = run.minimum();
  const auto with_less = [&](byte_count device, byte_count host) { run.run({device, host, 0}); };
  const auto names_step = HasSubstr("step '");
  const auto needs = [](byte_count bytes) { return HasSubstr(std::to_string(bytes) + " B"); };
  EXPECT_NO_THROW(with_less(least.device, least.host));
  EXPECT_THAT([&] { with_less(least.device - 1, least.host); },
              ThrowsMessage<forebay::capacity_error>(
                  AllOf(HasSubstr("device"), names_step, needs(least.device), needs(least.device - 1))));
  EXPECT_THAT([&] { with_less(least.device, least.host - 1); },
              ThrowsMessage<forebay::capacity_error>(
                  AllOf(HasSubstr("host"), names_step, needs(least.host), needs(least.host - 1))));
}

}  // namespace
}  // namespace train_gpt
