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

# Files that the build compiles as one are checked as one, as most of the time is their headers': of
# these, those that are to be checked. They stand one after the other in one file, not as includes:
# clang's analyzer follows paths through the code of that file alone.
readonly tidy_dir=build/tidy
tidy() {
  local file unit files
  rm -rf "$tidy_dir"
  mkdir -p "$tidy_dir"
  changed_sources >"$tidy_dir/changed"
  while read -r file; do
    mapfile -t files < <(compiled_with "$file" | grep -Fxf "$tidy_dir/changed")
    [[ ${#files[@]} -gt 0 ]] || continue
    unit=$PWD/$tidy_dir/$(cksum <<<"$file" | cut -d ' ' -f 1).cc
    awk 'FNR == 1 { print "// " FILENAME } { print }' "${files[@]}" >"$unit"
    jq --arg file "$file" --arg unit "$unit" --arg near "$(printf -- " -iquote $PWD/%s" "${files[@]%/*}")" '
      .[] | select(.file == $file) | .command |= (split($file) | join($unit)) + $near | .file = $unit
      ' "$bin/compile_commands.json"
  done < <(jq -r '.[].file' "$bin/compile_commands.json") | jq -s . >"$tidy_dir/compile_commands.json"
  jq -r '.[].file' "$tidy_dir/compile_commands.json" |
    xargs -r -n 1 -P "$(nproc)" clang-tidy-19 --quiet -p "$tidy_dir" 2>"$results/tidy.log" | in_sources
}

# The sources that the compiler reads for one file: those of which the build made it, or itself.
compiled_with() { # FILE
  if [[ $1 == */Unity/* ]]; then
    sed -n "s#^\#include \"$PWD/\(.*\)\"#\1#p" "$1"
  else
    echo "${1#"$PWD/"}"
  fi
}

# What was found, by the lines of the sources.
in_sources() {
  awk -v units="$PWD/$tidy_dir/" -F : 'index($1, units) == 1 {
      for (at = 0; (getline line <$1) > 0 && at < $2; ++at)
        if (line ~ "^// [a-z][^ ]*[.]cc$") { file = substr(line, 4); first = at + 1 }
      close($1)
      sub("^[^:]*:[0-9]*", file ":" $2 - first) }
    { print }'
}
suite_tidy() { check tidy tidy; }
