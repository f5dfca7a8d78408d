#include "plan/detail/order_moves.hpp"

#include <algorithm>
#include <vector>

namespace forebay::plan::detail {
namespace {

using kind = operation::kind;

std::uint32_t below(std::mt19937& random, std::size_t n) { return static_cast<std::uint32_t>(random() % n); }

const item_access* access_of(const trace_step& step, item_index item) {
  for (const item_access& a : step.accesses) {
    if (a.item == item) {
      return &a;
    }
  }
  return nullptr;
}

copies tier_of(const trace_step& step) { return step.where == place::device ? copies::device : copies::host; }

}  // namespace

bool order_moves::touches(const operation& o, item_index item) const {
  return o.what == kind::step ? access_of(trace_.steps[o.index], item) != nullptr : o.index == item;
}

bool order_moves::independent(const operation& a, const operation& b) const {
  if (a.what != kind::step) {
    return !touches(b, a.index);
  }
  if (b.what != kind::step) {
    return !touches(a, b.index);
  }
  const trace_step& one = trace_.steps[a.index];
  const trace_step& other = trace_.steps[b.index];
  return steps_may_move_ && one.where != other.where &&
         std::all_of(one.accesses.begin(), one.accesses.end(), [&](const item_access& x) {
           const item_access* y = access_of(other, x.item);
           return y == nullptr;
         });
}

/// Where an item's copies are after an operation that finds them `at`.
copies order_moves::after(const operation& o, item_index item, copies at) const {
  if (o.what == kind::transfer) {
    return o.index == item ? at | target_of(o.over) : at;
  }
  if (o.what == kind::drop) {
    return o.index == item ? without(at, o.gone) : at;
  }
  const item_access* a = access_of(trace_.steps[o.index], item);
  if (a == nullptr) {
    return at;
  }
  if (has(a->how, uses::free)) {
    return copies::none;
  }
  return modifies(a->how) ? tier_of(trace_.steps[o.index]) : at;
}

bool order_moves::uses_copy(const operation& o, item_index item, copies tier) const {
  if (o.what == kind::step) {
    const item_access* a = access_of(trace_.steps[o.index], item);
    return a != nullptr && needs_contents(a->how) && tier_of(trace_.steps[o.index]) == tier;
  }
  return o.what == kind::transfer && o.index == item && source_of(o.over) == tier;
}

/// By operation, the item's copies before it.
std::vector<copies> order_moves::states_of(const schedule& s, item_index item) const {
  std::vector<copies> states(s.operations.size());
  copies at = s.at_start[item];
  for (std::size_t i = 0; i < states.size(); ++i) {
    states[i] = at;
    at = after(s.operations[i], item, at);
  }
  return states;
}

void order_moves::follow(const operation& o, std::vector<copies>& at) const {
  if (o.what != kind::step) {
    at[o.index] = after(o, o.index, at[o.index]);
    return;
  }
  for (const item_access& a : trace_.steps[o.index].accesses) {
    at[a.item] = has(a.how, uses::free) ? copies::none : modifies(a.how) ? tier_of(trace_.steps[o.index]) : at[a.item];
  }
}

bool order_moves::close(schedule& s) const {
  std::vector<copies> at = s.at_start;
  for (int round = 0; round < 2; ++round) {
    s.at_start = at;
    for (const operation& o : s.operations) {
      follow(o, at);
    }
    if (at == s.at_start) {
      return true;
    }
  }
  return false;
}

bool order_moves::shift(schedule& s, std::mt19937& random, std::uint32_t most) const {
  const std::size_t n = s.operations.size();
  const bool later = below(random, 2) == 0;
  std::size_t at = below(random, n);
  std::uint32_t moved = 0;
  const std::uint32_t wanted = 1 + below(random, most);
  while (moved < wanted) {
    const std::size_t next = later ? (at + 1 == n ? 0 : at + 1) : (at == 0 ? n - 1 : at - 1);
    if (!independent(s.operations[at], s.operations[next])) {
      break;
    }
    std::swap(s.operations[at], s.operations[next]);
    at = next;
    ++moved;
  }
  return moved > 0 && close(s);
}

/// Removes a transfer of the item whose copy is dropped or overwritten before it is used, with the drop.
bool order_moves::remove_unused(schedule& s, item_index item) const {
  const std::size_t n = s.operations.size();
  for (std::size_t i = 0; i < n; ++i) {
    const operation& o = s.operations[i];
    if (o.what != kind::transfer || o.index != item) {
      continue;
    }
    const copies tier = target_of(o.over);
    for (std::size_t k = 1; k <= n; ++k) {
      const std::size_t j = (i + k) % n;
      const operation& next = s.operations[j];
      if (uses_copy(next, item, tier)) {
        break;
      }
      if (next.what == kind::drop && next.index == item) {
        if (next.gone != tier) {
          break;  // from here on it may be the last copy
        }
        s.operations.erase(s.operations.begin() + static_cast<std::ptrdiff_t>(std::max(i, j)));
        s.operations.erase(s.operations.begin() + static_cast<std::ptrdiff_t>(std::min(i, j)));
        return true;
      }
      if (next.what == kind::step && touches(next, item) && !has(after(next, item, tier), tier)) {
        s.operations.erase(s.operations.begin() + static_cast<std::ptrdiff_t>(i));
        return true;
      }
    }
  }
  return false;
}

bool order_moves::keep(schedule& s, std::mt19937& random) const {
  const std::size_t n = s.operations.size();
  const std::size_t start = below(random, n);
  for (std::size_t k = 0; k < n; ++k) {
    const std::size_t i = (start + k) % n;
    const operation drop = s.operations[i];
    if (drop.what != kind::drop || drop.gone == copies::storage) {
      continue;
    }
    for (std::size_t d = 1; d < n; ++d) {
      const std::size_t j = (i + d) % n;
      const operation& next = s.operations[j];
      if (next.what == kind::step && touches(next, drop.index) &&
          after(next, drop.index, copies::device | copies::host | copies::storage) !=
              (copies::device | copies::host | copies::storage)) {
        return false;
      }
      if (next.what == kind::transfer && next.index == drop.index && target_of(next.over) == drop.gone) {
        s.operations.erase(s.operations.begin() + static_cast<std::ptrdiff_t>(std::max(i, j)));
        s.operations.erase(s.operations.begin() + static_cast<std::ptrdiff_t>(std::min(i, j)));
        while (remove_unused(s, drop.index)) {
        }
        return close(s);
      }
    }
    return false;
  }
  return false;
}

bool order_moves::spill(schedule& s, std::mt19937& random) const {
  const std::size_t n = s.operations.size();
  if (trace_.item_bytes.empty()) {
    return false;
  }
  const item_index item = below(random, trace_.item_bytes.size());
  const copies tier = below(random, 2) == 0 || machine_.storage.empty() ? copies::device : copies::host;
  const std::vector<copies> states = states_of(s, item);
  std::size_t first = below(random, n);
  std::size_t tries = 0;
  while (tries < n && !(has(states[first], tier) && !uses_copy(s.operations[first], item, tier) &&
                        !touches(s.operations[first], item))) {
    first = (first + 1) % n;
    ++tries;
  }
  if (tries == n) {
    return false;
  }
  // The copy is there before `first`; find the next use of it.
  std::size_t length = 0;
  while (length < n && !touches(s.operations[(first + length) % n], item)) {
    ++length;
  }
  if (length == n) {
    return false;
  }
  const operation& user = s.operations[(first + length) % n];
  if (!uses_copy(user, item, tier)) {
    return false;
  }
  std::size_t from = below(random, length + 1);
  std::size_t to = from + below(random, length + 1 - from);
  std::vector<operation> leave;
  std::vector<operation> back;
  const copies others = without(states[first], tier);
  const std::uint32_t path = s.stored_on[item];
  if (tier == copies::device) {
    if (others == copies::none) {
      leave.push_back(move_item(item, link::d2h));
    }
    if (!has(others, copies::host) && has(others, copies::storage)) {
      back.push_back(move_item(item, link::storage_read, path));
    }
    back.push_back(move_item(item, link::h2d));
    if (!has(others, copies::host)) {
      back.push_back(drop_copy(item, copies::host));
    }
  } else {
    if (others == copies::none) {
      leave.push_back(move_item(item, link::storage_write, path));
    }
    back.push_back(has(others, copies::device) ? move_item(item, link::d2h)
                                               : move_item(item, link::storage_read, path));
  }
  leave.push_back(drop_copy(item, tier));
  std::rotate(s.operations.begin(), s.operations.begin() + static_cast<std::ptrdiff_t>(first), s.operations.end());
  std::vector<copies> at = s.at_start;
  for (std::size_t i = n - first; i < n; ++i) {  // what was before `first`
    follow(s.operations[i], at);
  }
  s.at_start = at;
  s.operations.insert(s.operations.begin() + static_cast<std::ptrdiff_t>(to), back.begin(), back.end());
  s.operations.insert(s.operations.begin() + static_cast<std::ptrdiff_t>(from), leave.begin(), leave.end());
  return close(s);
}

}  // namespace forebay::plan::detail
