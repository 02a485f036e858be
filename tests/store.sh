#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# pkprof store and pkprof query, as a shell meets them: tests/store.sh DIRECTORY-OF-PKPROF
set -euo pipefail
PATH=$1:$PATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
unset PKPROF_CONFIG

failed=0
complain() {
  echo "$*" >&2
  failed=1
}
# expect STATUS "TEXT" COMMAND…: how it ends, and what is in what it prints.
expect() {
  local wanted=$1 text=$2 status=0 said
  shift 2
  said=$("$@" 2>&1) || status=$?
  [[ $status -eq $wanted ]] || complain "$*: ended with $status: $said"
  [[ $said == *"$text"* ]] || complain "$*: no '$text' in: $said"
}
same() { # NAME A B
  [[ $2 == "$3" ]] || complain "$1: $2 is not $3"
}

fixtures .
expect 0 '' pkprof store init fleet.db
expect 0 '' pkprof store init sqlite:fleet.db
expect 0 '1 cut added' pkprof store add fleet.db small.pb.gz --host web1 --label env=prod
expect 0 '0 cuts added, 1 was there already' pkprof store add fleet.db small.pb.gz --host web1
expect 0 '2 cuts added' pkprof store add fleet.db small.pb.gz waits.pb.gz --host web2 --label env=test
expect 0 '3 cuts of 2 hosts' pkprof store info fleet.db
expect 0 '"host":"web2"' pkprof store info fleet.db --json

# Of one cut what `report` shows of its file; the same through a file of its own.
object() { jq -cS 'del(.paused_ns)' <<<"$1"; }
of_file=$(object "$(pkprof report small.pb.gz --json)")
same query "$(object "$(pkprof query fleet.db --host web1 --json)")" "$of_file"
expect 0 'pkprof report kept.pb.gz' pkprof query fleet.db --host web1 -o kept.pb.gz
same kept "$(object "$(pkprof report kept.pb.gz --json)")" "$of_file"
same view "$(pkprof query fleet.db --host web1 --view flat)" "$(pkprof report small.pb.gz --view flat)"
expect 0 'What did threads wait for' pkprof query fleet.db --host web2 --view waits
expect 0 'web1' pkprof query fleet.db --by host
expect 0 'What got dearer' pkprof query fleet.db --label env=test --diff-with-label env=prod
expect 0 '' pkprof query fleet.db --html page.html
grep -q '</html>' page.html || complain "no page"

expect 125 'no cut is of that time' pkprof query fleet.db --since 2001-01-01 --until 2001-01-02
expect 125 'No such file' pkprof query none.db
expect 125 'names no store' pkprof query small.pb.gz
expect 125 'no SQLite database' bash -c 'cp small.pb.gz x.db && pkprof store info x.db'
expect 2 'is no time' pkprof query fleet.db --since yesterday
expect 2 'is no range' pkprof query fleet.db --diff-with 1h
expect 2 'nothing is since' pkprof query fleet.db --since 1h --until 2h
expect 2 'is no label' pkprof query fleet.db --label prod
expect 2 'given twice' pkprof store add fleet.db small.pb.gz --label a=1 --label a=2
expect 2 'is no age' pkprof store trim fleet.db --older-than 3y
expect 2 'is no size' pkprof store trim fleet.db --larger-than big
expect 2 '--older-than' pkprof store trim fleet.db
expect 2 'subcommand' pkprof store
expect 2 'url is required' pkprof store info

expect 0 '3 cuts deleted' pkprof store trim fleet.db --larger-than 1K
expect 0 '0 cuts of 0 hosts' pkprof store info fleet.db
exit "$failed"
