#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# How long a report of a million samples takes, beside `perf report`. Records a perf.data with call
# chains over a mix of processes, makes a pkprof profile for which as many samples were taken, and
# times both reports, to a file, in turn. perf keeps samples one by one and pkprof sums them up while
# recording; that difference is the design, and it is why the sizes of the two files are printed too.
set -euo pipefail
# shellcheck source=bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

usage() {
  cat <<'TEXT'
Usage: bench/report.sh [--samples N] [--rounds N] [--bin DIR]

Needs root and `perf`. 1,000,000 samples and 5 rounds by default.
TEXT
}

samples=1000000 rounds=5
bin=$(dirname "${BASH_SOURCE[0]}")/../build/release
parse_options "samples rounds bin" "$@"

rate=25000
work=$(mktemp -d)
stop() { jobs -p | xargs -r kill 2>/dev/null || true; }
trap 'stop; rm -rf "$work"' EXIT

die() { echo "report.sh: $*" >&2; exit 125; }

[[ -x $bin/make_profile ]] || die "no $bin/make_profile; build first"
command -v perf >/dev/null || die "perf is not installed"

# Something of everything: user code, system calls, many short processes.
busy() {
  while :; do find /usr -xdev -type f -newer /etc/passwd >/dev/null 2>&1 || true; done &
  while :; do tar -cf - /usr/include 2>/dev/null | gzip -1 >/dev/null || true; done &
  while :; do for _ in 1 2 3 4 5 6 7 8; do /bin/true; done; sort /etc/services >/dev/null; done &
  while :; do dd if=/dev/zero bs=64k count=2000 2>/dev/null | sha256sum >/dev/null || true; done &
}

record() {
  local seconds=$((samples / rate / $(nproc) + 2))
  echo "recording $samples samples with perf ($seconds s or more) ..."
  busy
  while :; do
    perf record -q -e cpu-clock -F "$rate" -a -g -o "$work/perf.data" -- sleep "$seconds" \
      >/dev/null 2>&1 || die "perf record failed (root? perf_event_paranoid?)"
    got=$(perf script -i "$work/perf.data" -F time -G 2>/dev/null | wc -l)
    [[ $got -lt $samples ]] || break
    seconds=$((seconds * 3 / 2))
  done
  stop
  wait 2>/dev/null || true
}

# Seconds that the command takes.
timed() {
  local start=$EPOCHREALTIME
  "$@" >"$work/out" 2>"$work/err" || die "$* failed: $(head -1 "$work/err")"
  awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN { print b - a }'
}

record
"$bin/make_profile" "$work/pkprof.pb.gz" "$got"
echo "perf.data:    $got samples, $(stat -c %s "$work/perf.data") bytes"
echo "pkprof.pb.gz: $got samples, $(stat -c %s "$work/pkprof.pb.gz") bytes"

for ((round = 0; round < rounds; ++round)); do
  timed perf report --stdio -i "$work/perf.data" >>"$work/perf"
  timed perf report --stdio --no-children -g none -i "$work/perf.data" >>"$work/flat"
  timed "$bin/pkprof" report "$work/pkprof.pb.gz" >>"$work/pkprof"
done
awk -v a="$(median <"$work/perf")" -v f="$(median <"$work/flat")" -v b="$(median <"$work/pkprof")" 'BEGIN {
  printf "perf report --stdio:              %8.3f s\n", a
  printf "perf report, flat, no callgraphs: %8.3f s\n", f
  printf "pkprof report:                    %8.3f s\n", b
  printf "ratio: %.4f of perf report, %.4f of the flat one (goal: 0.1)\n", b / a, b / f
}'
