#include <forebay/plan/minimum_capacity.hpp>

#include <forebay/plan/packing.hpp>

namespace forebay::plan {

byte_count working_set(const trace& t, std::uint32_t step) {
  byte_count bytes = workspace_room(t.steps[step]);
  for (const item_access& access : t.steps[step].accesses) {
    bytes += t.item_bytes[access.item];
  }
  return bytes;
}

capacity_needs minimum_capacity(const trace& t, byte_count reserved_host) {
  capacity_needs needs;
  for (std::uint32_t s = 0; s < t.steps.size(); ++s) {
    tier_need& need = t.steps[s].where == place::device ? needs.device : needs.host;
    const byte_count bytes = working_set(t, s);
    if (bytes > need.bytes) {
      need = {bytes, s};
    }
  }
  needs.host.bytes += reserved_host;
  for (const byte_count bytes : t.item_bytes) {
    needs.home += bytes;
  }
  return needs;
}

}  // namespace forebay::plan
