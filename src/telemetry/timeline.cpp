#include <forebay/telemetry/timeline.hpp>

#include <algorithm>
#include <deque>
#include <mutex>
#include <utility>

#include <forebay/base/contract.hpp>

namespace forebay::telemetry {

struct timeline::impl {
  explicit impl(std::size_t slice_limit) : limit(slice_limit) {}

  struct lane_state {
    std::string name;
    time_point last_end = time_point::min();
  };

  mutable std::mutex mutex;
  const std::size_t limit;
  std::deque<slice> recorded;  // a deque: growing must not move a million slices while the lock is held
  std::vector<lane_state> lanes;
  std::uint64_t dropped = 0;

  void add(slice&& s, bool in_order) {
    const std::scoped_lock lock(mutex);
    FOREBAY_EXPECTS(s.lane < lanes.size(), "the slice's lane was not made by this timeline");
    lane_state& lane = lanes[s.lane];
    if (in_order) {
      s.start = std::max(s.start, lane.last_end);
    }
    s.end = std::max(s.end, s.start);
    lane.last_end = std::max(lane.last_end, s.end);
    if (recorded.size() >= limit) {
      ++dropped;
      return;
    }
    recorded.push_back(std::move(s));
  }
};

timeline::timeline(std::size_t limit) : impl_(std::make_unique<impl>(limit)) {}
timeline::~timeline() = default;

lane_id timeline::lane(std::string_view name) {
  const std::scoped_lock lock(impl_->mutex);
  auto& lanes = impl_->lanes;
  const auto found = std::find_if(lanes.begin(), lanes.end(), [&](const auto& l) { return l.name == name; });
  const auto index = static_cast<lane_id>(found - lanes.begin());
  if (found == lanes.end()) {
    lanes.push_back({std::string(name), time_point::min()});
  }
  return index;
}

void timeline::record(slice s) { impl_->add(std::move(s), false); }
void timeline::record_in_order(slice s) { impl_->add(std::move(s), true); }

std::vector<slice> timeline::slices() const {
  const std::scoped_lock lock(impl_->mutex);
  return {impl_->recorded.begin(), impl_->recorded.end()};
}

std::vector<std::string> timeline::lanes() const {
  const std::scoped_lock lock(impl_->mutex);
  std::vector<std::string> names;
  names.reserve(impl_->lanes.size());
  for (const auto& lane : impl_->lanes) {
    names.push_back(lane.name);
  }
  return names;
}

std::uint64_t timeline::dropped() const {
  const std::scoped_lock lock(impl_->mutex);
  return impl_->dropped;
}

}  // namespace forebay::telemetry
