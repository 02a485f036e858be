#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What bash completes: tests/completions.sh DIRECTORY-OF-PKPROF
set -euo pipefail
PATH=$1:$PATH
# shellcheck source=completions/pkprof.bash
source "$(dirname "${BASH_SOURCE[0]}")/../completions/pkprof.bash"

failed=0
# expect "WHAT MUST BE AMONG THEM" WORD…: of the last of these words.
expect() {
  local wanted=$1 want
  shift
  COMP_WORDS=("$@")
  COMP_CWORD=$(($# - 1))
  _pkprof
  for want in $wanted; do
    if [[ " ${COMPREPLY[*]} " != *" $want "* ]]; then
      echo "$*: no $want among: ${COMPREPLY[*]}" >&2
      failed=1
    fi
  done
}
never() {
  local not=$1
  shift
  expect '' "$@"
  if [[ " ${COMPREPLY[*]} " == *" $not "* ]]; then
    echo "$*: $not is among: ${COMPREPLY[*]}" >&2
    failed=1
  fi
}

expect 'run record report diff stat export import doctor --version' pkprof ''
expect 'record report reset' pkprof re
never 'stat' pkprof re
expect '--config --version' pkprof --
expect 'record report reset' pkprof --config /dev/null re
expect '--budget' pkprof --config /dev/null record --
expect '--no-follow --no-lines --no-async' pkprof debox --no-
expect '--view --by --json --pid' pkprof report --
expect '--budget --output' pkprof record --
never '--view' pkprof record --
expect 'ledger flat graph tree' pkprof report --view ''
expect 'graph' pkprof report --view gr
never 'flat' pkprof report --view gr
expect 'folded speedscope gmon' pkprof export --to ''
expect 'wait lock disk net memory all' pkprof top --resource ''
expect 'disk' pkprof stat --resource di
expect 'init info add trim' pkprof store ''
expect 'info init' pkprof store in
expect '--host --label' pkprof store add --
expect '--since --container --diff-with --view' pkprof query --
expect 'host' pkprof query fleet.db --by ho
here=$(dirname "${BASH_SOURCE[0]}")
expect "$here/completions.sh" pkprof report "$here/comp"
expect 'bash' pkprof record -- bas
exit "$failed"
