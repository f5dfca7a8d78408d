#include <forebay/memory/extent_allocator.hpp>

#include <iterator>
#include <stdexcept>

#include <fmt/format.h>

#include <forebay/base/contract.hpp>

namespace forebay {

extent_allocator::extent_allocator(byte_count capacity, byte_count granularity)
    : capacity_(capacity), granularity_(granularity), free_bytes_(0) {
  FOREBAY_EXPECTS(is_power_of_two(granularity), "the granularity of an extent allocator is a power of two");
  capacity_ = align_down(capacity, granularity);
  if (capacity_ > 0) {
    add_hole({0, capacity_});
    free_bytes_ = capacity_;
  }
}

std::optional<extent> extent_allocator::allocate(byte_count bytes) {
  FOREBAY_EXPECTS(bytes > 0, "an extent has at least one byte");
  if (bytes > capacity_) {
    return std::nullopt;  // also keeps the rounding below from overflowing
  }
  const byte_count size = align_up(bytes, granularity_);
  const auto best = holes_by_size_.lower_bound({size, 0});
  if (best == holes_by_size_.end()) {
    return std::nullopt;
  }
  const auto hole = holes_.find(best->second);
  const extent result{hole->first, size};
  if (hole->second == size) {
    erase_hole(hole);
  } else {
    move_hole(hole, {hole->first + size, hole->second - size});
  }
  free_bytes_ -= size;
  return result;
}

bool extent_allocator::allocate_at(extent place) {
  FOREBAY_EXPECTS(place.bytes > 0, "an extent has at least one byte");
  FOREBAY_EXPECTS(place.offset % granularity_ == 0, "the offset of an extent is a multiple of the granularity");
  if (place.bytes > capacity_ || place.offset > capacity_ - place.bytes) {
    return false;
  }
  place = rounded(place);
  const auto hole = hole_around(place.offset);
  if (hole == holes_.end() || hole->first + hole->second < place.end()) {
    return false;
  }
  const extent before{hole->first, place.offset - hole->first};
  const extent behind{place.end(), hole->first + hole->second - place.end()};
  if (before.bytes > 0 && behind.bytes > 0) {
    add_hole(behind);  // the one step that may throw comes before anything has changed
    move_hole(hole, before);
  } else if (before.bytes > 0) {
    move_hole(hole, before);
  } else if (behind.bytes > 0) {
    move_hole(hole, behind);
  } else {
    erase_hole(hole);
  }
  free_bytes_ -= place.bytes;
  return true;
}

void extent_allocator::free(extent place) {
  const bool shaped = place.bytes > 0 && place.offset % granularity_ == 0 && place.bytes <= capacity_ &&
                      place.offset <= capacity_ - place.bytes;
  if (!shaped) {
    throw usage_error(
        fmt::format("extent [{}, +{}) is not one of this allocator of {} bytes", place.offset, place.bytes, capacity_));
  }
  place = rounded(place);
  const auto right = holes_.lower_bound(place.offset);
  const auto left = right == holes_.begin() ? holes_.end() : std::prev(right);
  const bool overlaps_right = right != holes_.end() && right->first < place.end();
  const bool overlaps_left = left != holes_.end() && left->first + left->second > place.offset;
  if (overlaps_right || overlaps_left) {
    const auto hole = overlaps_left ? left : right;
    throw usage_error(fmt::format("extent [{}, +{}) is freed twice: [{}, +{}) is free already", place.offset,
                                  place.bytes, hole->first, hole->second));
  }
  const bool joins_left = left != holes_.end() && left->first + left->second == place.offset;
  const bool joins_right = right != holes_.end() && right->first == place.end();
  const extent behind = joins_right ? extent{right->first, right->second} : extent{};
  if (joins_left) {
    if (joins_right) {
      erase_hole(right);
    }
    move_hole(left, {left->first, left->second + place.bytes + behind.bytes});
  } else if (joins_right) {
    move_hole(right, {place.offset, place.bytes + behind.bytes});
  } else {
    add_hole(place);
  }
  free_bytes_ += place.bytes;
}

byte_count extent_allocator::largest_hole() const noexcept {
  return holes_by_size_.empty() ? 0 : holes_by_size_.rbegin()->first;
}

extent extent_allocator::rounded(extent place) const { return {place.offset, align_up(place.bytes, granularity_)}; }

extent_allocator::hole_iterator extent_allocator::hole_around(byte_count offset) {
  auto hole = holes_.upper_bound(offset);
  if (hole == holes_.begin()) {
    return holes_.end();
  }
  --hole;
  return hole->first + hole->second > offset ? hole : holes_.end();
}

// Both indices or none: a hole in only one of them would be lost.
void extent_allocator::add_hole(extent hole) {
  const auto added = holes_by_size_.emplace(hole.bytes, hole.offset).first;
  try {
    holes_.emplace(hole.offset, hole.bytes);
  } catch (...) {
    holes_by_size_.erase(added);
    throw;
  }
}

// Re-uses the nodes of both indices, so that it can't fail half-way.
void extent_allocator::move_hole(hole_iterator hole, extent to) noexcept {
  auto by_size = holes_by_size_.extract({hole->second, hole->first});
  by_size.value() = {to.bytes, to.offset};
  holes_by_size_.insert(std::move(by_size));
  hole->second = to.bytes;
  if (hole->first != to.offset) {
    const auto next = std::next(hole);
    auto by_offset = holes_.extract(hole);
    by_offset.key() = to.offset;
    holes_.insert(next, std::move(by_offset));
  }
}

void extent_allocator::erase_hole(hole_iterator hole) noexcept {
  holes_by_size_.erase({hole->second, hole->first});
  holes_.erase(hole);
}

}  // namespace forebay
