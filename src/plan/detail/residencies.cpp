#include "residencies.hpp"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include <forebay/base/contract.hpp>

namespace forebay::plan::detail {
namespace {

constexpr std::uint32_t absent = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint32_t since_before = absent - 1;

class collector {
 public:
  collector(copies tier, const trace& t, const schedule& s, byte_count alignment)
      : tier_(tier),
        trace_(t),
        schedule_(s),
        alignment_(alignment),
        since_(t.item_bytes.size(), absent),
        head_(since_.size(), 0) {
    FOREBAY_EXPECTS(s.at_start.size() == since_.size(), "a schedule says where each item is at the start");
    for (std::size_t i = 0; i < since_.size(); ++i) {
      since_[i] = has(s.at_start[i], tier) ? since_before : absent;
    }
  }

  std::vector<residency> run() {
    const auto end = static_cast<std::uint32_t>(schedule_.operations.size());
    for (std::uint32_t k = 0; k < end; ++k) {
      const operation& o = schedule_.operations[k];
      if (o.what == operation::kind::step) {
        step(k, o.index);
      } else if (o.what == operation::kind::transfer && target_of(o.over) == tier_) {
        begin(o.index, k);
      } else if (o.what == operation::kind::drop && o.gone == tier_) {
        finish(o.index, k);
      }
    }
    close(end);
    std::sort(stays_.begin(), stays_.end(), [](const residency& a, const residency& b) {
      return std::tie(a.first, a.what, a.index) < std::tie(b.first, b.what, b.index);
    });
    return std::move(stays_);
  }

 private:
  void begin(std::uint32_t item, std::uint32_t at) {
    FOREBAY_EXPECTS(since_.at(item) == absent, "an item comes where it is not");
    since_[item] = at;
  }
  /// The copy's memory is free for operation `at`.
  void finish(std::uint32_t item, std::uint32_t at) {
    FOREBAY_EXPECTS(since_.at(item) != absent, "a copy ends where it is");
    if (since_[item] == since_before) {
      head_[item] = at;
    } else {
      add(residency::kind::item, item, since_[item], at - since_[item], trace_.item_bytes[item]);
    }
    since_[item] = absent;
  }
  void add(residency::kind what, std::uint32_t index, std::uint32_t first, std::uint32_t length, byte_count bytes) {
    if (length > 0 && bytes > 0) {
      stays_.push_back({what, index, first, length, align_up(bytes, alignment_), 0});
    }
  }

  void step(std::uint32_t k, std::uint32_t index) {
    const trace_step& s = trace_.steps.at(index);
    const bool here = (s.where == place::device) == (tier_ == copies::device);
    if (here) {
      add(residency::kind::workspace, index, k, 1, s.workspace);
    }
    for (const item_access& a : s.accesses) {
      const bool ends = has(a.how, uses::free);
      if (here && since_.at(a.item) == absent) {
        begin(a.item, k);
      }
      if (here && ends) {
        finish(a.item, k + 1);
      }
      if (!here && (ends || modifies(a.how)) && since_.at(a.item) != absent) {
        finish(a.item, k);
      }
    }
  }

  void close(std::uint32_t end) {
    for (std::uint32_t i = 0; i < since_.size(); ++i) {
      const bool at_start = has(schedule_.at_start[i], tier_);
      FOREBAY_EXPECTS(at_start == (since_[i] != absent),
                      "the copies after the last operation are those before the first");
      if (since_[i] == since_before) {
        add(residency::kind::item, i, 0, end, trace_.item_bytes[i]);
      } else if (at_start) {
        add(residency::kind::item, i, since_[i], end - since_[i] + head_[i], trace_.item_bytes[i]);
      }
    }
  }

  copies tier_;
  const trace& trace_;
  const schedule& schedule_;
  byte_count alignment_;
  std::vector<std::uint32_t> since_;  // by item: the operation that brought it
  std::vector<std::uint32_t> head_;   // by item: how long its copy of the start stays
  std::vector<residency> stays_;
};

}  // namespace

std::vector<residency> residencies(copies tier, const trace& t, const schedule& s, byte_count alignment) {
  return collector(tier, t, s, alignment).run();
}

}  // namespace forebay::plan::detail
