# Run by ctest: cmake -DSOURCE= -DWORK= -DGENERATOR= -DCXX= -P configure.cmake
# Configures the library with and without what it can use, and checks that it says what is off and why.

# check(<name> <expected status: 0 or 1> <expected regular expression> <cmake arguments>...)
function(check name expected_status expected_text)
  execute_process(
    COMMAND ${CMAKE_COMMAND} -S ${SOURCE} -B ${WORK}/${name} -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${CXX}
            -DFOREBAY_TESTS=OFF -DFOREBAY_EXAMPLES=OFF -DFOREBAY_BENCHMARKS=OFF ${ARGN}
    RESULT_VARIABLE status
    OUTPUT_VARIABLE output
    ERROR_VARIABLE output)
  if(status)
    set(status 1)
  endif()
  string(REGEX REPLACE "[ \n]+" " " flat "${output}")
  if(NOT status EQUAL expected_status OR NOT flat MATCHES "${expected_text}")
    message(FATAL_ERROR "${name}: expected status ${expected_status} and '${expected_text}', got ${status} and\n${output}")
  endif()
  message(STATUS "${name}: ${CMAKE_MATCH_0}")
endfunction()

file(REMOVE_RECURSE ${WORK})
set(no_toolkit -DCMAKE_DISABLE_FIND_PACKAGE_CUDAToolkit=TRUE)
check(cuda_off 0 "cuda: off \\(FOREBAY_CUDA=OFF\\)" -DFOREBAY_CUDA=OFF)
check(cuda_auto 0 "cuda: (on \\(toolkit [0-9.]+|off \\(no CUDA toolkit)")
check(cuda_auto_without_toolkit 0 "cuda: off \\(no CUDA toolkit" ${no_toolkit})
check(cuda_demanded_without_toolkit 1 "FOREBAY_CUDA=ON, but no CUDA toolkit was found" -DFOREBAY_CUDA=ON ${no_toolkit})
check(unknown_sanitizer 1 "use address, thread or nothing" -DFOREBAY_SANITIZER=memory)
# A dependency that is not there is named with the package that brings it.
foreach(dependency IN ITEMS Liburing:liburing-dev Hwloc:libhwloc-dev Xxhash:libxxhash-dev)
  string(REGEX MATCH "^([^:]*):(.*)$" _ ${dependency})
  check(without_${CMAKE_MATCH_1} 1 "Could NOT find ${CMAKE_MATCH_1}.*install ${CMAKE_MATCH_2}" -DFOREBAY_CUDA=OFF
        -D${CMAKE_MATCH_1}_LIBRARY= -D${CMAKE_MATCH_1}_INCLUDE_DIR=)
endforeach()
