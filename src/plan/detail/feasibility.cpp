#include "plan/detail/feasibility.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <forebay/base/error.hpp>
#include <forebay/plan/minimum_capacity.hpp>

namespace forebay::plan::detail {

void check_steps_fit(const trace& t, const machine& m) {
  validate(m);
  for (std::uint32_t s = 0; s < t.steps.size(); ++s) {
    for (const item_access& a : t.steps[s].accesses) {
      if (a.item >= t.item_bytes.size()) {
        throw usage_error(fmt::format("step {} accesses item {}; there are {}", s, a.item, t.item_bytes.size()));
      }
    }
    const bool device = t.steps[s].where == place::device;
    const byte_count capacity = device ? m.device_capacity : m.host_capacity;
    if (const byte_count need = working_set(t, s); need > capacity) {
      throw capacity_error(fmt::format("step {} needs {} bytes at once in the {} tier, which has {}", s, need,
                                       device ? "device" : "host", capacity));
    }
  }
}

void report_no_schedule(const trace& t, const machine& m) {
  const capacity_needs needs = minimum_capacity(t, 0);
  const byte_count largest = *std::max_element(t.item_bytes.begin(), t.item_bytes.end());
  throw capacity_error(
      fmt::format("no schedule found: the device tier has {} bytes and its largest step needs {}; the host tier has "
                  "{}, its largest "
                  "step needs {}, and items of up to {} bytes must pass through it; all items together have {} bytes{}",
                  m.device_capacity, needs.device.bytes, m.host_capacity, needs.host.bytes, largest, needs.home,
                  m.storage.empty() ? ", and there is no storage" : ""));
}

}  // namespace forebay::plan::detail
