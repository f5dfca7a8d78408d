#include "plan/detail/alike_items.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <unordered_map>

namespace forebay::plan::detail {
namespace {

void add(std::string& key, std::uint64_t value) { key.append(reinterpret_cast<const char*>(&value), sizeof value); }

std::string key_of(const item_story& item, std::optional<byte_count> shut_by) {
  std::string key;
  for (const fixed_access& a : item.fixed) {
    add(key, static_cast<std::uint64_t>(a.number) * 16 + static_cast<std::uint64_t>(a.how));
  }
  add(key, ~std::uint64_t{0});
  for (const floating_access& a : item.floating) {
    add(key, static_cast<std::uint64_t>(a.when.first));
    add(key, static_cast<std::uint64_t>(a.when.last));
    add(key, static_cast<std::uint64_t>(a.listed) * 16 + static_cast<std::uint64_t>(a.how));
  }
  add(key, shut_by.value_or(~byte_count{0}));
  return key;
}

}  // namespace

alike_items group_alike(const trace& t, const timeline& time, byte_count capacity, bool items_move_whole) {
  byte_count largest = 0;
  for (const byte_count w : time.working_set) {
    largest = std::max(largest, w);
  }
  alike_items all;
  std::unordered_map<std::string, item_index> known;
  for (std::size_t i = 0; i < time.items.size(); ++i) {
    const auto next = static_cast<item_index>(all.stories.size());
    const byte_count bytes = t.item_bytes[i];
    std::optional<byte_count> shut_by;
    if (items_move_whole && largest + bytes > capacity) {
      shut_by = capacity >= bytes ? capacity - bytes + 1 : 0;
    }
    const auto [found, is_new] = known.try_emplace(key_of(time.items[i], shut_by), next);
    if (is_new) {
      all.stories.push_back(&time.items[i]);
      all.bytes.push_back(0.0);
      all.shut_by.push_back(shut_by);
      all.accesses += time.items[i].fixed.size() + time.items[i].floating.size();
    }
    all.bytes[found->second] += static_cast<double>(bytes);
    all.group_of.push_back(found->second);
  }
  return all;
}

}  // namespace forebay::plan::detail
