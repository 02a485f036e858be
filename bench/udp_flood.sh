#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What profiling costs where it costs most: a flood of 64-byte UDP packets through a veth pair to a
# receiver that polls. Packets per second that arrive, with : without, for pkprof, for its sampler
# alone, and for `perf record -a -g` at the same frequency. Machines are noisy and drift: in each
# round every one of them has a run, in an order that rotates, and is compared with that round's
# run without; the median of the rounds counts, and their quartiles tell how sure it is.
set -euo pipefail

usage() {
  cat <<'TEXT'
Usage: bench/udp_flood.sh [--rounds N] [--seconds S] [--frequency HZ] [--bin DIR]

Needs root, `ip` and `perf`. 9 rounds of 2 s for each of the four by default.
TEXT
}

rounds=9 seconds=2 frequency=997
bin=$(dirname "${BASH_SOURCE[0]}")/../build/release
while [[ $# -gt 0 ]]; do
  case $1 in
    --rounds) rounds=$2 ;;
    --seconds) seconds=$2 ;;
    --frequency) frequency=$2 ;;
    --bin) bin=$2 ;;
    --help | -h)
      usage
      exit 0
      ;;
    *)
      usage >&2
      exit 2
      ;;
  esac
  shift 2
done

readonly sender=pkb-$$-sender receiver=pkb-$$-receiver
work=$(mktemp -d)
profiler=''
clean_up() {
  [[ -z $profiler ]] || kill "$profiler" 2>/dev/null || true
  wait 2>/dev/null || true
  ip netns del "$sender" 2>/dev/null || true
  ip netns del "$receiver" 2>/dev/null || true
  rm -rf "$work"
}
trap clean_up EXIT

ip netns add "$sender"
ip netns add "$receiver"
ip -n "$sender" link add veth0 type veth peer name veth0 netns "$receiver"
ip -n "$sender" addr add 10.78.0.1/24 dev veth0
ip -n "$receiver" addr add 10.78.0.2/24 dev veth0
ip -n "$sender" link set veth0 up
ip -n "$receiver" link set veth0 up

# One flood under the profiler named; prints packets received per second.
flood() {
  local name=$1 poll packets
  case $name in
    plain) ;;
    pkprof) "$bin/pkprof" record -a -F "$frequency" -o "$work/a" >/dev/null 2>&1 & ;;
    sampler) "$bin/pkprof" record -a -F "$frequency" --no-attribution -o "$work/b" >/dev/null 2>&1 & ;;
    perf) perf record -a -g -F "$frequency" -o "$work/c" >/dev/null 2>&1 & ;;
  esac
  profiler=''
  [[ $name == plain ]] || profiler=$!
  sleep 1
  ip netns exec "$receiver" taskset -c 1 "$bin/pk_udp" recv --port 9000 --mode busy \
    --seconds $((seconds + 1)) >"$work/received" &
  poll=$!
  sleep 0.2
  ip netns exec "$sender" taskset -c 0 "$bin/pk_udp" send --to 10.78.0.2 --port 9000 --size 64 \
    --seconds "$seconds" >"$work/sent"
  wait "$poll"
  if [[ -n $profiler ]]; then
    kill -INT "$profiler"
    wait "$profiler" || true
    profiler=''
  fi
  packets=$(grep -o '"packets":[0-9]*' "$work/received" | head -1 | cut -d: -f2)
  echo $((packets / seconds))
}

readonly names=(plain pkprof sampler perf)
for ((round = 0; round < rounds; ++round)); do
  for ((turn = 0; turn < 4; ++turn)); do
    name=${names[(round + turn) % 4]}
    flood "$name" >>"$work/result.$name"
  done
  echo "round $((round + 1)) of $rounds" >&2
done

# Reads numbers, prints lower quartile, median and upper quartile.
quartiles() {
  sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 3) / 4)], v[int((NR + 1) / 2)], v[int((3 * NR + 3) / 4)] }'
}

printf '%-10s %12s %10s %20s\n' '' 'packets/s' 'ratio' 'quartiles of ratio'
for name in "${names[@]}"; do
  read -r _ packets _ < <(quartiles <"$work/result.$name")
  read -r low middle high < <(paste "$work/result.$name" "$work/result.plain" |
    awk '{ print $1 / $2 }' | quartiles)
  printf '%-10s %12d %10.3f %12.3f - %.3f\n' "$name" "$packets" "$middle" "$low" "$high"
done
