#pragma once

#include <vector>

#include "plan/detail/residency_plan.hpp"

namespace forebay::plan::detail {

/// Lets host copies that have to leave wait on the device where it has room for them until they are fetched, the most
/// worth while first: a copy over the device's link takes the place of a write and a read of storage. What a device
/// step made and the host needs next stays where it is. `room`: bytes of the device that may be in use with them.
void park_on_device(const trace& t, const access_lists& lists, byte_count room, const std::vector<double>& host_clock,
                    const tier_rule& rule, residency_plan& plan);

}  // namespace forebay::plan::detail
