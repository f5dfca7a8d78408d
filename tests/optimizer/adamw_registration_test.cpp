// What an optimizer registers, refuses and appends to an order.

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <forebay/base/error.hpp>
#include <forebay/device/emulated_device.hpp>
#include <forebay/engine/engine.hpp>
#include <forebay/optimizer/adamw.hpp>
#include <forebay/optimizer/detail/subgroup.hpp>

namespace forebay {
namespace {

std::unique_ptr<engine> small_engine() {
  engine_options o;
  o.device = emulated_device({.capacity = 1_MiB});
  o.host.capacity = 4_MiB;
  return std::make_unique<engine>(std::move(o));
}

tensor_id add(engine& e, const std::string& name, std::vector<std::uint64_t> shape, dtype type = dtype::f32) {
  return e.add({name, type, std::move(shape), role::parameter});
}

template <typename Action>
std::string usage_error_of(const Action& action) {
  try {
    action();
  } catch (const usage_error& e) {
    return e.what();
  }
  return "no usage_error";
}

TEST(adamw_registration, moments_are_zero_tensors_of_the_same_shape) {
  const auto e = small_engine();
  const tensor_id p = add(*e, "w", {3, 5});
  const tensor_id g = add(*e, "w.grad", {3, 5});
  const adamw opt(*e, {{p, g}});
  for (const auto& [id, name] : {std::pair{opt.first_moment(p), "w.m"}, std::pair{opt.second_moment(p), "w.v"}}) {
    EXPECT_EQ(e->spec(id).name, name);
    EXPECT_EQ(e->spec(id).shape, (std::vector<std::uint64_t>{3, 5}));
    EXPECT_EQ(e->spec(id).type, dtype::f32);
    EXPECT_EQ(e->spec(id).role, role::optimizer_state);
    std::vector<float> contents(15, 1.0F);
    e->read<float>(id, std::span(contents));
    EXPECT_EQ(contents, std::vector<float>(15, 0.0F));
  }
  EXPECT_EQ(opt.step(), 0U);
  EXPECT_THROW(static_cast<void>(opt.first_moment(g)), usage_error);
}

TEST(adamw_registration, refuses_what_it_cannot_update_and_changes_nothing) {
  const auto e = small_engine();
  const tensor_id a = add(*e, "a", {8});
  const tensor_id ga = add(*e, "ga", {8});
  const tensor_id half = add(*e, "half", {8}, dtype::bf16);
  const tensor_id flat = add(*e, "flat", {2, 4});
  add(*e, "taken", {8});
  const tensor_id owner_of_taken = add(*e, "t", {8});
  add(*e, "t.v", {8});
  const std::size_t before = e->tensors().size();
  const auto made = [&](std::vector<adamw_parameter> parameters) {
    return usage_error_of([&] { adamw(*e, parameters); });
  };
  EXPECT_NE(made({{half, ga}}).find("'half' is BF16"), std::string::npos);
  EXPECT_NE(made({{a, half}}).find("'half' is BF16"), std::string::npos);
  EXPECT_NE(made({{flat, ga}}).find("[2, 4]"), std::string::npos);
  EXPECT_NE(made({{a, ga}, {a, ga}}).find("'a' was given twice"), std::string::npos);
  EXPECT_NE(made({{a, a}}).find("'a' was given twice"), std::string::npos);
  EXPECT_NE(made({{a, ga}, {owner_of_taken, flat}}).find("shape"), std::string::npos);
  EXPECT_NE(made({{owner_of_taken, ga}}).find("'t.v'"), std::string::npos);
  EXPECT_EQ(e->tensors().size(), before);
}

TEST(adamw_registration, refuses_options_out_of_range_by_name) {
  const auto e = small_engine();
  const tensor_id p = add(*e, "w", {4});
  const tensor_id g = add(*e, "g", {4});
  const auto said = [&](const adamw_options& o) { return usage_error_of([&] { adamw(*e, {{p, g}}, o); }); };
  EXPECT_NE(said({.lr = -1.0F}).find("lr is -1"), std::string::npos);
  EXPECT_NE(said({.beta1 = 1.0F}).find("beta1"), std::string::npos);
  EXPECT_NE(said({.beta2 = -0.1F}).find("beta2"), std::string::npos);
  EXPECT_NE(said({.eps = -1e-8F}).find("eps"), std::string::npos);
  EXPECT_NE(said({.weight_decay = -0.1F}).find("weight_decay"), std::string::npos);
  EXPECT_NE(said({.clip_norm = -2.0F}).find("clip_norm"), std::string::npos);
  EXPECT_EQ(e->tensors().size(), 2U);
}

TEST(adamw_registration, appends_norms_forwards_and_updates_backwards) {
  const auto e = small_engine();
  std::vector<adamw_parameter> parameters;
  for (int k = 0; k < 3; ++k) {
    parameters.push_back({add(*e, "p" + std::to_string(k), {1024}), add(*e, "g" + std::to_string(k), {1024})});
  }
  adamw opt(*e, parameters, {.subgroup_bytes = 32_KiB, .where = adamw_options::location::host});
  order steps;
  opt.append_to(steps);
  std::vector<std::string> names;
  for (const order_step& s : steps.steps()) {
    names.push_back(s.name);
    EXPECT_EQ(s.options.where, place::host);
    EXPECT_EQ(s.options.phase, "update");
  }
  EXPECT_EQ(names, (std::vector<std::string>{"norm 0", "norm 1", "update 1", "update 0"}));
  const std::vector<access>& update = steps.steps().back().accesses;
  ASSERT_EQ(update.size(), 8U);
  for (const access& a : update) {
    const bool gradient = a.tensor == parameters[0].gradient || a.tensor == parameters[1].gradient;
    EXPECT_EQ(has(a.how, uses::free), gradient);
    EXPECT_EQ(has(a.how, uses::read), gradient);
    EXPECT_EQ(has(a.how, uses::write), !gradient);
  }
}

TEST(subgroups, are_contiguous_runs_up_to_the_limit) {
  const std::vector<byte_count> bytes{10, 20, 30, 100, 5, 5, 90, 1};
  std::vector<detail::adamw_entry> entries(bytes.size());
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    entries[i].bytes = bytes[i];
  }
  std::vector<std::size_t> counts;
  std::size_t next = 0;
  for (const detail::subgroup& g : detail::make_subgroups(entries, {.limit = 60})) {
    EXPECT_EQ(g.first, next);
    next += g.count;
    counts.push_back(g.count);
  }
  EXPECT_EQ(counts, (std::vector<std::size_t>{3, 1, 2, 1, 1}));
}

TEST(subgroups, of_the_device_are_spread_evenly) {
  for (const auto& [share, device] :
       std::vector<std::pair<double, std::size_t>>{{0.0, 0}, {0.3, 3}, {0.5, 5}, {1.0, 10}}) {
    std::vector<detail::adamw_entry> sized(10);
    for (detail::adamw_entry& e : sized) {
      e.bytes = 100;
    }
    std::size_t on_device = 0;
    std::size_t seen = 0;
    for (const detail::subgroup& g : detail::make_subgroups(sized, {.limit = 100, .device_share = share})) {
      on_device += g.where == place::device ? 1 : 0;
      EXPECT_EQ(g.update.options.where, g.where);
      ++seen;
      EXPECT_LE(std::abs(static_cast<double>(on_device) - share * static_cast<double>(seen)), 1.0);
    }
    EXPECT_EQ(seen, sized.size());
    EXPECT_EQ(on_device, device) << share;
  }
}

}  // namespace
}  // namespace forebay
