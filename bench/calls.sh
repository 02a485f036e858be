#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What counting calls costs a program that does little else: dd copies byte by byte, and six calls of
# the kernel's functions for each byte are counted, by `pkprof calls`, by the same without its samples
# (-F 1), by bpftrace, by the kernel's own function profiler (where it is built) and by its function
# tracer, which writes each call to a ring. They count less than pkprof does: bpftrace here the
# function, the profiler function and time, the tracer function and caller; none says for whom.
#
# Machines drift: in each round every one of them has a turn, in an order that rotates, and its median
# slice is compared with that round's without any. The median of the rounds counts. All of them count
# every call; what pkprof and bpftrace counted is checked.
#
# A kernel that lets nothing be attached has none of it; in a guest:
#   tests/vm/run-vm --kernel 6.12 --timeout 3000 --files build/release/pkprof,dd,bpftrace \
#     --add bench/calls.sh:/calls.sh \
#     --add bench/lib.sh:/lib.sh -- bash /calls.sh
set -euo pipefail
# shellcheck source=bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

usage() {
  cat <<'TEXT'
Usage: bench/calls.sh [--rounds N] [--slices N] [--bytes N] [--bin DIR]

Needs root. 5 rounds of 3 slices of 100,000 bytes by default.
TEXT
}

rounds=5 slices=3 bytes=100000
readonly functions=ksys_read,ksys_write,rw_verify_area,vfs_read,vfs_write
readonly each=6 # of them for a byte: rw_verify_area twice
bin='' # a directory; "": where programs are
parse_options "rounds slices bytes bin" "$@"

work=$(mktemp -d)
tracing=/sys/kernel/tracing
[[ -e $tracing/trace ]] || mount -t tracefs none "$tracing"

reset_tracing() {
  [[ ! -e $tracing/function_profile_enabled ]] || echo 0 >"$tracing/function_profile_enabled"
  echo nop >"$tracing/current_tracer"
  echo >"$tracing/set_ftrace_filter"
}
clean_up() {
  reset_tracing
  rm -rf "$work"
}
trap clean_up EXIT

# The slices, each a line of microseconds.
cat >"$work/slices" <<TEXT
for _ in \$(seq $slices); do
  start=\${EPOCHREALTIME/./}
  dd if=/dev/zero of=/dev/null bs=1 count=$bytes status=none
  echo \$((\${EPOCHREALTIME/./} - start))
done >"$work/times"
TEXT

without() { bash "$work/slices"; }
pkprof_as_is() { "${bin:+$bin/}pkprof" calls --json --functions "$functions" -- bash "$work/slices" >"$work/out"; }
pkprof_counting() {
  "${bin:+$bin/}pkprof" calls -F 1 --json --functions "$functions" -- bash "$work/slices" >"$work/out"
}
with_bpftrace() {
  local probes=''
  for name in ${functions//,/ }; do probes+=${probes:+,}kprobe:$name; done
  bpftrace -c "$(command -v bash) $work/slices" -e "$probes { @[func] = count(); }" >"$work/out" 2>&1
}
with_profiler() {
  tr , '\n' <<<"$functions" >"$tracing/set_ftrace_filter"
  echo 1 >"$tracing/function_profile_enabled"
  bash "$work/slices"
  reset_tracing
}
with_tracer() {
  tr , '\n' <<<"$functions" >"$tracing/set_ftrace_filter"
  echo function >"$tracing/current_tracer"
  bash "$work/slices"
  reset_tracing
}

variants=(without pkprof_as_is pkprof_counting with_tracer)
if [[ -e $tracing/function_profile_enabled ]]; then variants+=(with_profiler); fi
if command -v bpftrace >/dev/null; then variants+=(with_bpftrace); fi

# How many calls were counted.
counted() {
  case $1 in
    pkprof*) grep -o '"total":[0-9]*' "$work/out" | cut -d: -f2 ;;
    with_bpftrace) awk -F': ' '/^@/ { sum += $2 } END { print sum }' "$work/out" ;;
    *) echo - ;;
  esac
}

echo "kernel $(uname -r), $bytes bytes a slice, counting $functions"
for ((round = 0; round < rounds; ++round)); do
  for ((i = 0; i < ${#variants[@]}; ++i)); do
    variant=${variants[(i + round) % ${#variants[@]}]}
    "$variant"
    us=$(median <"$work/times")
    echo "$us" >>"$work/$variant"
    printf 'round %d  %-16s %10.0f us  counted %s of %d\n' "$round" "$variant" "$us" "$(counted "$variant")" $((slices * bytes * each))
  done
done

echo
printf '%-16s %10s %14s %s\n' '' 'x without' 'ns a call more' rounds
for variant in "${variants[@]}"; do
  paste "$work/without" "$work/$variant" | awk '{ print $2 / $1 }' >"$work/ratios"
  paste "$work/without" "$work/$variant" | awk -v n="$bytes" -v f="$each" '{ print ($2 - $1) * 1000 / n / f }' >"$work/more"
  printf '%-16s %10.2f %14.0f %s\n' "$variant" "$(median <"$work/ratios")" "$(median <"$work/more")" \
    "$(sort -n "$work/ratios" | awk '{ printf "%.2f ", $1 }')"
done
