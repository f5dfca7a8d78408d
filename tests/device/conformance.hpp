#pragma once

/// The one suite that every device passes. Instantiate all parts with the same traits (see conformance_fixture.hpp).
#include "conformance_copies.hpp"
#include "conformance_failures.hpp"
#include "conformance_streams.hpp"
