#include "generated.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <forebay/plan/minimum_capacity.hpp>

namespace forebay::bench {
namespace {

using plan::instance;
using plan::item_index;

constexpr uses rw = uses::read | uses::write;
constexpr uses rf = uses::read | uses::free;

/// Draws are made from the generator's bits, so that they are the same with every library.
class draws {
 public:
  explicit draws(std::uint32_t seed) : random_(seed) {}

  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(random_() % n); }
  double between(double least, double most) { return least + (most - least) * below(1U << 20) / ((1U << 20) - 1.0); }
  bool chance(double p) { return between(0.0, 1.0) < p; }

 private:
  std::mt19937 random_;
};

/// Sizes in units, as in the files.
class builder {
 public:
  item_index item(double units) {
    i_.trace.item_bytes.push_back(static_cast<byte_count>(units * plan::instance_unit + 0.5));
    return static_cast<item_index>(i_.trace.item_bytes.size() - 1);
  }
  std::uint32_t step(const char* phase, place where, double seconds, std::vector<plan::item_access> accesses) {
    i_.trace.steps.push_back({where, seconds, 0, phase, std::move(accesses)});
    return static_cast<std::uint32_t>(i_.trace.steps.size() - 1);
  }
  void access(std::uint32_t step, item_index item, uses how) {
    auto& all = i_.trace.steps[step].accesses;
    const auto same = [item](const plan::item_access& a) { return a.item == item; };
    if (std::none_of(all.begin(), all.end(), same)) {
      all.push_back({item, how});
    }
  }
  /// Shares of all items' bytes, and as much as the steps need at least; a host share of zero: no storage.
  void capacities(double device_share, double host_share) {
    const plan::capacity_needs needs = plan::minimum_capacity(i_.trace, 0);
    const byte_count largest = *std::max_element(i_.trace.item_bytes.begin(), i_.trace.item_bytes.end());
    const auto share = [&](double s) { return static_cast<byte_count>(s * static_cast<double>(needs.home)); };
    i_.machine.device_capacity = std::max(share(device_share), needs.device.bytes + largest);
    i_.machine.host_capacity =
        host_share > 0.0 ? std::max(share(host_share), needs.host.bytes + 2 * largest) : 2 * needs.home;
  }
  void rates(double link, double read, double write, bool half_duplex = false) {
    i_.machine.h2d_rate = i_.machine.d2h_rate = link * plan::instance_unit;
    if (read > 0.0) {
      i_.machine.storage = {{read * plan::instance_unit, write * plan::instance_unit}};
    }
    i_.machine.half_duplex_storage = half_duplex;
  }
  void slow_d2h(double factor) { i_.machine.d2h_rate *= factor; }
  instance done(std::string name) {
    i_.name = std::move(name);
    return std::move(i_);
  }

 private:
  instance i_;
};

// --- transformers

struct block {
  item_index parameters = 0;
  item_index gradient = 0;
  item_index activations = 0;
  std::vector<item_index> moments;
  double forward = 0.0;
};

/// Attention and MLP blocks in turn, or whole layers where the model is larger.
std::vector<block> make_blocks(builder& b, draws& d, std::uint32_t count) {
  const double unit = d.between(0.05, 0.4);  // of parameters
  const double activity = d.between(2.0, 8.0);
  const std::uint32_t states = 1 + d.below(4);
  std::vector<block> blocks;
  for (std::uint32_t k = 0; k < count; ++k) {
    const double size = unit * (k % 2 == 0 ? 1.0 : 2.0);
    block made;
    made.parameters = b.item(size);
    made.gradient = b.item(size);
    made.activations = b.item(unit * activity * (k % 2 == 0 ? 0.8 : 1.1));
    for (std::uint32_t s = 0; s < states; ++s) {
      made.moments.push_back(b.item(6.0 * size / states));
    }
    made.forward = 0.1 * size * activity * d.between(0.9, 1.1) / 4.0;
    blocks.push_back(std::move(made));
  }
  return blocks;
}

void add_update(builder& b, const block& k, place where) {
  const double seconds = 0.2 * static_cast<double>(where == place::host) + 0.005;
  for (std::size_t s = 0; s < k.moments.size(); ++s) {
    const bool last = s + 1 == k.moments.size();
    const std::uint32_t step = b.step("update", where, seconds * k.forward, {{k.moments[s], rw}});
    b.access(step, k.gradient, last ? rf : uses::read);
    if (last) {
      b.access(step, k.parameters, uses::create);
    }
  }
}

instance transformer_like(draws& d, std::uint32_t seed) {
  builder b;
  const std::uint32_t count = 16 + 2 * d.below(24);
  const std::vector<block> blocks = make_blocks(b, d, count);
  std::vector<item_index> between;  // what one block hands to the next
  for (std::uint32_t k = 0; k <= count; ++k) {
    between.push_back(b.item(0.05));
  }
  for (std::uint32_t k = 0; k < count; ++k) {
    const std::uint32_t s = b.step("forward", place::device, blocks[k].forward,
                                   {{blocks[k].parameters, uses::read}, {blocks[k].activations, uses::create}});
    b.access(s, between[k], k == 0 ? uses::create : uses::read);
    b.access(s, between[k + 1], uses::create);
  }
  const place update = d.chance(0.7) ? place::host : place::device;
  for (std::uint32_t k = count; k-- > 0;) {
    const std::uint32_t s =
        b.step("backward", place::device, 2.0 * blocks[k].forward,
               {{blocks[k].parameters, uses::read}, {blocks[k].activations, rf}, {blocks[k].gradient, uses::create}});
    b.access(s, between[k + 1], rf);
    if (k == 0) {
      b.access(s, between[0], rf);
    }
    add_update(b, blocks[k], update);
  }
  b.capacities(d.between(0.05, 0.5), d.between(0.25, 1.1));
  const double link = d.between(5.0, 50.0);
  b.rates(link, link * d.between(0.1, 0.5), link * d.between(0.08, 0.35), d.chance(0.3));
  return b.done(
      fmt::format("gpt {}: {} blocks, update on the {}", seed, count, update == place::host ? "host" : "device"));
}

// --- any steps

constexpr std::uint32_t persistent = 40;
constexpr std::uint32_t transient = 24;
constexpr std::uint32_t steps = 80;

void add_transient(builder& b, draws& d) {
  const item_index item = b.item(d.between(0.2, 3.0));
  const std::uint32_t made = d.below(steps - 1);
  const std::uint32_t freed = made + 1 + d.below(std::min(30U, steps - 1 - made));
  b.access(made, item, uses::create);
  for (std::uint32_t s = made + 1; s < freed; ++s) {
    if (d.chance(0.05)) {
      b.access(s, item, uses::read);
    }
  }
  b.access(freed, item, rf);
}

/// Kind 0 only reads; 1 writes and creates; 2 has host steps and storage as well; 3 a drive that is half duplex.
instance any_steps(draws& d, std::uint32_t seed) {
  builder b;
  const std::uint32_t kind = d.below(4);
  for (std::uint32_t k = 0; k < persistent; ++k) {
    b.item(d.chance(0.5) ? d.between(0.2, 1.2) : d.between(1.0, 4.5));
  }
  for (std::uint32_t s = 0; s < steps; ++s) {
    const place where = kind >= 2 && d.chance(0.2) ? place::host : place::device;
    b.step("", where, d.between(0.3, 2.0), {});
    const std::uint32_t more = d.below(3);
    for (std::uint32_t a = 0; a <= more; ++a) {
      b.access(s, a == 0 ? s * 7 % persistent : d.below(persistent), kind > 0 && d.chance(0.3) ? rw : uses::read);
    }
  }
  for (std::uint32_t k = 0; kind > 0 && k < transient; ++k) {
    add_transient(b, d);
  }
  b.capacities(d.between(0.15, 0.45), kind >= 2 ? d.between(0.33, 0.6) : 0.0);
  const double link = d.between(0.5, 3.5);
  b.rates(link, kind >= 2 ? link * 0.47 : 0.0, link * 0.33, kind == 3);
  return b.done(fmt::format("random {}: kind {}", seed, kind));
}

// --- what simple rules are bad at

/// So many items, each used once by a step of its own, in turn.
void add_sweep(builder& b, std::uint32_t count, double size, double seconds, double dirty, draws& d) {
  for (std::uint32_t k = 0; k < count; ++k) {
    b.step("", place::device, seconds, {{b.item(size), d.chance(dirty) ? rw : uses::read}});
  }
}

void add_burst(builder& b, draws& d, std::uint32_t count) {
  for (std::uint32_t k = 0; k < count; ++k) {
    b.step("", place::device, k == 0 ? d.between(4.0, 20.0) : 0.1, {{b.item(1.0), uses::read}});
  }
}

void add_mixed_sizes(builder& b, draws& d, std::uint32_t count) {
  for (std::uint32_t k = 0; k < count; ++k) {
    b.step("", place::device, 0.5, {{b.item(d.chance(0.2) ? 5.0 : 0.25), uses::read}});
  }
}

void add_activations(builder& b, draws& d, std::uint32_t count) {
  std::vector<item_index> made;
  for (std::uint32_t k = 0; k < count; ++k) {
    made.push_back(b.item(d.between(1.0, 3.0)));
    b.step("forward", place::device, 1.0, {{made.back(), uses::create}});
  }
  for (std::uint32_t k = count; k-- > 0;) {
    b.step("backward", place::device, 2.0, {{made[k], rf}});
  }
}

void add_accumulation(builder& b, draws& d, std::uint32_t count) {
  std::vector<item_index> layers;
  for (std::uint32_t k = 0; k < count; ++k) {
    layers.push_back(b.item(1.0));
  }
  for (std::uint32_t round = 2 + d.below(3); round > 0; --round) {
    for (std::uint32_t k = 0; k < count; ++k) {
      b.step("forward", place::device, 0.5, {{layers[k], uses::read}});
    }
    for (std::uint32_t k = count; k-- > 0;) {
      b.step("backward", place::device, 1.0, {{layers[k], rw}});
    }
  }
}

/// A host that holds a part of what its updates sweep through.
void add_host_optimizer(builder& b, draws& d, std::uint32_t count) {
  std::vector<item_index> weights;
  for (std::uint32_t k = 0; k < count; ++k) {
    weights.push_back(b.item(0.25));
    b.step("forward", place::device, d.between(0.1, 0.6), {{weights.back(), uses::read}});
  }
  for (std::uint32_t k = count; k-- > 0;) {
    b.step("update", place::host, 0.1, {{weights[k], rw}, {b.item(1.75), rw}});
  }
}

instance hard_for_rules(draws& d, std::uint32_t seed) {
  builder b;
  const std::uint32_t kind = d.below(6);
  const std::uint32_t count = 20 + d.below(30);
  switch (kind) {
    case 0:
      add_sweep(b, count, 1.0, d.between(0.1, 1.2), d.chance(0.5) ? 0.5 : 0.0, d);
      break;
    case 1:
      add_burst(b, d, count);
      break;
    case 2:
      add_mixed_sizes(b, d, count);
      break;
    case 3:
      add_activations(b, d, count);
      break;
    case 4:
      add_accumulation(b, d, count);
      break;
    default:
      add_host_optimizer(b, d, count);
  }
  b.capacities(d.between(0.1, 0.95), kind == 5 ? d.between(0.4, 0.9) : 0.0);
  b.rates(kind == 5 ? 2.0 : 1.0, kind == 5 ? d.between(0.8, 2.0) : 0.0, d.between(0.6, 1.5));
  b.slow_d2h(d.chance(0.3) ? 0.5 : 1.0);
  return b.done(fmt::format("adversarial {}: kind {}, {} items", seed, kind, count));
}

}  // namespace

plan::instance generate(const std::string& kind, std::uint32_t seed) {
  draws d(seed);
  if (kind == "gpt") {
    return transformer_like(d, seed);
  }
  return kind == "random" ? any_steps(d, seed) : hard_for_rules(d, seed);
}

}  // namespace forebay::bench
