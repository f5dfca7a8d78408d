#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace forebay::plan::detail {

/// Goes upwards through a list that is sorted by a position and repeats every iteration, from the first entry above
/// `after` on.
template <typename Entry>
class upwards {
 public:
  upwards(const std::vector<Entry>& list, std::int64_t Entry::*position, std::int64_t after, std::int64_t sub_slots)
      : list_(list), position_(position), sub_slots_(sub_slots) {
    next_ =
        static_cast<std::size_t>(std::upper_bound(list.begin(), list.end(), after,
                                                  [&](std::int64_t at, const Entry& e) { return at < e.*position; }) -
                                 list.begin());
    wrap();
  }
  [[nodiscard]] bool is_at_most(std::int64_t at) const {
    return !list_.empty() && list_[next_].*position_ + lap_ <= at;
  }
  [[nodiscard]] const Entry& entry() const { return list_[next_]; }
  [[nodiscard]] std::int64_t lap() const { return lap_; }  ///< to be added to its positions
  void advance() {
    ++next_;
    wrap();
  }

 private:
  void wrap() {
    if (next_ == list_.size()) {
      next_ = 0;
      lap_ += sub_slots_;
    }
  }
  const std::vector<Entry>& list_;
  std::int64_t Entry::*position_;
  std::int64_t sub_slots_;
  std::size_t next_ = 0;
  std::int64_t lap_ = 0;
};

/// The same downwards, from the last entry below `before` on.
template <typename Entry>
class downwards {
 public:
  downwards(const std::vector<Entry>& list, std::int64_t Entry::*position, std::int64_t before, std::int64_t sub_slots)
      : list_(list), position_(position), sub_slots_(sub_slots) {
    next_ =
        static_cast<std::size_t>(std::lower_bound(list.begin(), list.end(), before,
                                                  [&](const Entry& e, std::int64_t at) { return e.*position < at; }) -
                                 list.begin());
    wrap();
  }
  [[nodiscard]] bool is_at_least(std::int64_t at) const {
    return !list_.empty() && list_[next_ - 1].*position_ + lap_ >= at;
  }
  [[nodiscard]] const Entry& entry() const { return list_[next_ - 1]; }
  [[nodiscard]] std::int64_t lap() const { return lap_; }
  void advance() {
    --next_;
    wrap();
  }

 private:
  void wrap() {
    if (next_ == 0) {
      next_ = list_.size();
      lap_ -= sub_slots_;
    }
  }
  const std::vector<Entry>& list_;
  std::int64_t Entry::*position_;
  std::int64_t sub_slots_;
  std::size_t next_ = 0;
  std::int64_t lap_ = 0;
};

}  // namespace forebay::plan::detail
