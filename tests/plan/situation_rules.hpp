#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include <forebay/plan/machine.hpp>
#include <forebay/plan/schedule.hpp>
#include <forebay/plan/trace.hpp>

namespace forebay::plan::test {

inline constexpr std::size_t most_items = 7;
inline constexpr std::size_t engines = 8;  // device, host, h2d, d2h, and by path: read, write
inline constexpr std::uint8_t nobody = 255;

/// Bytes only, so that equal situations are equal byte by byte.
struct situation {
  std::array<std::uint8_t, 2> next{};  // of the engine's program
  std::int8_t lead = 0;                // iterations that the device's next step is ahead of the host's
  std::array<std::uint8_t, engines> runs{nobody, nobody, nobody, nobody, nobody, nobody, nobody, nobody};
  std::array<std::uint8_t, engines> left{};
  std::array<std::uint8_t, most_items> at{};    // copies that are there or being made by a step
  std::array<std::uint8_t, most_items> path{};  // of the storage copy
};
inline std::string_view bytes_of(const situation& s) { return {reinterpret_cast<const char*>(&s), sizeof s}; }
struct situation_hash {
  std::size_t operator()(const situation& s) const { return std::hash<std::string_view>()(bytes_of(s)); }
};
struct situation_equal {
  bool operator()(const situation& a, const situation& b) const { return bytes_of(a) == bytes_of(b); }
};

/// What runs of a trace can be at one instant, and what that says: the rules of plan::schedule about times, engines and
/// copies, written down once more.
class situation_rules {
 protected:
  using when = std::pair<int, std::uint32_t>;  // iteration and listed step

  situation_rules(const trace& t, const machine& m) : trace_(t), machine_(m) {
    byte_count all_bytes = 0;
    for (const byte_count bytes : t.item_bytes) {
      all_bytes += bytes;
    }
    // A host with room for everything has no use for storage.
    paths_ = m.host_capacity >= all_bytes ? 0 : static_cast<std::uint32_t>(m.storage.size());
    for (std::uint32_t s = 0; s < t.steps.size(); ++s) {
      program_[t.steps[s].where == place::device ? 0 : 1].push_back(s);
      uses_.push_back({});
      for (const item_access& a : t.steps[s].accesses) {
        uses_.back().at(a.item) = a.how;
      }
    }
    if (t.item_bytes.size() > most_items || paths_ > 2) {
      throw std::invalid_argument("too large for an exhaustive search");
    }
    while (!integral(ticks_)) {
      ++ticks_;
    }
  }

  // --- durations

  [[nodiscard]] double seconds(item_index i, std::size_t engine, bool write) const {
    const auto size = static_cast<double>(trace_.item_bytes[i]);
    if (engine < 4) {
      return size / (engine == 2 ? machine_.h2d_rate : machine_.d2h_rate);
    }
    const storage_link& path = machine_.storage[(engine - 4) / 2];
    return size / (write ? path.write_rate : path.read_rate);
  }
  [[nodiscard]] bool integral(std::uint32_t ticks) const {
    if (ticks > 60) {
      throw std::invalid_argument("durations have no common unit");
    }
    const auto whole = [ticks](double v) { return std::abs(v * ticks - std::round(v * ticks)) < 1e-9; };
    bool all = true;
    for (const trace_step& s : trace_.steps) {
      all = all && whole(s.seconds) && s.workspace == 0;
    }
    for (item_index i = 0; i < trace_.item_bytes.size(); ++i) {
      for (std::size_t e = 2; e < 4 + 2 * paths_; ++e) {
        all = all && whole(seconds(i, e, e % 2 == 1));
      }
    }
    return all;
  }
  [[nodiscard]] std::uint8_t ticks_of(double v) const {
    const double ticks = std::round(v * ticks_);
    if (ticks > 250.0) {
      throw std::invalid_argument("a duration is too long");
    }
    return static_cast<std::uint8_t>(ticks);
  }

  // --- what a situation says

  [[nodiscard]] static bool has_copy(const situation& s, item_index i, copies c) {
    return has(static_cast<copies>(s.at[i]), c);
  }
  [[nodiscard]] static copies tier_of(std::size_t engine) { return engine == 0 ? copies::device : copies::host; }
  [[nodiscard]] static bool changes(uses how) { return modifies(how) || has(how, uses::free); }
  [[nodiscard]] uses access_of(std::uint32_t step, item_index i) const { return uses_[step][i]; }
  [[nodiscard]] static int iteration(const situation& s, std::size_t engine) { return engine == 0 ? s.lead : 0; }
  /// The engine's k-th step: the first time that it has not started yet, or not ended.
  [[nodiscard]] when first(const situation& s, std::size_t engine, std::size_t k, bool unended) const {
    const int later = k < s.next[engine] ? 1 : 0;
    const bool running = unended && s.runs[engine] == program_[engine][k];
    return {iteration(s, engine) + later - (running ? 1 : 0), program_[engine][k]};
  }
  /// Nobody needs the item's contents any more: the next access to come creates it.
  [[nodiscard]] bool dead(const situation& s, item_index i) const {
    when least{1000, 0};
    uses how = uses::none;
    for (const std::size_t engine : {0U, 1U}) {
      for (std::size_t k = 0; k < program_[engine].size(); ++k) {
        const when w = first(s, engine, k, false);
        const uses u = access_of(program_[engine][k], i);
        if (u != uses::none && w < least) {
          least = w;
          how = u;
        }
      }
    }
    return has(how, uses::create);
  }
  /// A step or a transfer uses the copy.
  [[nodiscard]] bool pinned(const situation& s, item_index i, copies c) const {
    for (std::size_t e = 0; e < engines; ++e) {
      if (s.runs[e] == nobody) {
        continue;
      }
      const bool uses_it = e < 2 ? tier_of(e) == c && access_of(s.runs[e], i) != uses::none
                                 : s.runs[e] % 8 == i && source_of(over(s.runs[e], e)) == c;
      if (uses_it) {
        return true;
      }
    }
    return false;
  }
  /// A transfer's engine runs 8 x (is it a write, or d2h?) + item.
  [[nodiscard]] static link over(std::uint8_t runs, std::size_t engine) {
    if (engine < 4) {
      return engine == 2 ? link::h2d : link::d2h;
    }
    return runs >= 8 ? link::storage_write : link::storage_read;
  }
  [[nodiscard]] bool in_flight(const situation& s, item_index i) const {
    return std::any_of(s.runs.begin() + 2, s.runs.end(), [i](auto r) { return r != nobody && r % 8 == i; });
  }
  [[nodiscard]] bool being_changed(const situation& s, item_index i) const {
    return std::any_of(s.runs.begin(), s.runs.begin() + 2,
                       [&](auto r) { return r != nobody && changes(access_of(r, i)); });
  }
  [[nodiscard]] byte_count used(const situation& s, copies tier) const {
    byte_count all = 0;
    for (item_index i = 0; i < trace_.item_bytes.size(); ++i) {
      all += has_copy(s, i, tier) ? trace_.item_bytes[i] : 0;
    }
    for (std::size_t e = 2; e < engines; ++e) {
      const bool arrives = s.runs[e] != nobody && target_of(over(s.runs[e], e)) == tier;
      all += arrives ? trace_.item_bytes[s.runs[e] % 8] : 0;
    }
    return all;
  }
  [[nodiscard]] byte_count capacity(copies tier) const {
    return tier == copies::device ? machine_.device_capacity : machine_.host_capacity;
  }

  const trace& trace_;
  const machine& machine_;
  std::uint32_t paths_ = 0;
  std::uint32_t ticks_ = 1;  // per second
  std::array<std::vector<std::uint32_t>, 2> program_;
  std::vector<std::array<uses, most_items>> uses_;  // by step and item
};

}  // namespace forebay::plan::test
