# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What the benchmarks in bash share; to be sourced.

# parse_options "NAME…" ARGUMENT…: each `--NAME VALUE` sets the variable NAME. Help and what is wrong
# end the program, which has a function `usage`.
parse_options() {
  local names=" $1 " name
  shift
  while [[ $# -gt 0 ]]; do
    name=${1#--}
    if [[ $1 == --help || $1 == -h ]]; then
      usage
      exit 0
    elif [[ $1 != --* || $names != *" $name "* || $# -lt 2 ]]; then
      usage >&2
      exit 2
    fi
    printf -v "$name" %s "$2"
    shift 2
  done
}

# Of numbers, one a line.
median() { sort -g | awk '{ v[NR] = $1 } END { print (NR % 2) ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }
