#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# How long from the command line to the first sample, and how much memory a recording takes: medians
# of several recordings. The start of sampling is in the profile; the first sample follows within
# one period.
set -euo pipefail
# shellcheck source=bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

usage() {
  cat <<'TEXT'
Usage: bench/start.sh [--rounds N] [--seconds S] [--bin DIR]

Needs root and `go tool pprof`. 9 recordings of 2 s by default.
TEXT
}

rounds=9 seconds=2
bin=$(dirname "${BASH_SOURCE[0]}")/../build/release
parse_options "rounds seconds bin" "$@"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for ((round = 1; round <= rounds; ++round)); do
  before=$(date +%s%N)
  "$bin/pkprof" record -d "$seconds" -o "$work/profile" &
  profiler=$!
  # The peak, shortly before the end: it can only be read while the process is there. Looking takes
  # a CPU, which the start is to have for itself.
  peak=0
  sleep 0.5
  while status=$(grep VmHWM "/proc/$profiler/status" 2>/dev/null); do
    peak=$(awk '{ print $2 }' <<<"$status")
    sleep 0.02
  done
  wait "$profiler"
  started=$(go tool pprof -raw "$work/profile" 2>/dev/null | sed -n 's/^Time: \([^ ]* [^ ]* [^ ]*\).*/\1/p')
  echo $((($(date -d "$started" +%s%N) - before) / 1000000)) >>"$work/start"
  echo $((peak / 1024)) >>"$work/memory"
done
printf 'start of sampling after  %4.0f ms\n' "$(median <"$work/start")"
printf 'memory (peak RSS)        %4.0f MiB\n' "$(median <"$work/memory")"
