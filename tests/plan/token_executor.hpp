#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <forebay/plan/machine.hpp>
#include <forebay/plan/schedule.hpp>
#include <forebay/plan/trace.hpp>

namespace forebay::plan::test {

/// Runs a schedule several times over as its contract says, many operations at once, which end in random order: engines
/// take operations in order, memory is granted in order in each tier, and an operation waits for those on the same
/// item that it depends on. Says what went wrong: an invalid copy, room that never comes, too much memory, another end
/// than the start.
class token_executor {
 public:
  token_executor(std::mt19937& random, const trace& t, const machine& m, const schedule& s, std::size_t rounds)
      : random_(random), trace_(t), machine_(m), schedule_(s), items_(t.item_bytes.size()) {
    for (std::size_t r = 0; r < rounds; ++r) {
      for (const operation& o : s.operations) {
        tasks_.push_back({o});
      }
    }
  }

  /// They end after so many seconds each, by operation, one round after the other, rather than in random order.
  void take(std::vector<double> seconds) { seconds_ = std::move(seconds); }
  /// By operation, one round after the other; after run() with durations.
  [[nodiscard]] const std::vector<double>& ends() const { return ends_; }

  /// Nothing when all is well.
  std::string run() {
    ends_.assign(tasks_.size(), 0.0);
    for (std::size_t i = 0; i < items_.size(); ++i) {
      items_[i].planned = items_[i].real = schedule_.at_start[i];
      items_[i].path = schedule_.stored_on[i];
      for (std::size_t tier = 0; tier < 2; ++tier) {
        used_[tier] += has(schedule_.at_start[i], tiers[tier]) ? trace_.item_bytes[i] : 0;
      }
    }
    if (used_[0] > capacity(0) || used_[1] > capacity(1)) {
      return "the start does not fit";
    }
    for (std::size_t k = 0; k < tasks_.size(); ++k) {
      link_up(k);
    }
    while (wrong_.empty() && ended_ < tasks_.size()) {
      while (start_some()) {
      }
      if (!wrong_.empty()) {
        break;
      }
      if (running_.empty()) {
        return ended_ < tasks_.size() ? "nothing runs and nothing can start" : end();
      }
      const std::size_t pick = next_end();
      now_ = ends_[running_[pick]];
      finish(running_[pick]);
      running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(pick));
    }
    return wrong_.empty() ? end() : wrong_;
  }

 private:
  static constexpr std::array<copies, 3> tiers{copies::device, copies::host, copies::storage};
  struct task {
    operation what;
    std::vector<std::size_t> after{};
    std::array<byte_count, 2> takes{};
    std::size_t engine = 0;
    bool granted = false;
    bool started = false;
    bool ended = false;
  };
  struct item_state {
    copies planned = copies::none;
    copies real = copies::none;
    std::uint32_t path = 0;
    std::array<std::vector<std::size_t>, 3> touches{};  // operations on the tier's copy since it was made
    std::array<std::vector<std::size_t>, 3> made{};     // by tier: the transfer that made its copy, if one did
    std::vector<std::size_t> all{};                     // since the last change
    std::size_t change = static_cast<std::size_t>(-1);
  };

  [[nodiscard]] byte_count capacity(std::size_t tier) const {
    return tier == 0 ? machine_.device_capacity : machine_.host_capacity;
  }
  static std::size_t number(copies tier) { return tier == copies::device ? 0 : (tier == copies::host ? 1 : 2); }
  [[nodiscard]] const trace_step& step_of(const task& t) const { return trace_.steps.at(t.what.index); }
  static copies tier_of(const trace_step& s) { return s.where == place::device ? copies::device : copies::host; }
  [[nodiscard]] std::size_t next_end() {
    if (seconds_.empty()) {
      return random_() % running_.size();
    }
    const auto sooner = [this](std::size_t a, std::size_t b) { return ends_[a] < ends_[b]; };
    return static_cast<std::size_t>(std::min_element(running_.begin(), running_.end(), sooner) - running_.begin());
  }
  static bool changes(const item_access& a) { return modifies(a.how) || has(a.how, uses::free); }
  static void append(std::vector<std::size_t>& to, const std::vector<std::size_t>& more) {
    to.insert(to.end(), more.begin(), more.end());
  }

  /// What the operation waits for and how much it takes.
  void link_up(std::size_t k) {
    task& t = tasks_[k];
    if (t.what.what == operation::kind::step) {
      link_step(k);
      return;
    }
    item_state& i = items_.at(t.what.index);
    if (i.change != static_cast<std::size_t>(-1)) {
      t.after.push_back(i.change);
    }
    i.all.push_back(k);
    if (t.what.what == operation::kind::drop) {
      t.engine = 0;
      auto& touched = i.touches.at(number(t.what.gone));
      append(t.after, touched);
      touched = {k};
      i.planned = without(i.planned, t.what.gone);
      return;
    }
    const std::size_t from = number(source_of(t.what.over));
    const std::size_t to = number(target_of(t.what.over));
    const bool stored = from == 2 || to == 2;
    const bool one_engine = stored && machine_.half_duplex_storage;
    t.engine =
        2 + (stored ? 2 + 2 * t.what.path + (to == 2 && !one_engine ? 1 : 0) : (t.what.over == link::h2d ? 0U : 1U));
    append(t.after, i.made[from]);  // others may read it meanwhile
    append(t.after, i.touches[to]);
    i.touches[from].push_back(k);
    i.touches[to] = i.made[to] = {k};
    i.planned = i.planned | tiers[to];
    if (to < 2) {
      t.takes[to] = trace_.item_bytes[t.what.index];
    }
  }

  void link_step(std::size_t k) {
    task& t = tasks_[k];
    const trace_step& s = step_of(t);
    const copies tier = tier_of(s);
    t.engine = s.where == place::device ? 0 : 1;
    t.takes[number(tier)] = workspace(s);
    for (const item_access& a : s.accesses) {
      item_state& i = items_[a.item];
      t.takes[number(tier)] += has(i.planned, tier) ? 0 : trace_.item_bytes[a.item];
      if (changes(a)) {
        append(t.after, i.all);
        i.all.clear();
        i.touches = i.made = {};
        i.change = k;
        i.planned = has(a.how, uses::free) ? copies::none : tier;
      } else if (i.change != static_cast<std::size_t>(-1)) {
        t.after.push_back(i.change);
      }
      append(t.after, i.made[number(tier)]);
      i.touches[number(tier)].push_back(k);
      i.all.push_back(k);
    }
  }
  static byte_count workspace(const trace_step& s) { return (s.workspace + 4095) / 4096 * 4096; }

  bool start_some() {
    bool any = false;
    std::array<bool, 2> queue{true, true};  // is the ticket of the tier still at the head?
    std::vector<bool> engine(4 + 2 * machine_.storage.size(), true);
    for (std::size_t k = first_; k < tasks_.size() && wrong_.empty(); ++k) {
      task& t = tasks_[k];
      first_ += k == first_ && t.ended ? 1 : 0;
      if (t.started) {
        engine[t.engine] = engine[t.engine] && (t.ended || t.what.what == operation::kind::drop);
        continue;
      }
      for (std::size_t tier = 0; tier < 2; ++tier) {
        if (t.takes[tier] > 0 && !t.granted && queue[tier]) {
          t.granted = t.takes[tier] + used_[tier] <= capacity(tier);
          used_[tier] += t.granted ? t.takes[tier] : 0;
          queue[tier] = t.granted;
          any = any || t.granted;
        }
      }
      const bool drop = t.what.what == operation::kind::drop;
      const bool ready = (drop || engine[t.engine]) && (t.granted || t.takes[0] + t.takes[1] == 0) &&
                         std::all_of(t.after.begin(), t.after.end(), [&](std::size_t b) { return tasks_[b].ended; });
      if (!drop) {
        engine[t.engine] = false;
      }
      if (ready) {
        start(k);
        any = true;
      }
    }
    return any;
  }

  void start(std::size_t k) {
    task& t = tasks_[k];
    t.started = true;
    expect(used_[0] <= capacity(0) && used_[1] <= capacity(1), "more memory is taken than there is");
    const bool lasts = t.what.what != operation::kind::drop && !seconds_.empty();
    ends_[k] = now_ + (lasts ? seconds_.at(k) : 0.0);
    if (t.what.what == operation::kind::drop) {
      end_copy(t.what.index, t.what.gone);
      t.ended = true;
      ++ended_;
      return;
    }
    running_.push_back(k);
    if (t.what.what == operation::kind::transfer) {
      const item_state& i = items_[t.what.index];
      expect(has(i.real, source_of(t.what.over)), "a transfer's source is not valid");
      expect(!has(i.real, target_of(t.what.over)), "a transfer's target is there");
      expect(t.what.over != link::storage_read || t.what.path == i.path, "a read uses another path than the write");
      return;
    }
    const trace_step& s = step_of(t);
    for (const item_access& a : s.accesses) {
      expect(!needs_contents(a.how) || has(items_[a.item].real, tier_of(s)), "a step's item is not there");
      for (const copies other : tiers) {
        if (changes(a) && other != tier_of(s) && has(items_[a.item].real, other)) {
          end_copy(a.item, other);
        }
      }
    }
  }
  void end_copy(item_index i, copies tier) {
    expect(has(items_[i].real, tier), "a copy ends that is not there");
    items_[i].real = without(items_[i].real, tier);
    if (tier != copies::storage) {
      used_[number(tier)] -= trace_.item_bytes[i];
    }
  }

  void finish(std::size_t k) {
    task& t = tasks_[k];
    t.ended = true;
    ++ended_;
    if (t.what.what == operation::kind::transfer) {
      item_state& i = items_[t.what.index];
      i.real = i.real | target_of(t.what.over);
      i.path = t.what.over == link::storage_write ? t.what.path : i.path;
      return;
    }
    const trace_step& s = step_of(t);
    used_[number(tier_of(s))] -= workspace(s);
    for (const item_access& a : s.accesses) {
      items_[a.item].real = items_[a.item].real | tier_of(s);
      if (has(a.how, uses::free)) {
        end_copy(a.item, tier_of(s));
      }
    }
  }

  std::string end() {
    for (std::size_t i = 0; i < items_.size(); ++i) {
      const bool stored = has(items_[i].real, copies::storage);
      expect(items_[i].real == schedule_.at_start[i], "the end is not the start");
      expect(!stored || items_[i].path == schedule_.stored_on[i], "the end's path is not the start's");
    }
    return wrong_;
  }
  void expect(bool good, const char* what) {
    if (!good && wrong_.empty()) {
      wrong_ = what;
    }
  }

  std::mt19937& random_;
  const trace& trace_;
  const machine& machine_;
  const schedule& schedule_;
  std::vector<item_state> items_;
  std::vector<task> tasks_;
  std::vector<std::size_t> running_;
  std::vector<double> seconds_;
  std::vector<double> ends_;
  double now_ = 0.0;
  std::array<byte_count, 2> used_{};
  std::size_t ended_ = 0;
  std::size_t first_ = 0;
  std::string wrong_;
};

}  // namespace forebay::plan::test
