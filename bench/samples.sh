#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What a sample takes, by the kernel's own count of its programs' time: pkprof's sampler beside
# bpftrace's with both stacks, at the same frequency, in turns over the same load; medians with the
# least and the most. What the clock's interrupt takes is the same for both, and not in it.
set -euo pipefail
# shellcheck source=bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

usage() {
  cat <<'TEXT'
Usage: bench/samples.sh [--rounds N] [--seconds S] [--loads LIST] [--bin DIR] [--other PKPROF]

Needs root and bpftrace; pgbench needs PostgreSQL's programs. LIST is of loop, dd, udp and pgbench,
with commas. PKPROF is another build, to be compared, too. 7 rounds of 2 s by default, on an
otherwise idle machine.
TEXT
}

rounds=7 seconds=2 loads=loop,dd,udp,pgbench other=''
bin=$(dirname "${BASH_SOURCE[0]}")/../build/release
parse_options "rounds seconds loads bin other" "$@"
bin=$(realpath "$bin")

work=$(mktemp -d)
load_pids=()
stop_load() {
  local pid
  for pid in "${load_pids[@]}"; do kill "$pid" 2>/dev/null || true; done
  for pid in "${load_pids[@]}"; do wait "$pid" 2>/dev/null || true; done
  load_pids=()
  for ns in "pks-$$-a" "pks-$$-b"; do ip netns del "$ns" 2>/dev/null || true; done
  [[ ! -f $work/data/postmaster.pid ]] || as_postgres pg_ctl -D "$work/data" -m fast stop >/dev/null || true
}
clean_up() {
  stop_load
  sysctl -qw kernel.bpf_stats_enabled=0
  rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

as_postgres() { # PROGRAM ARGUMENT…
  local program
  program=$(find /usr/lib/postgresql -path "*/bin/$1" 2>/dev/null | sort -V | tail -n 1)
  setpriv --reuid postgres --regid postgres --clear-groups "${program:-$1}" "${@:2}"
}

begin() { # PROGRAM…
  "$@" >/dev/null 2>&1 &
  load_pids+=($!)
}

start_udp() {
  local ns
  for ns in a b; do ip netns add "pks-$$-$ns"; done
  ip -n "pks-$$-a" link add v0 type veth peer name v0 netns "pks-$$-b"
  ip -n "pks-$$-a" addr add 10.78.0.1/24 dev v0
  ip -n "pks-$$-b" addr add 10.78.0.2/24 dev v0
  for ns in a b; do ip -n "pks-$$-$ns" link set v0 up; done
  begin ip netns exec "pks-$$-b" taskset -c "$(($(nproc) - 1))" "$bin/pk_udp" recv --port 7001 --mode busy
  begin ip netns exec "pks-$$-a" taskset -c 0 "$bin/pk_udp" send --to 10.78.0.2 --port 7001
}

start_pgbench() {
  local run="$work/data"
  mkdir "$run" && chown postgres "$work" "$run"
  as_postgres initdb -D "$run" >/dev/null 2>&1
  as_postgres pg_ctl -D "$run" -o "-k $work -c listen_addresses=" -l "$work/log" -w start >/dev/null
  as_postgres createdb -h "$work" bench
  as_postgres pgbench -h "$work" -i -s 10 -q bench >/dev/null 2>&1
  begin setpriv --reuid postgres --regid postgres --clear-groups pgbench -h "$work" -c 4 -j 2 -T 3600 bench
}

start_load() {
  case $1 in
    loop) for _ in $(seq "$(nproc)"); do begin "$bin/pk_hog"; done ;;
    dd) for _ in $(seq "$(nproc)"); do begin dd if=/dev/zero of=/dev/null bs=64k; done ;;
    udp) start_udp ;;
    pgbench) start_pgbench ;;
    *)
      usage >&2
      exit 2
      ;;
  esac
}

# Runs, and nanoseconds, of all programs on perf events that NAME names, or of one's that is not ours.
ran() { # NAME
  bpftool prog show --json | jq -r --arg name "$1" '
    [.[] | select(.type == "perf_event" and ((.name // "") | startswith($name)))]
    | "\(map(.run_cnt // 0) | add // 0) \(map(.run_time_ns // 0) | add // 0)"'
}

# Mean time of a sample, ns, while PROFILER samples.
sample_ns() { # PROGRAM-NAME PROFILER…
  local name=$1 before after profiler
  shift
  "$@" >/dev/null 2>&1 &
  profiler=$!
  until [[ $(ran "$name" | cut -d' ' -f1) -gt 100 ]]; do
    kill -0 "$profiler" 2>/dev/null || return 1
    sleep 0.1
  done
  sleep 1 # what is new to it
  before=$(ran "$name")
  sleep "$seconds"
  after=$(ran "$name")
  kill -INT "$profiler"
  wait "$profiler" 2>/dev/null || true
  awk -v b="$before" -v a="$after" 'BEGIN { split(b, x, " "); split(a, y, " "); print (y[2] - x[2]) / (y[1] - x[1]) }'
}

sysctl -qw kernel.bpf_stats_enabled=1
printf '%-8s %-10s %8s %8s %8s\n' load profiler median least most
for load in ${loads//,/ }; do
  if [[ $load == pgbench ]] && ! command -v pgbench >/dev/null; then
    echo "pgbench: not installed"
    continue
  fi
  start_load "$load"
  sleep 1
  for ((round = 0; round < rounds; ++round)); do
    sample_ns pk_sample "$bin/pkprof" record -a -F 997 -q -o "$work/profile" >>"$work/$load.pkprof"
    [[ -z $other ]] || sample_ns pk_sample "$other" record -a -F 997 -q --budget 100 -o "$work/profile" >>"$work/$load.other"
    sample_ns 997 bpftrace -e 'profile:hz:997 { @[kstack, ustack, comm] = count(); }' >>"$work/$load.bpftrace"
  done
  stop_load
  for profiler in pkprof other bpftrace; do
    [[ -s $work/$load.$profiler ]] || continue
    sort -g "$work/$load.$profiler" >"$work/sorted"
    printf '%-8s %-10s %8.0f %8.0f %8.0f\n' "$load" "$profiler" "$(median <"$work/sorted")" \
      "$(head -n 1 "$work/sorted")" "$(tail -n 1 "$work/sorted")"
  done
done
