#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What it costs to know what threads wait for, beside others that tell the stacks of whoever waits and
# of whoever wakes: two processes on one CPU that wake each other by turns (perf bench sched pipe), under
# each of them in turn.
set -euo pipefail
# shellcheck source=bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

usage() {
  cat <<'TEXT'
Usage: bench/waits.sh [--rounds N] [--loops N] [--bin DIR]

Needs root, perf and bpftrace; 5 rounds of 150000 round trips. Prints medians of the rate as a ratio to
that under none.
TEXT
}

rounds=5 loops=150000
bin=$(dirname "${BASH_SOURCE[0]}")/../build/release
parse_options "rounds loops bin" "$@"
bin=$(realpath "$bin")

work=$(mktemp -d)
profiler=''
clean_up() {
  [[ -z $profiler ]] || kill "$profiler" 2>/dev/null || true
  rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

readonly script='
tracepoint:sched:sched_waking { @waker[args->pid] = kstack; }
tracepoint:sched:sched_switch {
  @since[args->prev_pid] = nsecs; @kernel[args->prev_pid] = kstack; @user[args->prev_pid] = ustack;
  if (@since[args->next_pid]) {
    @off[@kernel[args->next_pid], @user[args->next_pid], @waker[args->next_pid]] =
      sum(nsecs - @since[args->next_pid]);
    delete(@since[args->next_pid]);
  }
}'

start_profiler() {
  case $1 in
    pkprof) PKPROF_CONFIG=/dev/null "$bin/pkprof" record -a -q --budget 100 -o "$work/profile" ;;
    waits) PKPROF_CONFIG=/dev/null "$bin/pkprof" record -a -q --budget 100 --resource wait -o "$work/profile" ;;
    perf) perf record -q -a -g -e sched:sched_switch,sched:sched_waking -o "$work/perf.data" ;;
    bpftrace) bpftrace -e "$script" ;;
  esac >/dev/null 2>&1 &
  profiler=$!
  sleep 2.5
}

end_profiler() {
  pkill -INT -P "$profiler" || kill -INT "$profiler"
  wait "$profiler" || true
  profiler=''
  rm -f "$work/perf.data"
}

rate() { taskset -c 0 perf bench sched pipe -l "$loops" 2>&1 | awk '/ops.sec/ { print $1 }'; }

readonly variants=(pkprof waits perf bpftrace)
for ((i = 0; i < rounds; ++i)); do
  for variant in "${variants[@]}"; do
    plain=$(rate)
    start_profiler "$variant"
    under=$(rate)
    end_profiler
    awk -v u="$under" -v p="$plain" 'BEGIN { print u / p }' >>"$work/$variant"
  done
done
for variant in "${variants[@]}"; do
  printf '%-9s %.3f\n' "$variant" "$(median <"$work/$variant")"
done
