#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What a recording with no options gives beside loads: of the samples that were asked for, those that
# were taken (perf throttles the clocks of idle CPUs); the idle time; for how much of the time it
# watched; of asynchronous time, what is UNCLAIMED; and what it says it cost. Medians of several
# recordings, with the least and the most.
set -euo pipefail
# shellcheck source=bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=bench/loads.sh
source "$(dirname "${BASH_SOURCE[0]}")/loads.sh"

usage() {
  cat <<'TEXT'
Usage: bench/default.sh [--rounds N] [--seconds S] [--loads LIST] [--budget PERCENT] [--bin DIR]

Needs root; a load whose programs are not installed is named and left out. 3 recordings of 5 s of
each load in bench/loads.sh by default. Other programs on the machine are in what is measured.
TEXT
}

rounds=3 seconds=5 budget=5
loads=pgbench,redis,nginx,tcp-stream,tcp-rr,udp,write,build,stress-sock,stress-udp,stress-timerfd,stress-hrtimers,stress-aio,stress-membarrier,stress-tlb-shootdown
bin=$(dirname "${BASH_SOURCE[0]}")/../build/release
parse_options "rounds seconds loads budget bin" "$@"
bin=$(realpath "$bin")

work=$(mktemp -d)
clean_up() {
  stop_load
  rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

# "samples idle watched unclaimed cost" of a recording, in percent.
figures() {
  "$bin/pkprof" report --json "$work/profile" | jq -r '
    def percent: 100 * .;
    ([.flows[] | select(.source | test("^(softirq|irq|ipi|work|kthread):"))]) as $async
    | ([$async[].ns] | add // 0) as $all
    | ([$async[] | select(.served == "UNCLAIMED") | .ns] | add // 0) as $unclaimed
    | [(.samples.taken / ((.cpu_ns - .steal_ns) / 1e9 * .frequency_hz) | percent),
       (.idle_ns / .cpu_ns | percent), (.watched | percent),
       (if $all > 0 then $unclaimed / $all else 0 end | percent), (.cost.fraction | percent)]
    | map(tostring) | join(" ")'
}

spread() { # FIELD
  cut -d' ' -f"$1" "$work/figures" | sort -g >"$work/sorted"
  printf ' %7.2f (%.2f to %.2f)' "$(median <"$work/sorted")" "$(head -n 1 "$work/sorted")" "$(tail -n 1 "$work/sorted")"
}

printf '%-22s %s\n' load 'samples taken, % of those asked; idle, % of the time; watched, %; unclaimed, % of asynchronous time; cost, % of all CPU time'
for load in ${loads//,/ }; do
  if ! command -v "$(load_needs "$load")" >/dev/null; then
    echo "$load: $(load_needs "$load") is not installed"
    continue
  fi
  start_load "$load"
  sleep 1.5
  rm -f "$work/figures"
  for ((round = 0; round < rounds; ++round)); do
    "$bin/pkprof" record -a --budget "$budget" -d "$seconds" -q -o "$work/profile"
    figures >>"$work/figures"
  done
  stop_load
  printf '%-22s' "$load"
  for field in 1 2 3 4 5; do spread "$field"; done
  echo
done
