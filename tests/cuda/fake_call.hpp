#pragma once

#include <cstdio>
#include <cstdlib>

#include <dlfcn.h>

#include "fake_state.hpp"

namespace forebay::testing {

/// The real call of that name, for when no fake is in force.
template <typename Function>
Function* real_call(Function*, const char* name) {
  void* const symbol = ::dlsym(RTLD_NEXT, name);
  if (symbol == nullptr) {
    std::fprintf(stderr, "the CUDA run-time has no %s\n", name);
    std::abort();
  }
  return reinterpret_cast<Function*>(symbol);
}

}  // namespace forebay::testing

// Passes the call on when no fake is in force; else returns early with the code of a broken context or a chosen
// failure.
#define FAKE(call, ...)                                                   \
  if (fake == nullptr) {                                                  \
    return forebay::testing::real_call(&call, #call)(__VA_ARGS__);        \
  }                                                                       \
  if (const cudaError_t code = fake->enter(#call); code != cudaSuccess) { \
    return code;                                                          \
  }
