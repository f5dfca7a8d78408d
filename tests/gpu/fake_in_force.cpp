// The fake CUDA run-time, in force for the life of the program that preloads it.
#include "../cuda/fake_cudart.hpp"

namespace {

// Never destroyed: what the program destroys at its end still calls the run-time.
[[maybe_unused]] const auto* const in_force =
    new forebay::testing::fake_cudart({.memory = std::uint64_t{2} << 30U});  // touched pages alone take memory

}  // namespace
