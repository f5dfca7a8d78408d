#!/usr/bin/env bash
# Installs what is missing, builds every configuration and runs all the tests.
#
#   tests/run.sh                 everything: formatting, then the configurations release, address and thread
#   tests/run.sh thread          one of them, or several
#   tests/run.sh tidy            clang-tidy over the library, which the default leaves out
#
# Builds lie in build-tests/<configuration>, or below the folder that FOREBAY_TEST_BUILDS names. Fails on a failed test,
# and on a skipped one that tests/expected_skips.txt does not foresee.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. tests/packages.sh
root=$PWD
builds=${FOREBAY_TEST_BUILDS:-$root/build-tests}
jobs=$(nproc)
steps=("$@")
[ ${#steps[@]} -gt 0 ] || steps=(format release address thread)

stage() {
  printf '\n=== %s (%d s since the start)\n' "$*" "$SECONDS"
}

wants() {
  local step
  for step in "${steps[@]}"; do [ "$step" = "$1" ] && return; done
  return 1
}

install_tools() {
  need_build_tools
  need_example_libraries
  need_dev gtest/gtest.h libgtest-dev
  need_dev gmock/gmock.h libgmock-dev
  need_dev benchmark/benchmark.h libbenchmark-dev
  need_dev rapidcheck.h librapidcheck-dev
  need strace strace
  need setpriv util-linux
  if wants format; then need clang-format clang-format; fi
  if wants address || wants thread || wants tidy; then need clang++ clang; fi
  if wants tidy; then need clang-tidy clang-tidy; fi
  install_missing
  if { wants address || wants thread; } && ! can_clang_sanitize; then
    missing_packages+=("libclang-rt-$(clang++ -dumpversion | cut -d. -f1)-dev")
    install_missing
  fi
  check_cmake_version
}

can_clang_sanitize() {
  echo 'int main() {}' | clang++ -x c++ -fsanitize=address -o /dev/null - 2>/dev/null
}

# Formatting differs between the versions of the tool, so only the one that the sources were written with decides.
check_format() {
  local version
  version=$(clang-format --version | sed -n 's/.*version \([0-9]*\).*/\1/p')
  if [ "$version" != 14 ]; then
    echo "clang-format $version is here; the sources follow version 14: not checked"
    return
  fi
  find include src tests bench examples \( -name '*.hpp' -o -name '*.cpp' -o -name '*.cu' \) -print0 |
    xargs -0 clang-format --dry-run -Werror
}

# build <configuration> <cmake arguments>...
build() {
  local configuration=$1
  shift
  stage "build $configuration"
  cmake -S . -B "$builds/$configuration" -G Ninja -DFOREBAY_WERROR=ON "$@"
  cmake --build "$builds/$configuration" --parallel "$jobs"
}

build_all() {
  mkdir -p "$builds"
  : > "$builds/CTestTestfile.cmake"
  # Debug keeps the assertions and the poisoning of freed memory; -O1 keeps the tests quick. clang compiles sanitized
  # code in two thirds of the time that g++ takes.
  local checked=(-DCMAKE_BUILD_TYPE=Debug "-DCMAKE_CXX_FLAGS_DEBUG=-O1 -g1" -DFOREBAY_BENCHMARKS=OFF)
  if wants release; then
    build release -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER=g++
  fi
  if wants address; then
    build address "${checked[@]}" -DFOREBAY_SANITIZER=address -DCMAKE_CXX_COMPILER=clang++
  fi
  if wants thread; then
    build thread "${checked[@]}" -DFOREBAY_SANITIZER=thread -DCMAKE_CXX_COMPILER=clang++ -DFOREBAY_CUDA=OFF \
      -DFOREBAY_EXAMPLES=OFF
  fi
  local configuration
  for configuration in release address thread; do
    if wants $configuration; then echo "subdirs(\"$configuration\")" >> "$builds/CTestTestfile.cmake"; fi
  done
}

run_tidy() {
  stage "clang-tidy"
  cmake -S . -B "$builds/tidy" -G Ninja -DCMAKE_CXX_COMPILER=clang++ -DFOREBAY_CUDA=OFF
  find src examples -name '*.cpp' -not -path 'src/cuda/*' -print0 |
    xargs -0 -n 1 -P "$jobs" clang-tidy --quiet -p "$builds/tidy"
}

# ThreadSanitizer wants its address ranges free, which a kernel with much randomisation does not grant.
without_randomisation() {
  if setarch --addr-no-randomize true 2>/dev/null; then setarch --addr-no-randomize "$@"; else "$@"; fi
}

# Whether file systems of several kinds can be made and mounted here (packages xfsprogs and btrfs-progs, loop devices).
can_make_images() {
  local tool
  for tool in losetup mkfs.ext4 mkfs.xfs mkfs.btrfs; do
    PATH=$PATH:/usr/sbin:/sbin command -v "$tool" >/dev/null || return 1
  done
  unshare -m losetup -f >/dev/null 2>&1
}

# Conditions of this machine under which tests/expected_skips.txt may foresee a skip.
conditions() {
  echo always
  compgen -G '/dev/nvidia[0-9]*' >/dev/null || echo no-gpu
  [ "$(id -u)" -eq 0 ] || echo not-root
  can_make_images || echo no-images
  local probe=$builds/uring_probe
  printf '#include <liburing.h>\nint main() { io_uring ring; return io_uring_queue_init(2, &ring, 0) != 0; }\n' |
    g++ -x c++ - -o "$probe" -luring
  "$probe" || echo no-uring
}

# The skipped tests of the last run, a line each: name, tab, the reason that the test gave.
skipped_tests() {
  awk '
    / Testing: / { sub(/^.* Testing: /, ""); name = $0; reason = ""; next_is_reason = 0; reported = 0; next }
    next_is_reason { reason = $0; next_is_reason = 0 }
    /: Skipped$/ { next_is_reason = 1 }
    /^\[  SKIPPED \] / && !reported { print name "\t" reason; reported = 1 }
  ' "$builds/Testing/Temporary/LastTest.log"
  sed -n 's/.*Test *#[0-9]*: \([^ ]*\) .*\*\*\*Not Run.*/\1\tnot run/p' "$builds/ctest.log"
}

# Prints each skipped test; false when one of them was not foreseen.
check_skips() {
  local holds name reason condition pattern why expected ok=0
  holds=$(conditions)
  while IFS=$'\t' read -r name reason; do
    expected=
    while read -r condition pattern why; do
      case $condition in ''|'#'*) continue ;; esac
      # shellcheck disable=SC2053 # the right side is a pattern
      if grep -qx -- "$condition" <<< "$holds" && [[ $name == $pattern ]]; then expected=$why; fi
    done < tests/expected_skips.txt
    if [ -n "$expected" ]; then
      echo "skipped, as expected: $name: ${reason:-no reason given} ($expected)"
    else
      echo "SKIPPED, NOT EXPECTED: $name: ${reason:-no reason given}"
      ok=1
    fi
  done < <(skipped_tests)
  return $ok
}

run_tests() {
  stage "tests"
  local status=0
  without_randomisation ctest --test-dir "$builds" --parallel "$jobs" --output-on-failure --no-tests=error \
    2>&1 | tee "$builds/ctest.log" || status=$?
  stage "skipped tests"
  check_skips || status=1
  [ $failed -eq 0 ] || echo "FAILED BEFORE THE TESTS: see above, format"
  stage "summary"
  sed -n '/^[0-9]*% tests passed/,$p' "$builds/ctest.log"
  return $status
}

install_tools
failed=0
if wants format; then
  stage "format"
  check_format || failed=1
fi
if wants tidy; then run_tidy; fi
if wants release || wants address || wants thread; then
  build_all
  run_tests || failed=1
fi
exit $failed
