#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What each hook costs, in instructions, and how often it runs: in a guest whose clock counts them, so
# that what else the machine does makes no difference. What caches have to do with it is not seen:
# `build/release/overhead` measures that. The kernel times the runs of BPF programs itself; what its
# timing takes, which an empty one shows, is taken off.
set -euo pipefail
# shellcheck source=bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

usage() {
  cat <<'TEXT'
Usage: bench/hooks.sh [--kernel VERSION] [--beside PKPROF] [--bin DIR]

Floods a receiver with datagrams, then makes requests over TCP, on one CPU of a guest under
`pkprof record --budget 100`. Another pkprof, of an older commit, can be measured beside that in
DIR (build/release). VERSION: 6.1 or 6.12 (default).
TEXT
}

kernel=6.12 beside=''
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
bin=$here/../build/release
parse_options "kernel beside bin" "$@"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
cp "$bin/pkprof" "$work/pkprof-ours"
versions=ours
if [[ -n $beside ]]; then
  cp "$beside" "$work/pkprof-beside"
  versions='ours beside'
fi

cat >"$work/in-guest" <<'GUEST'
#!/bin/bash
# Prints "hook LOAD VERSION NAME RUNS NS" and "operations LOAD VERSION NUMBER".
set -euo pipefail
ip link set lo up
timed() { echo "$1" >/proc/sys/kernel/bpf_stats_enabled; }
measure() { # VERSION LOAD SERVER -- CLIENT
  local version=$1 load=$2 server=() recording serving
  shift 2
  while [[ $1 != -- ]]; do
    server+=("$1")
    shift
  done
  shift
  "pkprof-$version" record -a -F 997 --budget 100 -q -o /tmp/profile &
  recording=$!
  "${server[@]}" >/dev/null &
  serving=$!
  sleep 3 # until it samples
  "$@" --seconds 3 >/dev/null # hooks that this load does not need rest
  timed 1
  "$@" --seconds 1.5 >/tmp/result
  timed 0
  bpftool prog show | awk -v of="$load $version" '
    / name pk_/ { for (i = 1; i < NF; ++i) v[$i] = $(i + 1) }
    /run_cnt/ && v["name"] ~ /^pk_/ { print "hook", of, v["name"], v["run_cnt"], v["run_time_ns"] }
    { delete v }'
  echo "operations $load $version $(grep -oE '"(packets|transactions)":[0-9]+' /tmp/result | head -1 | cut -d: -f2)"
  kill -TERM "$serving"
  kill -INT "$recording"
  wait "$serving" "$recording" || true
}
for version in "$@"; do
  measure "$version" datagrams pk_udp recv --port 7001 -- pk_udp send --to 127.0.0.1 --port 7001
  measure "$version" requests pk_tcp serve --port 7002 --mode echo -- pk_tcp rr --to 127.0.0.1 --port 7002
done
GUEST
chmod +x "$work/in-guest"

# shellcheck disable=SC2086 # the versions are words
"$here/../tests/vm/run-vm" --kernel "$kernel" --icount 0 --cpus 1 --timeout 1800 --add "$work/in-guest:/in-guest" \
  --files "$(echo "$work"/pkprof-* | tr ' ' ,),$bin/pk_udp,$bin/pk_tcp,ip,bpftool" -- /in-guest $versions >"$work/seen"

# Hooks that run for one operation in a hundred, and the sampler.
awk -v versions="$versions" '
  $1 == "operations" { operations[$2, $3] = $4 }
  $1 == "hook" && $4 == "pk_empty" { timing[$3] = $6 / $5 }
  $1 == "hook" { runs[$2, $3, $4] = $5; ns[$2, $3, $4] = $6; if (!known[$2, $4]++) { load[++n] = $2; name[n] = $4 } }
  END {
    many = split(versions, version, " ")
    for (v = 1; v <= many; ++v)
      if (!operations["datagrams", version[v]] || !operations["requests", version[v]] || !timing[version[v]]) {
        print "hooks.sh: pkprof-" version[v] ": nothing was measured in the guest" >"/dev/stderr"
        exit 1
      }
    printf "| | |"
    for (v = 1; v <= many; ++v) printf " runs an operation, %s | instructions a run, %s |", version[v], version[v]
    printf "\n|---|---|"
    for (v = 1; v <= many; ++v) printf "--:|--:|"
    print ""
    for (i = 1; i <= n; ++i) {
      if (name[i] == "pk_empty" || name[i] ~ /^pk_iter/) continue
      line = "| " load[i] " | " name[i] " |"
      often = name[i] == "pk_sample"
      for (v = 1; v <= many; ++v) {
        count = runs[load[i], version[v], name[i]]
        all = operations[load[i], version[v]]
        if (!count) { line = line " – | – |"; continue }
        if (count >= all / 100) often = 1
        each = ns[load[i], version[v], name[i]] / count - timing[version[v]]
        if (count >= all / 100 && name[i] != "pk_sample") sum[load[i], v] += count * each / all
        line = line sprintf(" %.3f | %.0f |", count / all, each)
      }
      if (often) print line
    }
    for (l = 1; l <= 2; ++l) {
      which = l == 1 ? "datagrams" : "requests"
      printf "| %s | *hooks, an operation* |", which
      for (v = 1; v <= many; ++v) printf " | %.0f |", sum[which, v]
      print ""
    }
  }' "$work/seen"
