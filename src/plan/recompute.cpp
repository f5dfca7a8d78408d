#include <forebay/plan/recompute.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <forebay/base/error.hpp>

namespace forebay::plan {
namespace {

/// An access by its place in the trace, which may be an iteration away.
struct found_access {
  std::uint32_t step = 0;
  uses how = uses::none;
};

/// What the trace does to each item, in its order.
class histories {
 public:
  explicit histories(const trace& t) : of_item_(t.item_bytes.size()) {
    for (std::uint32_t s = 0; s < t.steps.size(); ++s) {
      for (const item_access& a : t.steps[s].accesses) {
        if (a.item >= of_item_.size()) {
          throw usage_error(fmt::format("step {} accesses item {}; there are {}", s, a.item, of_item_.size()));
        }
        of_item_[a.item].push_back({s, a.how});
      }
    }
  }

  [[nodiscard]] bool knows(item_index item) const { return item < of_item_.size(); }
  /// In the same iteration.
  [[nodiscard]] std::optional<found_access> last_before(item_index item, std::uint32_t step) const {
    const auto next = first_from(item, step);
    return next == of_item_[item].begin() ? std::nullopt : std::optional(*std::prev(next));
  }
  [[nodiscard]] std::optional<found_access> next_from(item_index item, std::uint32_t step) const {
    const auto next = first_from(item, step);
    return next == of_item_[item].end() ? std::nullopt : std::optional(*next);
  }
  /// Whether there are contents just before the step, in the long run.
  [[nodiscard]] bool exists_before(item_index item, std::uint32_t step) const {
    const std::vector<found_access>& all = of_item_[item];
    if (all.empty()) {
      return true;  // never ended
    }
    const auto next = first_from(item, step);
    const found_access& last = next == all.begin() ? all.back() : *std::prev(next);
    return !has(last.how, uses::free);
  }

 private:
  [[nodiscard]] std::vector<found_access>::const_iterator first_from(item_index item, std::uint32_t step) const {
    const std::vector<found_access>& all = of_item_[item];
    return std::lower_bound(all.begin(), all.end(), step,
                            [](const found_access& a, std::uint32_t s) { return a.step < s; });
  }

  std::vector<std::vector<found_access>> of_item_;
};

/// Checks one candidate, and lists what it gives up.
class candidate_check {
 public:
  using namer = std::function<std::string(item_index)>;

  candidate_check(const trace& t, const histories& past, std::uint32_t index, const recompute_candidate& c,
                  const namer& name)
      : past_(past), index_(index), c_(c), name_(name) {
    if (c.before >= t.steps.size()) {
      throw usage_error(
          fmt::format("recomputation {} stands before step {}; there are {}", index, c.before, t.steps.size()));
    }
    if (c.steps.empty()) {
      throw usage_error(fmt::format("recomputation {} has no steps", index));
    }
  }

  std::vector<item_index> given_up() {
    for (std::uint32_t s = 0; s < c_.steps.size(); ++s) {
      for (const item_access& a : c_.steps[s].accesses) {
        check(s, a);
      }
    }
    std::vector<item_index> kept;
    for (const made& m : made_) {
      if (m.freed) {
        refuse(m.step, m.item, "creates and frees", past_.exists_before(m.item, c_.before), "it holds contents then");
      } else {
        check_given_up(m);
        kept.push_back(m.item);
      }
    }
    return kept;
  }

 private:
  struct made {
    item_index item = 0;
    std::uint32_t step = 0;
    bool freed = false;
  };

  void check(std::uint32_t step, const item_access& a) {
    refuse(step, a.item, "accesses", !past_.knows(a.item), "there is no such item");
    refuse(step, a.item, "writes", has(a.how, uses::write), "only reading and creating can be done again");
    const auto own = std::find_if(made_.begin(), made_.end(), [&](const made& m) { return m.item == a.item; });
    const bool there = own != made_.end() ? !own->freed : past_.exists_before(a.item, c_.before);
    if (has(a.how, uses::create)) {
      refuse(step, a.item, "creates", own != made_.end(), "an earlier step of it did so already");
      made_.push_back({a.item, step, has(a.how, uses::free)});
      return;
    }
    refuse(step, a.item, "reads", !there, "it holds nothing then");
    if (has(a.how, uses::free)) {
      refuse(step, a.item, "frees", own == made_.end(), "it did not create it");
      own->freed = true;
    }
  }

  void check_given_up(const made& m) const {
    const std::optional<found_access> last = past_.last_before(m.item, c_.before);
    const std::optional<found_access> next = past_.next_from(m.item, c_.before);
    refuse(m.step, m.item, "creates", !last || has(last->how, uses::free),
           "it holds nothing of this iteration then that could be given up");
    refuse(m.step, m.item, "creates", !next || !needs_contents(next->how), "no later step needs it");
  }

  void refuse(std::uint32_t step, item_index item, const char* does, bool refused, const char* why) const {
    if (refused) {
      const std::string called = name_ && past_.knows(item) ? name_(item) : fmt::format("item {}", item);
      throw usage_error(fmt::format("step {} of recomputation {}, which stands before step {}, {} {}: {}", step, index_,
                                    c_.before, does, called, why));
    }
  }

  const histories& past_;
  std::uint32_t index_;
  const recompute_candidate& c_;
  const namer& name_;
  std::vector<made> made_;
};

/// Writes the steps down one after the other.
class writer {
 public:
  explicit writer(const trace& t) : last_use_(t.item_bytes.size()) { out_.steps.item_bytes = t.item_bytes; }

  void add(trace_step step, recomputing_trace::source from) {
    const auto number = static_cast<std::uint32_t>(out_.steps.steps.size());
    for (std::uint32_t a = 0; a < step.accesses.size(); ++a) {
      last_use_[step.accesses[a].item] = {number, a};
    }
    out_.steps.steps.push_back(std::move(step));
    out_.sources.push_back(from);
  }

  void give_up(item_index item, std::uint32_t candidate) {
    const auto [step, access] = last_use_[item];
    uses& how = out_.steps.steps[step].accesses[access].how;
    how = how | uses::free;
    out_.given_up.push_back({step, access, candidate});
  }

  recomputing_trace finish() {
    for (std::uint32_t s = 0; s < out_.sources.size(); ++s) {
      if (out_.sources[s].candidate == recomputing_trace::source::none) {
        out_.position_of.push_back(s);
      }
    }
    std::stable_sort(out_.given_up.begin(), out_.given_up.end(),
                     [](const auto& a, const auto& b) { return a.step < b.step; });
    return std::move(out_);
  }

 private:
  recomputing_trace out_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> last_use_;
};

}  // namespace

recomputing_trace recompute(const trace& t, std::span<const recompute_candidate> candidates,
                            const std::vector<bool>& chosen, const std::function<std::string(item_index)>& name) {
  if (chosen.size() != candidates.size()) {
    throw usage_error(
        fmt::format("a choice among {} recomputations is given for {}", chosen.size(), candidates.size()));
  }
  const histories past(t);
  std::vector<std::vector<item_index>> given_up;
  std::vector<std::vector<std::uint32_t>> standing_before(t.steps.size());
  for (std::uint32_t c = 0; c < candidates.size(); ++c) {
    given_up.push_back(candidate_check(t, past, c, candidates[c], name).given_up());
    if (chosen[c]) {
      standing_before[candidates[c].before].push_back(c);
    }
  }
  writer out(t);
  for (std::uint32_t s = 0; s < t.steps.size(); ++s) {
    for (const std::uint32_t c : standing_before[s]) {
      for (const item_index item : given_up[c]) {
        out.give_up(item, c);
      }
      for (std::uint32_t i = 0; i < candidates[c].steps.size(); ++i) {
        out.add(candidates[c].steps[i], {c, i});
      }
    }
    out.add(t.steps[s], {recomputing_trace::source::none, s});
  }
  return out.finish();
}

}  // namespace forebay::plan
