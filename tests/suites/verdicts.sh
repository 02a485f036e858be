# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# Counting what passed: verdicts of GoogleTest, CTest and TAP, and of scripts.

pass() { passed=$((passed + 1)); }
fail() {
  failed=$((failed + 1))
  failures+=("$*")
}

# skip SUITE[:TEST] WHY: counts as skipped if it is expected, as failed otherwise.
skip() {
  local name=$1 pattern
  while read -r pattern _; do
    [[ -n $pattern && $pattern != '#'* ]] || continue
    # shellcheck disable=SC2053 # a pattern it is
    if [[ $name == $pattern ]]; then
      skipped=$((skipped + 1))
      skips+=("$name: $2")
      return
    fi
  done <tests/expected_skips
  fail "$name: skipped, and tests/expected_skips does not allow it: $2"
}

# Runs a command as one test.
check() {
  local name=$1
  shift
  if "$@"; then pass; else fail "$name"; fi
}

# Reads "passed|again|failed|skipped TEST" lines.
count() {
  local suite=$1 verdict name
  while read -r verdict name; do
    case $verdict in
      passed) pass ;;
      again)
        pass
        agains+=("$suite:$name")
        ;;
      failed) fail "$suite:$name" ;;
      skipped) skip "$suite:$name" "the test skipped itself" ;;
    esac
  done
}

gtest_verdicts() { # JSON
  jq -r '.testsuites[] | .name as $s | .testsuite[]
    | select(.status == "RUN")
    | (if has("failures") then "failed" elif .result == "SKIPPED" then "skipped" else "passed" end)
      + " " + $s + "." + .name' "$1"
}

# The verdicts of the first try, with what came of the second where there was one.
both_tries() { # VERDICTS FIRST SECOND
  awk 'FILENAME == ARGV[1] { if ($1 == "passed") good[$2]; next }
    $1 == "failed" && $2 in good { $1 = "again" } { print }' \
    <([[ ! -s $3 ]] || "$1" "$3") <("$1" "$2")
}

count_gtest() { # SUITE JSON
  count "$1" < <(both_tries gtest_verdicts "$2" "${2%.json}.again.json")
}

# A filter of the few that failed; nothing where there is none, or too many for chance.
few_that_failed() { # VERDICTS FILE
  [[ ! -s $2 ]] || "$1" "$2" | awk '$1 == "failed" { print $2 }' |
    awk 'NR > 5 { exit } { all = all sep $1; sep = ":" } END { if (NR <= 5) print all }'
}

ctest_verdicts() { # JUNIT
  sed -n 's/.*<testcase name="\([^"]*\)".* status="\([a-z]*\)".*/\2 \1/p' "$1" |
    sed 's/^run /passed /; s/^fail /failed /; s/^\(notrun\|disabled\) /skipped /'
}

# "ok 3 - name" lines; one that sums up a group of tests says so below itself.
tap_verdicts() { # TAP
  awk '/^ *(not )?ok [0-9]+ - / {
      verdict = /^ *not/ ? "failed" : "passed"
      name = $0; sub(/^ *(not )?ok [0-9]+ - /, "", name); gsub(/[^[:alnum:]]+/, "-", name) }
    /^ *type: .suite./ { name = "" }
    /^ *\.\.\.$/ { if (name != "") print verdict, name; name = "" }' "$1"
}

# A script that says "== passed NAME", or failed, or skipped.
count_script() { # SUITE
  local log=$results/$1.log
  count "$1" < <(sed -nE 's/^== (passed|failed|skipped) /\1 /p' "$log")
  grep -q '^== ' "$log" || fail "$1: no result"
}
