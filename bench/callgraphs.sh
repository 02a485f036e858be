#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What whole user stacks cost a server: redis under its benchmark, its requests a second beside
# pkprof, beside perf with stacks by frame pointers, and beside perf with copies of stacks
# (--call-graph dwarf), each over those with nothing beside it, in turns; and how large the files
# become. Medians.
set -euo pipefail
# shellcheck source=bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=bench/loads.sh
source "$(dirname "${BASH_SOURCE[0]}")/loads.sh"

usage() {
  cat <<'TEXT'
Usage: bench/callgraphs.sh [--rounds N] [--seconds S] [--bin DIR]

Needs root, redis and perf. 5 rounds of 5 s by default, on an otherwise idle machine.
TEXT
}

rounds=5 seconds=5
bin=$(dirname "${BASH_SOURCE[0]}")/../build/release
parse_options "rounds seconds bin" "$@"
bin=$(realpath "$bin")

work=$(mktemp -d)
clean_up() {
  stop_load
  rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

requests() { redis-cli -p 7399 info stats | tr -d '\r' | awk -F: '$1 == "total_commands_processed" { print $2 }'; }

# Requests a second while PROGRAM runs.
rate() { # PROGRAM ARGUMENT…
  local before after start end
  before=$(requests) start=$EPOCHREALTIME
  "$@" >/dev/null 2>&1
  after=$(requests) end=$EPOCHREALTIME
  awk -v n="$((after - before))" -v s="$start" -v e="$end" 'BEGIN { print n / (e - s) }'
}

beside() { # NAME FILE PROGRAM ARGUMENT…
  local alone rate
  alone=$(rate sleep "$seconds")
  rate=$(rate "${@:3}")
  awk -v a="$alone" -v b="$rate" 'BEGIN { print b / a }' >>"$work/$1.rate"
  stat -c %s "$2" >>"$work/$1.bytes"
}

start_load redis
sleep 1
for ((round = 0; round < rounds; ++round)); do
  beside pkprof "$work/a" "$bin/pkprof" record -q -a -F 997 -d "$seconds" -o "$work/a"
  beside pkprof-all "$work/a" "$bin/pkprof" record -q -a -F 997 --budget 100 -d "$seconds" -o "$work/a"
  beside perf-fp "$work/b" perf record -q -a -F 997 -g -o "$work/b" -- sleep "$seconds"
  beside perf-dwarf "$work/b" perf record -q -a -F 997 --call-graph dwarf -o "$work/b" -- sleep "$seconds"
done
printf '%-11s %10s %12s\n' beside requests file
for name in pkprof pkprof-all perf-fp perf-dwarf; do
  printf '%-11s %10.3f %8.2f MiB\n' "$name" "$(median <"$work/$name.rate")" \
    "$(median <"$work/$name.bytes" | awk '{ print $1 / 1048576 }')"
done
