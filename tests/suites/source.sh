# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# What needs no build, or looks at sources: format, shell, layers, tidy.

sources() { git ls-files --cached --others --exclude-standard -- "$@"; }

# The kernel side is written in the kernel's style, for which there is no .clang-format here.
suite_format() {
  local files
  mapfile -t files < <(sources '*.h' '*.hpp' '*.cc' '*.c' ':!bpf' ':!include')
  check format clang-format-19 --dry-run -Werror "${files[@]}"
}

suite_shell() {
  local files
  mapfile -t files < <(sources | xargs grep -lE '^#!/bin/(ba)?sh' --)
  check shell shellcheck -x "${files[@]}"
}

suite_layers() { check layers tests/layers; }

# Those that changed since the last commit but one; clang-tidy takes longer than the compiler.
changed_sources() {
  if [[ ${TIDY:-} == all ]] || ! git rev-parse -q --verify HEAD~1 >/dev/null; then
    sources 'src/*.cc' 'tests/*.cc' 'bench/*.cc'
  else
    {
      git diff --name-only --diff-filter=d HEAD~1 -- 'src/*.cc' 'tests/*.cc' 'bench/*.cc'
      git ls-files --others --exclude-standard -- 'src/*.cc' 'tests/*.cc' 'bench/*.cc'
    } | sort -u
  fi
}

# Each file as it is compiled by itself, with what the build has made.
tidy() {
  local commands=build/tidy
  cmake --preset release -B "$commands" -DCMAKE_UNITY_BUILD=OFF >"$results/tidy.configure.log" || return
  sed -i "s#$commands#$bin#g" "$commands/compile_commands.json"
  changed_sources | xargs -r -n 1 -P "$(nproc)" clang-tidy-19 --quiet -p "$commands" 2>"$results/tidy.log"
}
suite_tidy() { check tidy tidy; }
