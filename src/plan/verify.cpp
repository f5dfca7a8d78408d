#include <forebay/plan/verify.hpp>

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <forebay/base/contract.hpp>
#include <forebay/plan/packing.hpp>

#include "detail/program_order.hpp"

namespace forebay::plan {
namespace {

constexpr std::array<copies, 3> all_tiers{copies::device, copies::host, copies::storage};

const char* name_of(copies tier) {
  return tier == copies::device ? "device" : (tier == copies::host ? "host" : "storage");
}
copies tier_of(const trace_step& step) { return step.where == place::device ? copies::device : copies::host; }
bool is_one(copies set) { return set == copies::device || set == copies::host || set == copies::storage; }
bool is_known(copies set) { return static_cast<std::uint8_t>(set) <= 7; }

class replay {
 public:
  replay(const trace& t, const machine& m, const schedule& s)
      : trace_(t), machine_(m), schedule_(s), where_(s.at_start), path_(s.stored_on) {}

  std::optional<breach> run() {
    if (auto wrong = detail::program_order_breach(trace_, schedule_)) {
      return wrong;
    }
    if (!start()) {
      return found_;
    }
    for (at_ = 0; at_ < schedule_.operations.size(); ++at_) {
      const operation& o = schedule_.operations[at_];
      const bool good = o.what == operation::kind::step       ? run_step(o.index)
                        : o.what == operation::kind::transfer ? run_transfer(o)
                                                              : run_drop(o);
      if (!good) {
        return found_;
      }
    }
    end();
    return found_;
  }

 private:
  template <typename... Values>
  bool fail(std::optional<item_index> item, std::optional<std::uint32_t> step, fmt::format_string<Values...> text,
            Values&&... values) {
    found_ = breach{at_, item, step, fmt::format(text, std::forward<Values>(values)...)};
    return false;
  }

  [[nodiscard]] byte_count capacity(copies tier) const {
    return tier == copies::device ? machine_.device_capacity : machine_.host_capacity;
  }
  byte_count& used(copies tier) { return used_[tier == copies::device ? 0 : 1]; }

  void add(item_index i, copies tier) {
    where_[i] = where_[i] | tier;
    if (tier != copies::storage) {
      used(tier) += trace_.item_bytes[i];
    }
  }
  void remove(item_index i, copies gone) {
    for (const copies tier : {copies::device, copies::host}) {
      if (has(where_[i], tier) && has(gone, tier)) {
        used(tier) -= trace_.item_bytes[i];
      }
    }
    where_[i] = without(where_[i], gone);
  }
  bool fits(copies tier, byte_count extra, std::optional<item_index> item, std::optional<std::uint32_t> step) {
    if (used(tier) <= capacity(tier) && extra <= capacity(tier) - used(tier)) {
      return true;
    }
    return fail(item, step, "the {} tier would hold {} bytes, which is more than its {}", name_of(tier),
                used(tier) + extra, capacity(tier));
  }

  /// Whether the contents that an item has before the first operation are needed: by its first access.
  void find_needed() {
    needed_.assign(trace_.item_bytes.size(), 1);
    next_needs_.assign(schedule_.operations.size(), {});
    for (int round = 0; round < 2; ++round) {  // twice, so that the end knows the start's
      for (std::size_t k = schedule_.operations.size(); k-- > 0;) {
        if (schedule_.operations[k].what != operation::kind::step) {
          continue;
        }
        const trace_step& step = trace_.steps[schedule_.operations[k].index];
        next_needs_[k].clear();
        for (const item_access& a : step.accesses) {
          next_needs_[k].push_back(needed_[a.item]);
        }
        for (const item_access& a : step.accesses) {
          needed_[a.item] = needs_contents(a.how) ? 1 : 0;
        }
      }
    }
  }

  bool start() {
    at_ = 0;
    const std::size_t items = trace_.item_bytes.size();
    if (where_.size() != items || path_.size() != items) {
      return fail({}, {}, "the copies at the start are of {} and {} items, and the trace has {}", where_.size(),
                  path_.size(), items);
    }
    for (item_index i = 0; i < items; ++i) {
      if (!is_known(where_[i])) {
        return fail(i, {}, "its copies at the start are in no known tier");
      }
      if (has(where_[i], copies::storage) && path_[i] >= machine_.storage.size()) {
        return fail(i, {}, "it is at the start on the storage path {}, and there are {}", path_[i],
                    machine_.storage.size());
      }
      const copies there = where_[i];
      where_[i] = copies::none;
      for (const copies tier : all_tiers) {
        if (has(there, tier)) {
          add(i, tier);
        }
      }
    }
    find_needed();
    return fits(copies::device, 0, {}, {}) && fits(copies::host, 0, {}, {});
  }

  bool run_step(std::uint32_t s) {
    const trace_step& step = trace_.steps[s];
    const copies tier = tier_of(step);
    byte_count extra = align_up(step.workspace, block_alignment);
    for (const item_access& a : step.accesses) {
      const bool here = has(where_[a.item], tier);
      if (needs_contents(a.how) && !here) {
        return fail(a.item, s, "the step needs it in the {} tier, where it has no valid copy", name_of(tier));
      }
      extra += here ? 0 : trace_.item_bytes[a.item];
    }
    if (!fits(tier, extra, {}, s)) {
      return false;
    }
    for (std::size_t k = 0; k < step.accesses.size(); ++k) {
      const item_access& a = step.accesses[k];
      if (modifies(a.how) || has(a.how, uses::free)) {
        remove(a.item, without(where_[a.item], tier));
      }
      if (!has(where_[a.item], tier)) {
        add(a.item, tier);
      }
      if (has(a.how, uses::free)) {
        remove(a.item, tier);
      }
      needed_[a.item] = next_needs_[at_][k];
    }
    return true;
  }

  bool run_transfer(const operation& o) {
    if (o.index >= where_.size()) {
      return fail(o.index, {}, "the transfer is of an item that the trace does not have");
    }
    if (static_cast<std::uint8_t>(o.over) > static_cast<std::uint8_t>(link::storage_write)) {
      return fail(o.index, {}, "the transfer is over no known link");
    }
    const item_index i = o.index;
    const copies from = source_of(o.over);
    const copies to = target_of(o.over);
    const bool stored = from == copies::storage || to == copies::storage;
    if (stored && o.path >= machine_.storage.size()) {
      return fail(i, {}, "the transfer uses the storage path {}, and there are {}", o.path, machine_.storage.size());
    }
    if (!has(where_[i], from)) {
      return fail(i, {}, "the transfer's source, the {} tier, has no valid copy", name_of(from));
    }
    if (has(where_[i], to)) {
      return fail(i, {}, "the transfer's target, the {} tier, has a copy already", name_of(to));
    }
    if (needed_[i] == 0) {
      return fail(i, {}, "the transfer carries contents that no later step needs");
    }
    if (from == copies::storage && o.path != path_[i]) {
      return fail(i, {}, "it is read on the storage path {}, and was written on {}", o.path, path_[i]);
    }
    if (to == copies::storage) {
      path_[i] = o.path;
    } else if (!fits(to, trace_.item_bytes[i], i, {})) {
      return false;
    }
    add(i, to);
    return true;
  }

  bool run_drop(const operation& o) {
    const item_index i = o.index;
    if (i >= where_.size()) {
      return fail(i, {}, "the drop is of an item that the trace does not have");
    }
    if (!is_one(o.gone)) {
      return fail(i, {}, "a drop ends the copy of one tier, and this one names another number of them");
    }
    if (!has(where_[i], o.gone)) {
      return fail(i, {}, "the drop ends a copy in the {} tier, which has none", name_of(o.gone));
    }
    if (where_[i] == o.gone && needed_[i] != 0) {
      return fail(i, {}, "the drop ends the last copy, in the {} tier, of contents that a later step needs",
                  name_of(o.gone));
    }
    remove(i, o.gone);
    return true;
  }

  bool end() {
    for (item_index i = 0; i < where_.size(); ++i) {
      if (where_[i] != schedule_.at_start[i]) {
        return fail(i, {}, "its copies after the last operation are not those before the first");
      }
      if (has(where_[i], copies::storage) && path_[i] != schedule_.stored_on[i]) {
        return fail(i, {}, "it ends on the storage path {}, and starts on {}", path_[i], schedule_.stored_on[i]);
      }
    }
    return true;
  }

  const trace& trace_;
  const machine& machine_;
  const schedule& schedule_;
  std::vector<copies> where_;
  std::vector<std::uint32_t> path_;
  std::vector<std::uint8_t> needed_;                   // by item: the contents it has now, by a later step
  std::vector<std::vector<std::uint8_t>> next_needs_;  // by operation, by access: needed_ after it
  std::array<byte_count, 2> used_{};
  std::size_t at_ = 0;
  std::optional<breach> found_;
};

void check(const trace& t) {
  std::vector<std::size_t> last(t.item_bytes.size(), 0);
  for (std::size_t s = 0; s < t.steps.size(); ++s) {
    for (const item_access& a : t.steps[s].accesses) {
      FOREBAY_EXPECTS(a.item < last.size(), "the trace's accesses are of its items");
      FOREBAY_EXPECTS(last[a.item] != s + 1, "an item appears once in a step");
      last[a.item] = s + 1;
    }
  }
}

}  // namespace

std::optional<breach> verify(const trace& t, const machine& m, const schedule& s) {
  check(t);
  return replay(t, m, s).run();
}

}  // namespace forebay::plan
