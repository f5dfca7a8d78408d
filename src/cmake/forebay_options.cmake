# Options, build types and the flags that every target of the project is compiled with.
option(FOREBAY_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(FOREBAY_EXAMPLES "Build the examples" ${PROJECT_IS_TOP_LEVEL})
option(FOREBAY_BENCHMARKS "Build the microbenchmarks" ${PROJECT_IS_TOP_LEVEL})
set(FOREBAY_CUDA AUTO CACHE STRING "CUDA device: AUTO (where the toolkit is found), ON (demand it), OFF")
set(FOREBAY_SANITIZER "" CACHE STRING "Empty, 'address' (with undefined) or 'thread'")
option(FOREBAY_WERROR "Treat warnings as errors" ${PROJECT_IS_TOP_LEVEL})

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

add_library(forebay_flags INTERFACE)
target_compile_features(forebay_flags INTERFACE cxx_std_20)
target_compile_options(
  forebay_flags
  INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wpedantic;-Wconversion;-Wshadow;-Wnon-virtual-dtor;-Wold-style-cast>
            # Same numbers everywhere: fused multiply-adds only where the source says so.
            $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>)
if(FOREBAY_WERROR)
  target_compile_options(forebay_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
endif()
if(FOREBAY_SANITIZER STREQUAL "address")
  set(forebay_sanitizer_flags -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
elseif(FOREBAY_SANITIZER STREQUAL "thread")
  set(forebay_sanitizer_flags -fsanitize=thread)
elseif(FOREBAY_SANITIZER)
  message(FATAL_ERROR "FOREBAY_SANITIZER is '${FOREBAY_SANITIZER}'; use address, thread or nothing")
endif()
if(forebay_sanitizer_flags)
  target_compile_options(forebay_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:${forebay_sanitizer_flags}>)
  target_link_options(forebay_flags INTERFACE ${forebay_sanitizer_flags})
endif()
