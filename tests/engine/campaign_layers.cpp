#include "campaign_layers.hpp"

#include <array>
#include <string>

namespace forebay::campaign {
namespace {

constexpr std::array<byte_count, 6> weight_bytes{40'003, 1, 65'536, 16'385, 100'003, 511};
constexpr std::array<byte_count, 6> moment_bytes{33'333, 4097, 16'384, 70'001, 3, 52'001};
constexpr std::array<byte_count, 6> activation_bytes{20'001, 49'999, 16'383, 4096, 30'011, 777};
constexpr std::size_t layer_count = weight_bytes.size();

/// FNV-1a.
std::uint64_t hash_of(std::span<const std::uint8_t> data, std::uint64_t h) {
  for (const std::uint8_t byte : data) {
    h = (h ^ byte) * 0x100000001b3U;
  }
  return h;
}

void fill(std::span<std::uint8_t> data, std::uint64_t seed) {
  for (std::uint8_t& byte : data) {
    seed = seed * 6364136223846793005U + 1442695040888963407U;
    byte = static_cast<std::uint8_t>(seed >> 56U);
  }
}

/// A step: a hash of all that it needs, and changes that depend on it. The same for the engine and for plain vectors.
std::uint64_t compute(const std::vector<access>& accesses, const std::vector<std::span<std::uint8_t>>& views,
                      std::uint64_t seed) {
  std::uint64_t h = seed * 0x9E3779B97F4A7C15U + 1;
  for (std::size_t i = 0; i < accesses.size(); ++i) {
    h = needs_contents(accesses[i].how) ? hash_of(views[i], h) : h;
  }
  for (std::size_t i = 0; i < accesses.size(); ++i) {
    if (has(accesses[i].how, uses::create)) {
      fill(views[i], h + i);
    } else if (has(accesses[i].how, uses::write)) {
      for (std::size_t k = 0; k < views[i].size(); k += 5) {
        views[i][k] = static_cast<std::uint8_t>(views[i][k] + h + k);
      }
    }
  }
  return h;
}

std::uint64_t seed_of(std::uint64_t iteration, std::size_t step) { return iteration * 1000 + step; }
bool is_activation(std::size_t tensor) { return tensor >= 2 * layer_count; }

byte_count bytes_of(std::size_t tensor) {
  const std::size_t layer = tensor % layer_count;
  return tensor < layer_count     ? weight_bytes.at(layer)
         : !is_activation(tensor) ? moment_bytes.at(layer)
                                  : activation_bytes.at(layer);
}

/// The same program on plain vectors.
struct reference {
  std::vector<byte_vector> contents;
  std::vector<std::uint64_t> seen;
};

reference make_reference(const std::vector<order_step>& steps) {
  reference r;
  for (std::size_t t = 0; t < 3 * layer_count; ++t) {
    r.contents.emplace_back(bytes_of(t));
    fill(r.contents.back(), t);
  }
  for (std::uint64_t n = 0; n < layers::iterations; ++n) {
    for (std::size_t s = 0; s < steps.size(); ++s) {
      std::vector<std::span<std::uint8_t>> views;
      for (const access& a : steps[s].accesses) {
        views.emplace_back(r.contents[a.tensor.index]);
      }
      r.seen.push_back(compute(steps[s].accesses, views, seed_of(n, s)));
    }
  }
  return r;
}

}  // namespace

byte_count layers::bytes() {
  byte_count all = 0;
  for (std::size_t t = 0; t < 3 * layer_count; ++t) {
    all += bytes_of(t);
  }
  return all;
}

order layers::declare(engine& e) {
  static constexpr std::array<const char*, 3> kinds{"weight", "moment", "output"};
  static constexpr std::array<role, 3> roles{role::parameter, role::optimizer_state, role::activation};
  ids_.clear();
  for (std::size_t t = 0; t < 3 * layer_count; ++t) {
    const std::size_t kind = t / layer_count;
    const std::string name = "layer" + std::to_string(t % layer_count) + "." + kinds.at(kind);
    ids_.push_back(e.add({name, dtype::u8, {bytes_of(t)}, roles.at(kind)}));
  }
  const auto weight = [&](std::size_t i) { return ids_[i]; };
  const auto moment = [&](std::size_t i) { return ids_[layer_count + i]; };
  const auto output = [&](std::size_t i) { return ids_[2 * layer_count + i]; };
  order o;
  for (std::size_t i = 0; i < layer_count; ++i) {
    std::vector<access> accesses{reads(weight(i)), creates(output(i))};
    if (i > 0) {
      accesses.push_back(reads(output(i - 1)));
    }
    o.step("forward" + std::to_string(i), accesses, {.workspace = i == 2 ? byte_count{5000} : 0});
  }
  for (std::size_t i = layer_count; i-- > 0;) {
    o.step("backward" + std::to_string(i), {reads(output(i)), frees(output(i)), writes(weight(i))});
    o.step("update" + std::to_string(i), {reads(weight(i)), writes(moment(i))},
           {.where = i % 2 == 0 ? place::host : place::device});
  }
  steps_ = o.steps();
  return o;
}

void layers::run(engine& e) {
  for (std::size_t t = 0; t < ids_.size(); ++t) {
    if (!is_activation(t)) {
      byte_vector first(bytes_of(t));
      fill(first, t);
      e.write<std::uint8_t>(ids_[t], first);
    }
  }
  seen_.assign(iterations * steps_.size(), 0);
  for (std::uint64_t n = 0; n < iterations; ++n) {
    iteration it = e.begin(n);
    iterating_ = true;
    for (std::size_t s = 0; s < steps_.size(); ++s) {
      const order_step& step = steps_[s];
      const bool on_device = step.options.where == place::device;
      const step_id id{static_cast<std::uint32_t>(s), 0};
      const lease l = on_device ? it.acquire(id, e.compute_stream()) : it.acquire(id);
      std::vector<std::span<std::uint8_t>> views;
      for (const access& a : step.accesses) {
        views.push_back(l.data<std::uint8_t>(a.tensor));
      }
      const auto work = [&step, views, seed = seed_of(n, s), out = &seen_[n * steps_.size() + s]] {
        *out = compute(step.accesses, views, seed);
      };
      if (on_device) {
        e.compute_stream().launch(work);
      } else {
        work();
      }
    }
    it.finish();
    iterating_ = false;
  }
}

std::string layers::difference(engine& e) const {
  static const reference expected = make_reference(steps_);  // ids differ from engine to engine, indices don't
  for (std::size_t k = 0; k < seen_.size(); ++k) {
    if (seen_[k] != expected.seen[k]) {
      return "step " + steps_[k % steps_.size()].name + " of iteration " + std::to_string(k / steps_.size()) +
             " saw other bytes than the plain program";
    }
  }
  for (std::size_t t = 0; t < ids_.size(); ++t) {
    byte_vector found(bytes_of(t));
    if (is_activation(t)) {
      continue;
    }
    e.read<std::uint8_t>(ids_[t], found);
    for (std::size_t k = 0; k < found.size(); ++k) {
      if (found[k] != expected.contents[t][k]) {
        return e.spec(ids_[t]).name + " differs from the plain program at byte " + std::to_string(k);
      }
    }
  }
  return {};
}

}  // namespace forebay::campaign
