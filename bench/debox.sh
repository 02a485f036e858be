#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What it costs to have each system call recorded: getppid and a read of 4 KiB from memory, plain, with
# DeBox (marked by the program; all calls recorded; the table of a program that knows nothing of it),
# and with others who count or time system calls. And what other processes pay meanwhile, beside what
# an empty program on every call's beginning and end costs them.
#
# Also records with the kernel's functions that a call entered, where functions can be attached to, and
# the kernel's own function_graph tracer on the same. A guest has them:
#   tests/vm/run-vm --kernel 6.12 --timeout 3000 \
#     --files build/release/pkprof,build/release/debox_calls,build/release/libdebox.so.1 \
#     --add bench/debox.sh:/debox.sh --add bench/lib.sh:/lib.sh -- bash /debox.sh --bin /usr/local/bin
#
# Machines drift: in each round every one of them has a turn, in an order that rotates, and is compared
# with that round's plain one. Medians over the rounds.
set -euo pipefail
# shellcheck source=bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

usage() {
  cat <<'TEXT'
Usage: bench/debox.sh [--rounds N] [--seconds S] [--bin DIR]

Needs root. 7 rounds, 3 slices of 0.2 s each, by default. bpftrace, perf and strace where they are.
TEXT
}

rounds=7 seconds=0.2
bin=$(dirname "${BASH_SOURCE[0]}")/../build/release
parse_options "rounds seconds bin" "$@"

work=$(mktemp -d)
held=''
readonly functions='__x64_sys_*,ksys_*,vfs_*,rw_verify_area'
tracing=/sys/kernel/tracing
[[ -e $tracing/trace ]] || mount -t tracefs none "$tracing" 2>/dev/null || true
reset_tracing() {
  echo nop >"$tracing/current_tracer"
  echo >"$tracing/set_ftrace_filter"
}
clean_up() {
  [[ -z $held ]] || kill "$held" 2>/dev/null || true
  [[ " ${ways[*]:-} " != *" function-graph "* ]] || reset_tracing
  rm -rf "$work"
}
trap clean_up EXIT

# Each says what a call takes, ns, last on standard error.
under() { # HOW CALL
  local command="$bin/debox_calls --call $2 --mode plain --seconds $seconds --slices 3"
  # shellcheck disable=SC2086 # words
  case $1 in
    plain) $command ;;
    marked | all) "$bin/pkprof" debox --serve -- ${command/plain/$1} ;;
    table) "$bin/pkprof" debox -- $command >/dev/null ;;
    traced) "$bin/pkprof" debox --serve --trace "$functions" -- ${command/plain/marked} --trace ;;
    traced-all) "$bin/pkprof" debox --serve --trace "$functions" -- ${command/plain/all} --trace ;;
    function-graph)
      # It knows getppid by another of its function's names.
      tr , '\n' <<<"$functions,__do_sys_getppid" >"$tracing/set_ftrace_filter"
      echo function_graph >"$tracing/current_tracer"
      $command
      reset_tracing
      ;;
    bpftrace)
      bpftrace -c "$command" -e 'tracepoint:raw_syscalls:sys_enter /pid == cpid/ { @s[tid] = nsecs; }
        tracepoint:raw_syscalls:sys_exit /@s[tid]/ { @[args->id] = hist(nsecs - @s[tid]); delete(@s[tid]); }' >/dev/null
      ;;
    perf-trace) perf trace -s -o /dev/null -- $command ;;
    strace-c) strace -c -o /dev/null $command ;;
    # What others pay.
    # Served and asleep: what is attached is attached, and takes no CPU of its own.
    beside-marked) beside "$bin/pkprof" debox --serve -- "$bin/debox_calls" --mode asleep ;;
    beside-all) beside "$bin/pkprof" debox -- sleep 20 ;;
    # Without the recording that tells what is done for calls elsewhere: the hooks alone.
    beside-hooks) beside "$bin/pkprof" debox --no-async -- sleep 20 ;;
    beside-empty) beside "$bin/debox_calls" --mode empty-hooks ;;
  esac 2>&1 | grep -E '^[0-9.]+$' | tail -1
}

# The plain command while another one runs.
beside() {
  "$@" >/dev/null 2>&1 &
  held=$!
  sleep 1
  $command
  pkill -P "$held" || true # the command that it serves, which would go on
  kill "$held" 2>/dev/null || true
  wait "$held" 2>/dev/null || true
  held=''
}

have() { command -v "$1" >/dev/null; }
ways=(plain marked all table)
! have bpftrace || ways+=(bpftrace)
! have perf || ways+=(perf-trace)
! have strace || ways+=(strace-c)
if grep -qs function_graph "$tracing/available_tracers"; then ways+=(traced traced-all function-graph); fi
ways+=(beside-marked beside-all beside-hooks beside-empty)

for ((round = 0; round < rounds; ++round)); do
  for call in getppid read; do
    for ((i = 0; i < ${#ways[@]}; ++i)); do
      way=${ways[(i + round) % ${#ways[@]}]}
      ns=$(under "$way" "$call")
      echo "$ns" >>"$work/$call.$way"
      echo "$round $ns" >>"$work/$call.$way.rounds"
    done
  done
  echo "round $((round + 1)) of $rounds" >&2
done

for call in getppid read; do
  printf '\n%s, ns a call (median of %d rounds)\n' "$call" "$rounds"
  for way in "${ways[@]}"; do
    added=$(awk 'NR == FNR { plain[$1] = $2; next } { print $2 - plain[$1] }' \
      "$work/$call.plain.rounds" "$work/$call.$way.rounds" | median)
    printf '  %-14s %10.1f   %+10.1f\n' "$way" "$(median <"$work/$call.$way")" "$added"
  done
done
