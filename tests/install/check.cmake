# Run by ctest: cmake -DWAY=find_package|add_subdirectory -DSOURCE= -DBUILD= -DWORK= ... -P check.cmake
# Makes the package available in WORK in the way named, builds the consumer against it, and runs it.
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status)
  if(status)
    message(FATAL_ERROR "failed (${status}): ${ARGN}")
  endif()
endfunction()

file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK})
file(COPY ${SOURCE}/tests/install/consumer DESTINATION ${WORK})

if(WAY STREQUAL "find_package")
  run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)
  set(arguments -DCMAKE_PREFIX_PATH=${WORK}/prefix -DCMAKE_BUILD_TYPE=Release)
else()
  # A copy, so that the project itself is built on a path with spaces too; unoptimised, which is quicker.
  file(COPY ${SOURCE}/CMakeLists.txt ${SOURCE}/src ${SOURCE}/include DESTINATION ${WORK}/forebay)
  set(arguments -DCONSUMER_FOREBAY_SOURCE=${WORK}/forebay -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O0)
endif()

run(${CMAKE_COMMAND} -S ${WORK}/consumer -B ${WORK}/build -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${CXX}
    -DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER} ${arguments})
run(${CMAKE_COMMAND} --build ${WORK}/build)
run(${CMAKE_CTEST_COMMAND} --test-dir ${WORK}/build --output-on-failure)
