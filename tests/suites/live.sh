# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# On the real kernel, as root: the live and the accuracy suite.

# Whether the host took so much since TICKS that what is measured of CPUs may be of the host.
was_disturbed() { # TICKS
  awk -v percent="$(stolen "$1")" 'BEGIN { exit !(percent > 2) }'
}

# A GoogleTest program of ours, as root. Tests that BESIDE names run before the others, two at once.
run_gtest() { # SUITE PROGRAM [BESIDE]
  local suite=$1 program=$2 beside='' part parts=() status=0 before
  before=$(cpu_ticks)
  if [[ ! -x $bin/$program ]]; then
    fail "$suite: $bin/$program is missing"
    return
  fi
  if [[ -n $no_bpf ]]; then
    skip "$suite" "$no_bpf"
    return
  fi
  live_ran=yes
  rm -f "$results/$suite".*json
  [[ -z ${3:-} ]] || beside=$(grep -v '^#' "$3" | paste -sd:)
  if [[ -n $beside ]]; then
    gtest_part "$suite.1" "$program" "--gtest_filter=$beside" 2 0 >"$results/$suite.1.log" 2>&1 &
    gtest_part "$suite.2" "$program" "--gtest_filter=$beside" 2 1 || status=$?
    wait $! || status=$?
    cat "$results/$suite.1.log"
    parts=(1 2)
  fi
  gtest_part "$suite.3" "$program" "--gtest_filter=*-$beside" || status=$?
  for part in "${parts[@]}" 3; do
    [[ -s $results/$suite.$part.json ]] || fail "$suite: part $part gave no result"
  done
  jq -s '{testsuites: map(.testsuites[])}' "$results/$suite".[123].json >"$results/$suite.json" || true
  local filter last=$results/$suite.json try
  for try in 1 2; do
    filter=$(few_that_failed gtest_verdicts "$last")
    if [[ -z $filter ]]; then break; fi
    if [[ $try -eq 2 ]] && ! was_disturbed "$before"; then break; fi
    last=$results/$suite.try.$try.json
    say "Suite $suite: again $filter"
    $as_root env -u PKPROF_ACCURACY_PAGE timeout -k 10 900 "$bin/$program" "--gtest_filter=$filter" \
      "--gtest_output=json:$last" || true
  done
  [[ $last == "$results/$suite.json" ]] ||
    jq -s '{testsuites: map(.testsuites[])}' "$results/$suite".try.*.json >"$results/$suite.again.json" || true
  judge "$suite" "$status" "$results/$suite.json"
}

gtest_part() { # NAME PROGRAM FILTER [SHARDS SHARD]
  $as_root env GTEST_TOTAL_SHARDS="${4:-1}" GTEST_SHARD_INDEX="${5:-0}" \
    timeout -k 10 1800 "$bin/$2" "$3" "--gtest_output=json:$results/$1.json"
}

# A status that the counted results do not explain is a failure of its own (a crash, a timeout).
judge() { # SUITE STATUS JSON
  local before=$((failed + ${#agains[@]}))
  [[ ! -s $3 ]] || count_gtest "$1" "$3"
  if [[ ! -s $3 || ($2 -ne 0 && $((failed + ${#agains[@]})) -eq $before) ]]; then fail "$1: ended with status $2"; fi
}

suite_live() { run_gtest live live_tests tests/live/beside; }
suite_accuracy() { run_gtest accuracy accuracy_tests; }
