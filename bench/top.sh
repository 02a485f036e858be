#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What `pkprof top` takes of one CPU while it is looked at: on the machine as it is, beside a thousand
# processes that wake every ten seconds, and beside a thousand that wake every second and compute for a
# moment. What its process takes is the kernel's figure; what it takes in the kernel besides (samples,
# hooks) it says itself, in the profile of its last second. Medians over the rounds.
set -euo pipefail
# shellcheck source=bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

usage() {
  cat <<'TEXT'
Usage: bench/top.sh [--rounds N] [--seconds S] [--processes N] [--bin DIR]

Needs root and python3. 3 rounds of 20 s each and 1,000 processes by default.
TEXT
}

rounds=3 seconds=20 processes=1000
bin=$(dirname "${BASH_SOURCE[0]}")/../build/release
parse_options "rounds seconds processes bin" "$@"
pkprof=$(realpath "$bin")/pkprof

work=$(mktemp -d)
crowd=''
disperse() {
  [[ -z $crowd ]] || kill "$crowd" 2>/dev/null || true
  [[ -z $crowd ]] || wait "$crowd" 2>/dev/null || true
  crowd=''
}
cleanup() {
  disperse
  rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

gather() { # PERIOD: so many seconds between two wakeups of a process
  python3 - "$processes" "$1" <<'PYTHON' &
import os, random, signal, sys, time
children = []
for _ in range(int(sys.argv[1])):
    child = os.fork()
    if child == 0:
        period = float(sys.argv[2])
        time.sleep(random.random() * period)
        while True:
            sum(range(3000))
            time.sleep(period)
    children.append(child)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
try:
    signal.pause()
finally:
    for child in children:
        os.kill(child, signal.SIGKILL)
PYTHON
  crowd=$!
  sleep 3
}

# Runs it for some seconds, and prints the CPU time that its process took in them, in ms; starting and
# ending are not in it. Its last second is saved.
run_top() {
  local before after pid
  rm -f "$work"/pkprof-top-*
  mkfifo "$work/keys"
  (cd "$work" && exec script -qfec "stty cols 80 rows 24; exec $pkprof top" /dev/null <"$work/keys" >/dev/null) &
  exec 9>"$work/keys"
  sleep 5
  pid=$(pgrep -n -x pkprof)
  before=$(cut -d' ' -f1 "/proc/$pid/schedstat")
  sleep "$seconds"
  after=$(cut -d' ' -f1 "/proc/$pid/schedstat")
  printf w >&9
  sleep 1
  printf q >&9
  exec 9>&-
  wait $!
  rm "$work/keys"
  echo $(((after - before) / 1000000))
}

said() { # what of the last second it says to take, in ms: KEY
  "$pkprof" report --json "$work"/pkprof-top-*.pb.gz | jq ".cost.$1 / .duration_ns * 1000"
}

printf '%% of one CPU                    process  samples, hooks      all\n'
for period in none 10 1; do
  [[ $period == none ]] || gather "$period"
  for ((round = 0; round < rounds; ++round)); do
    own=$(awk -v ms="$(run_top)" -v s="$seconds" 'BEGIN { print ms / s / 10 }')
    kernel=$(awk -v ms="$(said kernel_ns)" 'BEGIN { print ms / 10 }')
    echo "$own" >>"$work/own.$period"
    echo "$kernel" >>"$work/kernel.$period"
    awk -v a="$own" -v b="$kernel" 'BEGIN { print a + b }' >>"$work/all.$period"
  done
  disperse
  name="$processes that wake every $period s"
  [[ $period != none ]] || name='as the machine is'
  printf '%-32s %5.2f %15.2f %8.2f\n' "$name" "$(median <"$work/own.$period")" \
    "$(median <"$work/kernel.$period")" "$(median <"$work/all.$period")"
done
