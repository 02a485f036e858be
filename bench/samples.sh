#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What a sample takes, by the kernel's own count of its programs' time: pkprof's sampler, the same with
# user stacks by frame pointers alone (by-fp), and bpftrace's with both stacks; at the same frequency,
# in turns over the same load; medians with the least and the most. What the clock's interrupt takes
# is the same for all, and not in it.
set -euo pipefail
# shellcheck source=bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=bench/loads.sh
source "$(dirname "${BASH_SOURCE[0]}")/loads.sh"

usage() {
  cat <<'TEXT'
Usage: bench/samples.sh [--rounds N] [--seconds S] [--loads LIST] [--bin DIR] [--other PKPROF]

Needs root and bpftrace; pgbench needs PostgreSQL's programs. LIST is of bench/loads.sh's names, with
commas. PKPROF is another build, to be compared, too. 7 rounds of 2 s by default, on an
otherwise idle machine.
TEXT
}

rounds=7 seconds=2 loads=loop,dd,udp,pgbench other=''
bin=$(dirname "${BASH_SOURCE[0]}")/../build/release
parse_options "rounds seconds loads bin other" "$@"
bin=$(realpath "$bin")

work=$(mktemp -d)
clean_up() {
  stop_load
  sysctl -qw kernel.bpf_stats_enabled=0
  rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

# Runs, and nanoseconds, of all programs on perf events that NAME names, or of one's that is not ours.
ran() { # NAME
  bpftool prog show --json | jq -r --arg name "$1" '
    [.[] | select(.type == "perf_event" and ((.name // "") | startswith($name)))]
    | "\(map(.run_cnt // 0) | add // 0) \(map(.run_time_ns // 0) | add // 0)"'
}

# Mean time of a sample, ns, while PROFILER samples.
sample_ns() { # PROGRAM-NAME PROFILER…
  local name=$1 before after profiler
  shift
  "$@" >/dev/null 2>&1 &
  profiler=$!
  until [[ $(ran "$name" | cut -d' ' -f1) -gt 100 ]]; do
    kill -0 "$profiler" 2>/dev/null || return 1
    sleep 0.1
  done
  sleep 1 # what is new to it
  before=$(ran "$name")
  sleep "$seconds"
  after=$(ran "$name")
  kill -KILL "$profiler" # bpftrace would look up each stack's names first
  wait "$profiler" 2>/dev/null || true
  awk -v b="$before" -v a="$after" 'BEGIN { split(b, x, " "); split(a, y, " "); print (y[2] - x[2]) / (y[1] - x[1]) }'
}

sysctl -qw kernel.bpf_stats_enabled=1
printf '%-8s %-10s %8s %8s %8s\n' load profiler median least most
for load in ${loads//,/ }; do
  if ! command -v "$(load_needs "$load")" >/dev/null; then
    echo "$load: $(load_needs "$load") is not installed"
    continue
  fi
  start_load "$load"
  sleep 1
  for ((round = 0; round < rounds; ++round)); do
    sample_ns pk_sample "$bin/pkprof" record -a -F 997 -q --budget 100 -o "$work/profile" >>"$work/$load.pkprof"
    sample_ns pk_sample env PKPROF_NO_UNWIND=1 "$bin/pkprof" record -a -F 997 -q --budget 100 -o "$work/profile" >>"$work/$load.by-fp"
    [[ -z $other ]] || sample_ns pk_sample "$other" record -a -F 997 -q --budget 100 -o "$work/profile" >>"$work/$load.other"
    sample_ns 997 bpftrace -e 'profile:hz:997 { @[kstack, ustack, comm] = count(); }' >>"$work/$load.bpftrace"
  done
  stop_load
  for profiler in pkprof by-fp other bpftrace; do
    [[ -s $work/$load.$profiler ]] || continue
    sort -g "$work/$load.$profiler" >"$work/sorted"
    printf '%-8s %-10s %8.0f %8.0f %8.0f\n' "$load" "$profiler" "$(median <"$work/sorted")" \
      "$(head -n 1 "$work/sorted")" "$(tail -n 1 "$work/sorted")"
  done
done
