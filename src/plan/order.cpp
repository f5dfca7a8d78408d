#include <forebay/plan/order.hpp>

#include <algorithm>

#include <fmt/format.h>

#include <forebay/base/error.hpp>

namespace forebay {
namespace {

std::vector<access> unite(std::string_view step_name, const std::vector<access>& accesses) {
  std::vector<access> united;
  for (const access& a : accesses) {
    if (!a.tensor.valid()) {
      throw usage_error(fmt::format("step '{}' accesses an invalid tensor id", step_name));
    }
    const auto same = std::find_if(united.begin(), united.end(), [&](const access& u) { return u.tensor == a.tensor; });
    if (same == united.end()) {
      united.push_back(a);
    } else {
      same->how = same->how | a.how;
    }
  }
  for (const access& a : united) {
    if (has(a.how, uses::create) && (has(a.how, uses::read) || has(a.how, uses::write))) {
      throw usage_error(fmt::format("step '{}' both creates and reads tensor {}: created contents are undefined before",
                                    step_name, a.tensor.index));
    }
  }
  return united;
}

void mix(std::uint64_t& hash, std::uint64_t value) {
  // FNV-1a over the value's bytes: fixed on every machine, which std::hash is not.
  for (int shift = 0; shift < 64; shift += 8) {
    hash = (hash ^ ((value >> shift) & 0xffU)) * 0x100000001b3ULL;
  }
}

}  // namespace

step_id order::step(std::string_view name, std::vector<access> accesses, step_options options) {
  steps_.push_back({std::string(name), unite(name, accesses), std::move(options)});
  return {static_cast<std::uint32_t>(steps_.size() - 1), 0};
}

std::uint64_t order::hash() const noexcept {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const order_step& s : steps_) {
    mix(hash, s.accesses.size());
    mix(hash, static_cast<std::uint64_t>(s.options.where));
    mix(hash, s.options.workspace);
    for (const access& a : s.accesses) {
      mix(hash, (std::uint64_t{a.tensor.generation} << 32U) | a.tensor.index);
      mix(hash, static_cast<std::uint64_t>(a.how));
    }
  }
  return hash;
}

}  // namespace forebay
