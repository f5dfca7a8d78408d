#include <forebay/plan/split.hpp>

#include <algorithm>

#include <fmt/format.h>

#include <forebay/base/error.hpp>
#include <forebay/plan/packing.hpp>

namespace forebay::plan {
namespace {

/// What the parts of an item are multiples of.
byte_count unit_of(byte_count item_bytes) { return item_bytes % block_alignment == 0 ? block_alignment : 1; }

/// Appends the item's parts: `count` of them, which differ by one unit at most.
void append_parts(split_trace& split, item_index item, byte_count item_bytes, byte_count count) {
  const std::size_t before = split.item_of.size();
  if (count > most_parts - before) {
    throw usage_error(
        fmt::format("item {} of {} bytes would be {} parts after the {} before it; {} in all are the most", item,
                    item_bytes, count, before, most_parts));
  }
  const byte_count unit = unit_of(item_bytes);
  const byte_count units = item_bytes / unit;
  for (byte_count k = 0; k < count; ++k) {
    split.parts.item_bytes.push_back((units / count + (k < units % count ? 1 : 0)) * unit);
    split.item_of.push_back(item);
  }
  split.first_part.push_back(static_cast<item_index>(split.item_of.size()));
}

std::vector<item_access> accesses_to_parts(const split_trace& split, const trace& t, std::size_t step) {
  std::vector<item_access> all;
  for (const item_access& a : t.steps[step].accesses) {
    if (a.item >= t.item_bytes.size()) {
      throw usage_error(fmt::format("step {} accesses item {}; there are {}", step, a.item, t.item_bytes.size()));
    }
    for (item_index part = split.first_part[a.item]; part < split.first_part[a.item + 1]; ++part) {
      all.push_back({part, a.how});
    }
  }
  return all;
}

/// \tparam Count byte_count(byte_count item_bytes): the number of parts, from 1 to the item's units
template <typename Count>
split_trace split_by(const trace& t, Count&& count_of) {
  split_trace split;
  split.first_part.push_back(0);
  for (item_index i = 0; i < t.item_bytes.size(); ++i) {
    append_parts(split, i, t.item_bytes[i], count_of(t.item_bytes[i]));
  }
  for (std::size_t s = 0; s < t.steps.size(); ++s) {
    const trace_step& whole = t.steps[s];
    split.parts.steps.push_back(
        {whole.where, whole.seconds, whole.workspace, whole.phase, accesses_to_parts(split, t, s)});
  }
  return split;
}

}  // namespace

split_trace split_items(const trace& t, byte_count part_bytes) {
  if (part_bytes == 0) {
    throw usage_error("parts of 0 bytes; 1 is the least");
  }
  return split_by(t, [part_bytes](byte_count item_bytes) {
    const byte_count unit = unit_of(item_bytes);
    const byte_count units_of_part = std::max<byte_count>(part_bytes / unit, 1);
    return std::max<byte_count>(item_bytes / unit / units_of_part + (item_bytes / unit % units_of_part != 0 ? 1 : 0),
                                1);
  });
}

split_trace split_items_evenly(const trace& t, std::uint32_t parts) {
  if (parts == 0) {
    throw usage_error("items in 0 parts; 1 is the least");
  }
  return split_by(
      t, [parts](byte_count item_bytes) { return std::clamp<byte_count>(item_bytes / unit_of(item_bytes), 1, parts); });
}

}  // namespace forebay::plan
