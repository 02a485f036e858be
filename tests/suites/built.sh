# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# What needs no quiet machine: unit and golden tests, the page, readers, packages, the tutorials.

# One process for half of them: to start one for each takes longer than they do.
suite_unit() {
  local program part status pids
  for program in unit_tests symbol_tests agent_tests; do
    rm -f "$results/$program".*json
    status=0 pids=()
    for part in 0 1; do
      GTEST_TOTAL_SHARDS=2 GTEST_SHARD_INDEX=$part timeout -k 10 300 "$bin/$program" \
        "--gtest_output=json:$results/$program.$part.json" >"$results/$program.$part.log" 2>&1 &
      pids+=($!)
    done
    for part in 0 1; do
      wait "${pids[$part]}" || status=$?
      grep -vE '^\[ +(RUN|OK) |^\[-+\]|^$' "$results/$program.$part.log" || true
      [[ -s $results/$program.$part.json ]] || fail "$program: half $part gave no result"
    done
    jq -s '{testsuites: map(.testsuites[])}' "$results/$program".[01].json >"$results/$program.json" || true
    judge unit "$status" "$results/$program.json"
  done
}

suite_ctest() {
  local first=$results/ctest.xml second=$results/ctest.again.xml
  rm -f "$first" "$second"
  # The live and accuracy suites want a quiet machine and have their own turn.
  ctest --test-dir "$bin" -j "$(nproc)" -LE 'live|accuracy|unit' --no-tests=error --output-on-failure \
    --output-junit "$PWD/$first" || true
  # Of these, what depends on time is the workloads.
  local again
  again=$(few_that_failed ctest_verdicts "$first")
  [[ -z $again ]] || ctest --test-dir "$bin" -L workloads -R "^(${again//:/|})\$" --output-on-failure \
    --output-junit "$PWD/$second" || true
  if [[ -s $first ]]; then count ctest < <(both_tries ctest_verdicts "$first" "$second"); else fail "ctest: no result"; fi
}

# Tests in JavaScript: what they need is fetched into the build directory, by the lock file that is
# copied there with them. Profiles to open are beside them.
fetch_for() { # SUITE FILE…
  local suite=$1 dir=$results/$1
  shift
  rm -rf "$dir/src" "$dir/tests"
  mkdir -p "$dir/fixtures"
  cp -r "$@" "$dir"
  if ! (cd "$dir" && npm ci --silent); then
    fail "$suite: npm could not fetch what its tests need"
    return 1
  fi
  "$bin/fixtures" "$dir/fixtures" && return
  fail "$suite: no fixtures"
  return 1
}

run_node() { # SUITE TESTS
  local tap=$results/$1.tap status=0
  PKPROF=$PWD/$bin/pkprof FIXTURES=$PWD/$results/$1/fixtures timeout -k 10 300 \
    node --test --test-reporter=tap "$results/$1/$2" | tee "$tap" || status=$?
  count "$1" < <(tap_verdicts "$tap")
  # A file that could not be run at all, too.
  if [[ $status -ne 0 ]] && ! tap_verdicts "$tap" | grep -q '^failed'; then
    fail "$1: ended with status $status"
  fi
}

# The page: its types, and what it does in a real browser.
suite_page() {
  fetch_for page web/package.json web/package-lock.json web/.npmrc web/tsconfig.json web/src web/tests || return 0
  check page:types "$results/page/node_modules/.bin/tsc" --noEmit -p "$results/page"
  run_node page tests/
}

# Exports, in the programs that they are for.
suite_readers() {
  fetch_for readers tests/readers/package.json tests/readers/package-lock.json tests/readers/.npmrc \
    tests/readers/readers.test.mjs || return 0
  run_node readers readers.test.mjs
}

# What docs/TUTORIAL.md and docs/tutorial tell their reader to do, and what he is to see.
suite_tutorial() {
  if ! "$bin/pkprof" doctor --json >/dev/null 2>&1; then
    skip tutorial "pkprof doctor says that it cannot record here"
    return
  fi
  tests/tutorial 2>&1 | tee "$results/tutorial.log" || true
  count_script tutorial
}

# It waits most of its time, and goes on beside the suites before it: those that are not about time.
packages_pid=''
start_packages() {
  tests/packages >"$results/packages.log" 2>&1 &
  packages_pid=$!
}
suite_packages() {
  wait "$packages_pid" || true
  packages_pid=''
  cat "$results/packages.log"
  count_script packages
}
