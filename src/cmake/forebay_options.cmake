# Options, build types and the flags that every target of the project is compiled with.
option(FOREBAY_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(FOREBAY_EXAMPLES "Build the examples" ${PROJECT_IS_TOP_LEVEL})
option(FOREBAY_BENCHMARKS "Build the microbenchmarks" ${PROJECT_IS_TOP_LEVEL})
option(FOREBAY_INSTALL "Write the install rules and the CMake package" ${PROJECT_IS_TOP_LEVEL})
option(FOREBAY_WERROR "Treat warnings as errors" ${PROJECT_IS_TOP_LEVEL})
set(FOREBAY_CUDA AUTO CACHE STRING "CUDA device: AUTO (where the toolkit is found), ON (demand it), OFF")
set(FOREBAY_SANITIZER "" CACHE STRING "Empty, 'address' (with undefined) or 'thread'")
set_property(CACHE FOREBAY_CUDA PROPERTY STRINGS AUTO ON OFF)
set_property(CACHE FOREBAY_SANITIZER PROPERTY STRINGS "" address thread)

if(PROJECT_IS_TOP_LEVEL)
  if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Release, Debug, RelWithDebInfo or MinSizeRel" FORCE)
  endif()
  set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
  find_program(FOREBAY_CCACHE ccache)
  mark_as_advanced(FOREBAY_CCACHE)
  if(FOREBAY_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    set(CMAKE_CXX_COMPILER_LAUNCHER ${FOREBAY_CCACHE})
  endif()
endif()
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON) # the archives must also fit into somebody's shared library

if(NOT FOREBAY_SANITIZER)
  set(forebay_sanitizer_flags)
elseif(FOREBAY_SANITIZER STREQUAL "address")
  set(forebay_sanitizer_flags -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
elseif(FOREBAY_SANITIZER STREQUAL "thread")
  set(forebay_sanitizer_flags -fsanitize=thread)
else()
  message(FATAL_ERROR "FOREBAY_SANITIZER is '${FOREBAY_SANITIZER}'; use address, thread or nothing")
endif()

set(forebay_warnings -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wnon-virtual-dtor -Wold-style-cast)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  list(APPEND forebay_warnings -Wno-restrict) # false for "text" + std::string (GCC bug 105651)
endif()
# What nvcc generates between the two compilers is not ours to be pedantic about.
set(forebay_cuda_warnings -Xcompiler=-Wall,-Wextra,-Wshadow)
if(FOREBAY_WERROR)
  list(APPEND forebay_warnings -Werror)
  list(APPEND forebay_cuda_warnings -Werror=all-warnings -Xcompiler=-Werror)
endif()

add_library(forebay_flags INTERFACE)
target_compile_features(forebay_flags INTERFACE cxx_std_20)
target_compile_options(
  forebay_flags
  INTERFACE $<$<COMPILE_LANGUAGE:CXX>:${forebay_warnings}>
            $<$<COMPILE_LANGUAGE:CUDA>:${forebay_cuda_warnings}>
            # Same numbers everywhere: fused multiply-adds only where the source says so.
            $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>
            $<$<COMPILE_LANGUAGE:CUDA>:-std=c++20;-fmad=false;-Xcompiler=-ffp-contract=off;--expt-relaxed-constexpr>
            $<$<COMPILE_LANGUAGE:CXX>:${forebay_sanitizer_flags}>)
target_link_options(forebay_flags INTERFACE ${forebay_sanitizer_flags})

# forebay_optional(<name> <state>): one line of what configure prints at its end, such as "cuda: off (no toolkit)".
function(forebay_optional name state)
  set_property(GLOBAL APPEND PROPERTY forebay_optional_parts "${name}: ${state}")
endfunction()

function(forebay_print_configuration)
  set(sanitizer "${FOREBAY_SANITIZER}")
  if(NOT sanitizer)
    set(sanitizer none)
  endif()
  message(STATUS "forebay ${PROJECT_VERSION}: ${CMAKE_BUILD_TYPE}, ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}, sanitizer ${sanitizer}")
  get_property(parts GLOBAL PROPERTY forebay_optional_parts)
  foreach(part IN LISTS parts)
    message(STATUS "  ${part}")
  endforeach()
endfunction()
