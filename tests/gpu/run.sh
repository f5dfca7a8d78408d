#!/usr/bin/env bash
# What a machine with a GPU can prove, without a network, in under ten minutes:
#
#   tests/gpu/run.sh                          all parts: build conformance trainer sanitizer bench training
#   tests/gpu/run.sh --skip PART ...          all but these
#   tests/gpu/run.sh --build DIR              the build's folder (default: build-tests/gpu)
#   tests/gpu/run.sh --storage DIR            the training's storage tier (default: a fresh folder under TMPDIR)
#   tests/gpu/run.sh --fake                   small, on the fake run-time: tests the script, measures nothing
#
# Prints a table, a line for each part, and fails when a part failed.
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=$root/build-tests/gpu
storage=
fake=0
skipped=()
while [ $# -gt 0 ]; do
  case $1 in
    --skip) skipped+=("$2"); shift ;;
    --build) build=$2; shift ;;
    --storage) storage=$2; shift ;;
    --fake) fake=1 ;;
    --help) sed -n 's/^# \{0,1\}//p' "$0" | sed 1d; exit 0 ;;
    *) echo "unknown: $1; see --help" >&2; exit 2 ;;
  esac
  shift
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
table=()
failed=0

row() { table+=("$(printf '  %-34s %-9s %5s s  %s' "$1" "$2" "$3" "${4:-}")"); }

wants() {
  local part
  for part in "${skipped[@]:-}"; do
    if [ "$part" = "$1" ]; then row "$1" skipped 0; return 1; fi
  done
}

on_device() {
  if [ $fake = 1 ]; then LD_PRELOAD=$build/tests/libfake_cuda.so "$@"; else "$@"; fi
}

# part NAME LIMIT COMMAND...: runs it, its output in a file and on the screen when it fails.
part() {
  local name=$1 limit=$2 start=$SECONDS status=0
  shift 2
  echo "=== $name"
  # A function can't be run by timeout: a watcher ends its process group when it takes too long.
  set -m
  "$@" >"$work/$name.log" 2>&1 </dev/null &
  local job=$!
  { sleep "$limit" && kill -- -"$job"; } >/dev/null 2>&1 </dev/null &
  local watcher=$!
  set +m
  wait "$job" || status=$?
  kill -- -"$watcher" 2>/dev/null
  if [ $status -eq 0 ]; then
    row "$name" passed $((SECONDS - start)) "$(note "$name")"
  else
    tail -n 40 "$work/$name.log"
    row "$name" FAILED $((SECONDS - start)) "exit code $status"
    failed=1
  fi
}

# One line on what a part found.
note() {
  case $1 in
    conformance | trainer) sed -n 's/^\[  PASSED  \] \(.*\)\./\1 passed/p' "$work/$1.log" | paste -sd ';' ;;
    training) sed -n 's/^result: //p' "$work/$1.log" ;;
  esac
}

do_build() {
  cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DFOREBAY_CUDA=ON -DFOREBAY_WERROR=ON &&
    cmake --build "$build" --target test_cuda test_train_gpt_cuda bench_cuda train_gpt
}

# A suite that is skipped for want of a GPU must not count as passed.
gpu_tests() {
  on_device "$build/tests/$1" --gtest_filter="$2" | tee "$work/tests.log"
  [ "${PIPESTATUS[0]}" -eq 0 ] && ! grep -q 'SKIPPED' "$work/tests.log" && grep -q PASSED "$work/tests.log"
}

conformance_filter='gpu/*:device_on_gpu.*:update_on_gpu.*'
trainer_filter='train_gpt_on_gpu.*'
[ $fake = 1 ] && trainer_filter='train_gpt_on_gpu.the_engine*' # products of a loop take too long

do_conformance() { gpu_tests test_cuda "$conformance_filter"; }
do_trainer() { gpu_tests test_train_gpt_cuda "$trainer_filter"; }

do_sanitizer() {
  local tool
  for tool in memcheck racecheck synccheck; do
    compute-sanitizer --tool $tool --error-exitcode 1 "$build/tests/test_cuda" \
      --gtest_filter='update_on_gpu.kernels*' || return 1
    compute-sanitizer --tool $tool --error-exitcode 1 "$build/tests/test_train_gpt_cuda" \
      --gtest_filter='train_gpt_on_gpu.gradients_are_the_cpus_in_fp32' || return 1
  done
}

do_bench() {
  if [ $fake = 1 ]; then on_device "$build/bench/bench_cuda" --mebibytes 4 --rounds 1; else
    on_device "$build/bench/bench_cuda" --mebibytes 1024
  fi
}

value() { grep '"summary"' "$work/$1.json" | sed -n 's/.*"'"$2"'" *: *"\{0,1\}\([^",}]*\)"\{0,1\}.*/\1/p'; }

# The same training through tiers, storage in use, and with all in the GPU's memory: the same bits, and how fast.
do_training() {
  # 0.8e9 parameters: 13 GiB with gradients and Adam, and 5 GiB of activations.
  local model=(--layers 16 --width 2048 --heads 16 --context 512 --batch 8 --steps 5 --matmul tf32)
  local memory=(--device-memory 3GiB --host-memory 6GiB)
  if [ $fake = 1 ]; then
    model=(--layers 1 --width 16 --heads 2 --context 8 --batch 1 --steps 2)
    memory=(--device-memory 36MiB --host-memory 8MiB)
  fi
  mkdir -p "${storage:=$work/storage}" "$work/text"
  cp "$root"/*.md "$work/text" # a text that every machine has
  local common=(--device cuda --quiet --data "$work/text" "${model[@]}")
  on_device "$build/examples/train_gpt" "${common[@]}" "${memory[@]}" --storage "$storage" --json "$work/tiers.json" &&
    on_device "$build/examples/train_gpt" "${common[@]}" --resident --json "$work/resident.json" || return 1
  local digest
  digest=$(value tiers digest)
  echo "result: $(value tiers tokens_per_second | xargs printf %.0f) tokens/s through tiers," \
    "$(value resident tokens_per_second | xargs printf %.0f) resident, digest $digest"
  [ -n "$digest" ] && [ "$digest" = "$(value resident digest)" ] || { echo "the bits DIFFER"; return 1; }
}

if wants build; then part build 300 do_build; fi
if wants conformance; then part conformance 60 do_conformance; fi
if wants trainer; then part trainer 60 do_trainer; fi
if wants sanitizer; then
  if command -v compute-sanitizer >/dev/null 2>&1 && [ $fake = 0 ]; then
    part sanitizer 120 do_sanitizer
  else
    row sanitizer skipped 0 "no compute-sanitizer here"
  fi
fi
if wants bench; then part bench 60 do_bench; fi
if wants training; then part training 200 do_training; fi

[ -f "$work/bench.log" ] && printf '\n' && cat "$work/bench.log"
printf '\nOn %s%s, %d s\n' "$(command -v nvidia-smi >/dev/null && nvidia-smi --query-gpu=name,driver_version --format=csv,noheader |
  head -n 1)" "$([ $fake = 1 ] && echo 'the fake run-time')" $SECONDS
printf '%s\n' "${table[@]}"
[ $failed -eq 0 ] && echo "all parts passed"
exit $failed
