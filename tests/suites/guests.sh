# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# On other kernels, in QEMU guests.

# Boots a guest, in the background: each takes one CPU, so all that are wanted run side by side.
declare -A guest_pid=() guest_skip=()
start_guest() { # VERSION
  local suite=vm-$1 log=$results/vm-$1.fetch status=0
  scripts/fetch-kernel "$1" >"$log" 2>&1 || status=$?
  if [[ $status -eq 77 ]]; then
    guest_skip[$1]=$(tail -n 1 "$log")
    return
  fi
  rm -rf "${results:?}/$suite"
  # An emulated CPU is slow: a part of the suite that shows each mechanism, unless all is wanted:
  # two hours where the host has one CPU for each guest.
  local filter='*' limit=10800
  if [[ ${VM:-} != all ]]; then
    limit=600
    filter=$(awk -v kernel="$1" '!/^#/ && (NF == 1 || $2 == kernel) { print $1 }' tests/vm/suite | paste -sd:)
  fi
  in_guest "$1" "$results/$suite" "$limit" "$filter" >"$results/$suite.log" 2>&1 &
  guest_pid[$1]=$!
}

in_guest() { # VERSION OUT SECONDS FILTER
  tests/vm/run-live --kernel "$1" --timeout "$3" --out "$2" --mem 3072 -- "--gtest_filter=$4"
}

accuracy_in_guest() { # VERSION
  local suite=vm-$1-accuracy status=0 offloaded=()
  [[ $1 != 6.12 ]] || offloaded=(--append rcu_nocbs=all)
  say "Suite $suite"
  LIVE_TESTS=$bin/accuracy_tests tests/vm/run-live --kernel "$1" --timeout 10800 --mem 3072 "${offloaded[@]}" \
    --out "$results/$suite" || status=$?
  judge "$suite" "$status" "$results/$suite/results.json"
}

# What was begun and is not waited for any more.
stop_started() {
  local pid
  for pid in "$packages_pid" "${guest_pid[@]}"; do [[ -z $pid ]] || kill "$pid"; done
}

start_guests() {
  local version
  [[ -x $bin/live_tests ]] || return 0
  for version in 6.1 6.12; do
    [[ -z ${wanted[vm-$version]:-} ]] || start_guest "$version"
  done
}

run_guest() { # VERSION
  local suite=vm-$1 status=0 filter
  live_ran=yes
  if [[ ! -x $bin/live_tests ]]; then
    fail "$suite: $bin/live_tests is missing"
    return
  fi
  [[ ${#guest_pid[@]} -gt 0 || ${#guest_skip[@]} -gt 0 ]] || start_guests
  if [[ -n ${guest_skip[$1]:-} ]]; then
    skip "$suite" "${guest_skip[$1]}"
    return
  fi
  tail -n +1 -f "$results/$suite.log" --pid="${guest_pid[$1]}" &
  wait "${guest_pid[$1]}" || status=$?
  guest_pid[$1]=''
  wait $! || true
  filter=$(few_that_failed gtest_verdicts "$results/$suite/results.json")
  if [[ -n $filter ]]; then
    say "Suite $suite: again $filter"
    in_guest "$1" "$results/$suite.again" 300 "$filter" || true
    cp "$results/$suite.again/results.json" "$results/$suite/results.again.json" || true
  fi
  judge "$suite" "$status" "$results/$suite/results.json"
  [[ ${VM:-} != all ]] || accuracy_in_guest "$1"
  if [[ -n $no_bpf ]]; then
    skip "$suite:code" "$no_bpf"
  else
    start_comparison "$1"
  fi
}

# What the guest's verifier left of our code, beside the guest that is still at work.
declare -A comparison_pid=()
start_comparison() { # VERSION
  {
    $as_root tests/vm/compare-code --kernel "$1" &&
      { [[ ${VM:-} != all ]] || $as_root tests/vm/compare-code --kernel "$1" --threads; }
  } >"$results/code-$1.log" 2>&1 &
  comparison_pid[$1]=$!
}

judge_comparisons() {
  local version status
  for version in "${!comparison_pid[@]}"; do
    status=0
    wait "${comparison_pid[$version]}" || status=$?
    cat "$results/code-$version.log"
    if [[ $status -eq 0 ]]; then pass; else fail "vm-$version:code"; fi
  done
}

suite_vm-6.1() { run_guest 6.1; }
suite_vm-6.12() { run_guest 6.12; }
