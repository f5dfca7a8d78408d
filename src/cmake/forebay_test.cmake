# forebay_test(<name> [LIBRARIES <target>...]): tests/<name>/*.cpp -> test_<name>, each of its cases a ctest test
# <configuration><name>.<suite>.<case>.
#
# The label of a case comes from the name of its file: x_stress_test.cpp, x_fault_test.cpp and x_gpu_test.cpp give
# `stress`, `fault` and `gpu`; every other file gives `unit`. GoogleTest knows suites, not files, so the suites of a
# labelled file are read from its text; a suite belongs to one label. What the reading missed would still run, as `unit`.
if(FOREBAY_SANITIZER)
  set(forebay_test_prefix ${FOREBAY_SANITIZER}/)
endif()
set(forebay_test_environment
    "ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1:check_initialization_order=1"
    "UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1" "TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1")

function(forebay_suite_filter result)
  set(patterns)
  foreach(file IN LISTS ARGN)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    file(STRINGS ${file} lines REGEX "^ *(TYPED_)?TEST(_F|_P)?\\(|^ *RC_GTEST_|^ *INSTANTIATE_(TYPED_)?TEST_SUITE_P\\(")
    foreach(line IN LISTS lines)
      if(line MATCHES "^ *INSTANTIATE.*\\( *([A-Za-z0-9_]+) *, *([A-Za-z0-9_]+) *,")
        list(APPEND patterns ${CMAKE_MATCH_1}/${CMAKE_MATCH_2}*)
      elseif(line MATCHES "\\( *([A-Za-z0-9_]+) *,")
        list(APPEND patterns ${CMAKE_MATCH_1}.* ${CMAKE_MATCH_1}/*)
      endif()
    endforeach()
  endforeach()
  list(REMOVE_DUPLICATES patterns)
  list(JOIN patterns ":" patterns)
  set(${result} "${patterns}" PARENT_SCOPE)
endfunction()

function(forebay_test name)
  cmake_parse_arguments(arg "" "" "LIBRARIES" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${name}/*.cpp)
  if(NOT sources)
    return()
  endif()
  add_executable(test_${name} ${sources})
  target_link_libraries(test_${name} PRIVATE forebay_flags ${arg_LIBRARIES} nlohmann_json::nlohmann_json
                                             rapidcheck rapidcheck_gtest GTest::gmock_main)

  # Optimising the tests' own code takes longer than it saves.
  target_compile_options(test_${name} PRIVATE $<IF:$<CONFIG:Debug>,-O0,-O1>)

  set(labelled)
  foreach(label IN ITEMS stress fault gpu)
    set(files ${sources})
    list(FILTER files INCLUDE REGEX "_${label}_test\\.cpp$")
    forebay_suite_filter(filter ${files})
    if(filter)
      forebay_discover(${name} ${label} "${filter}")
      list(APPEND labelled ${filter})
    endif()
  endforeach()
  list(JOIN labelled ":" labelled)
  if(labelled)
    forebay_discover(${name} unit "-${labelled}")
  else()
    forebay_discover(${name} unit "")
  endif()
endfunction()

function(forebay_discover name label filter)
  gtest_discover_tests(
    test_${name}
    TEST_PREFIX ${forebay_test_prefix}${name}.
    TEST_FILTER "${filter}"
    TEST_LIST test_${name}_${label}
    DISCOVERY_TIMEOUT 120
    WORKING_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}
    PROPERTIES LABELS ${label} TIMEOUT 300 ENVIRONMENT "${forebay_test_environment}")
endfunction()
