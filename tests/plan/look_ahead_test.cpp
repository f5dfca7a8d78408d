// The fixed rule: its schedules run, and move what the rule says, which can be counted.
#include <gtest/gtest.h>

#include <forebay/base/error.hpp>
#include <forebay/plan/bound.hpp>
#include <forebay/plan/look_ahead.hpp>
#include <forebay/plan/verify.hpp>

namespace forebay::plan {
namespace {

constexpr byte_count size = 1_MiB;

// Per layer a parameter and an optimizer state; forward and backward read the parameter, an update on the host writes
// both. The gradient lives from the backward step to the update.
trace layered(std::uint32_t layers) {
  trace t;
  t.item_bytes.assign(3 * layers, size);
  const auto add = [&](place where, std::vector<item_access> accesses) {
    t.steps.push_back({where, 0.001, 0, where == place::host ? "update" : "compute", std::move(accesses)});
  };
  for (std::uint32_t i = 0; i < layers; ++i) {
    add(place::device, {{3 * i, uses::read}});
  }
  for (std::uint32_t i = layers; i-- > 0;) {
    add(place::device, {{3 * i, uses::read}, {3 * i + 2, uses::create}});
  }
  for (std::uint32_t i = 0; i < layers; ++i) {
    add(place::host, {{3 * i, uses::read | uses::write},
                      {3 * i + 1, uses::read | uses::write},
                      {3 * i + 2, uses::read | uses::free}});
  }
  return t;
}

machine with(byte_count device, byte_count host) {
  machine m;
  m.device_capacity = device;
  m.host_capacity = host;
  m.h2d_rate = m.d2h_rate = 1e9;
  m.storage = {{5e8, 5e8}};
  return m;
}

TEST(look_ahead, streams_what_persists_through_storage_whatever_room_there_is) {
  constexpr std::uint32_t layers = 24;
  const trace t = layered(layers);
  const machine m = with(16 * size, 1000 * size);  // the host would hold everything
  const planned p = streamed_look_ahead(t, m);
  EXPECT_FALSE(verify(t, m, p.steady));
  // Parameters are read for forward and update, and for backward but that of the last layer, whose two uses follow each
  // other: those of the layer before are three steps apart. States are read once. Both are written back by the update.
  EXPECT_EQ(p.predicted.moved.storage_read, (layers + (layers - 1) + layers + layers) * size);
  EXPECT_EQ(p.predicted.moved.storage_written, 2 * layers * size);
  EXPECT_EQ(p.predicted.moved.h2d, (layers + layers - 1) * size);
  EXPECT_EQ(p.predicted.moved.d2h, layers * size);  // gradients, which then stay in the host's memory
}

TEST(look_ahead, is_never_better_than_the_bound_nor_needs_more_memory_than_there_is) {
  const trace t = layered(10);
  for (const byte_count host : {8 * size, 12 * size, 30 * size, 100 * size}) {
    for (const byte_count device : {2 * size, 3 * size, 8 * size}) {
      const machine m = with(device, host);
      const planned p = streamed_look_ahead(t, m);
      EXPECT_FALSE(verify(t, m, p.steady)) << host << ' ' << device;
      EXPECT_GE(p.predicted.period, find_bound(t, m).seconds) << host << ' ' << device;
    }
  }
}

TEST(look_ahead, brings_no_more_ahead_than_it_is_told) {
  const trace t = layered(16);
  const machine m = with(64 * size, 64 * size);
  double before = 1e9;
  for (const std::uint32_t ahead : {0U, 1U, 2U, 4U}) {
    const planned p = streamed_look_ahead(t, m, ahead);
    EXPECT_LE(p.predicted.period, before) << ahead;
    before = p.predicted.period;
  }
  // Nothing is brought ahead: each forward step waits for its parameter, which is read and then copied.
  const planned alone = streamed_look_ahead(t, m, 0);
  EXPECT_GE(alone.predicted.period, 2 * 16 * (0.001 + size / 5e8 + size / 1e9) * (1 - 1e-9));
}

TEST(look_ahead, refuses_what_does_not_fit) {
  EXPECT_THROW(static_cast<void>(streamed_look_ahead(layered(4), with(2 * size - 1, 100 * size))), capacity_error);
}

}  // namespace
}  // namespace forebay::plan
