#!/usr/bin/env bash
# Installs what is missing, builds, trains the default model twice - through the engine on the emulated device, with
# tiers smaller than the model, and in plain memory - and compares the two runs. Arguments go to both runs, such as
#
#   examples/run.sh --steps 40 --device-memory 48MiB --data ~/books
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
. "$root/tests/packages.sh"
build=$root/build

need_build_tools
need_example_libraries
install_missing
check_cmake_version

configure_and_build() {
  cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DFOREBAY_TESTS=OFF -DFOREBAY_BENCHMARKS=OFF >"$log" 2>&1 &&
    if [ -t 1 ]; then cmake --build "$build" --target train_gpt; else cmake --build "$build" --target train_gpt >>"$log" 2>&1; fi
}
echo "Building (the first time takes a few minutes)"
mkdir -p "$build"
log=$build/build.log
if ! configure_and_build; then
  [ -t 1 ] || grep -A 20 FAILED "$log" >&2 || tail -n 20 "$log" >&2
  echo "The build failed; see above and $log" >&2
  exit 1
fi

results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
train=$build/examples/train_gpt

printf '\nTraining through the engine: device and host memory smaller than the model, the rest on storage\n'
"$train" --device emulated "$@" --json "$results/engine.json"
printf '\nTraining the same model in plain memory\n'
"$train" "$@" --resident --json "$results/resident.json"

# value KEY: its value on each line of standard input that has it. The files hold one flat object a line.
value() {
  sed -n 's/.*"'"$1"'" *: *"\{0,1\}\([^",}]*\)"\{0,1\}.*/\1/p'
}
steps() { grep -v '"summary"' "$results/$1.json" | value "$2"; }
summary() { grep '"summary"' "$results/$1.json" | value "$2"; }
mib() { awk -v n="$1" 'BEGIN { printf "%.1f MiB", n / 1048576 }'; }
row() { printf '  %-26s %20s %20s\n' "$@"; }

steps engine loss_bits >"$results/engine.bits"
steps resident loss_bits >"$results/resident.bits"
count=$(wc -l <"$results/engine.bits")
losses=$(awk -v n="$count" '{ l[NR] = $1 } END { for (i = NR > 5 ? NR - 4 : 1; i <= NR; ++i) { s += l[i]; ++k }
                             printf "%.4f to %.4f", l[1], s / k }' <(steps engine loss))

printf '\nComparison of %d steps\n' "$count"
row '' 'through the engine' 'plain memory'
row parameters "$(summary engine parameters)" "$(summary resident parameters)"
row 'weights, gradients, Adam' "$(mib "$(summary engine state_bytes)")" "$(mib "$(summary resident state_bytes)")"
row 'device memory, peak' "$(mib "$(summary engine device_peak_bytes)")" -
row 'device memory, capacity' "$(mib "$(summary engine device_capacity)")" -
row 'host memory, peak' "$(mib "$(summary engine host_peak_bytes)")" -
row 'host memory, capacity' "$(mib "$(summary engine host_capacity)")" -
row tokens/s "$(summary engine tokens_per_second | xargs printf %.1f)" "$(summary resident tokens_per_second | xargs printf %.1f)"
echo "  loss: $losses (the first step, and the mean of the last five)"

status=0
if [ "$count" -gt 0 ] && cmp -s "$results/engine.bits" "$results/resident.bits"; then
  echo "  loss of each step: equal in every bit"
else
  echo "  loss: DIFFERENT, first at step $(paste "$results/engine.bits" "$results/resident.bits" | awk '$1 != $2 { print NR; exit }')"
  status=1
fi
digest=$(summary engine digest)
if [ -n "$digest" ] && [ "$digest" = "$(summary resident digest)" ]; then
  echo "  weights and optimizer state: equal in every bit (digest $digest)"
else
  echo "  weights and optimizer state: DIFFERENT ($digest and $(summary resident digest))"
  status=1
fi
exit $status
