#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Of what pkprof takes from a load, how much is for its hooks to be there at all, whatever they do.
# Beside a TCP load: nothing; a clock with an empty program ("bare"); the same, and an empty program at
# each tracepoint where pkprof has a hook that runs in this load ("hooks"); pkprof; and perf. With
# --clients there are more hooks ("clients-hooks", "clients"). They take turns; each turn is compared with those of nothing before and after it.
set -euo pipefail
# shellcheck source=bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=bench/loads.sh
source "$(dirname "${BASH_SOURCE[0]}")/loads.sh"

usage() {
  cat <<'TEXT'
Usage: bench/floor.sh [--load tcp-rr|tcp-stream|redis|nginx] [--rounds N] [--seconds S] [--variants LIST] [--bin DIR]

Needs root; bare,hooks,pkprof,perf by default, and clients-hooks,clients; 10 rounds of 2 s each. Prints the share of segments that
were sent, less one: -0.05 is five in a hundred fewer.
TEXT
}

load=tcp-rr rounds=10 seconds=2 variants=bare,hooks,pkprof,perf
bin=$(dirname "${BASH_SOURCE[0]}")/../build/release
parse_options "load rounds seconds variants bin" "$@"
bin=$(realpath "$bin")
if [[ ,$variants, == *,perf,* ]] && ! command -v perf >/dev/null; then
  echo "perf is not installed: leave it out with --variants bare,hooks,pkprof" >&2
  exit 1
fi

work=$(mktemp -d)
profiler=''
clean_up() {
  [[ -z $profiler ]] || kill "$profiler" 2>/dev/null || true
  stop_load
  rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

# What pkprof attaches at raw tracepoints while it records this load, by their names.
hooks_there() { # [OPTION…]
  "$bin/pkprof" record -a -q --budget 100 -o "$work/p" -d 4 "$@" &
  profiler=$!
  sleep 3
  local link
  for link in /proc/"$profiler"/fdinfo/*; do
    awk '$1 == "link_type:" { kind = $2 } $1 == "tp_name:" { name = $2 }
      END { if (kind == "raw_tracepoint") print name }' "$link"
  done
  wait "$profiler"
  profiler=''
}

segments() { awk '$1 == "Tcp:" && $12 ~ /^[0-9]+$/ { print $12 }' "/proc/$1/net/snmp"; }

begin_profiler() { # VARIANT
  case $1 in
    bare) "$bin/bare_sampler" 997 >/dev/null & ;;
    hooks) "$bin/bare_sampler" 997 0 "${tracepoints[@]}" >/dev/null & ;;
    clients-hooks) "$bin/bare_sampler" 997 0 "${clients_tracepoints[@]}" >/dev/null & ;;
    clients) "$bin/pkprof" record -a -q -F 997 --budget 100 --clients -o "$work/profile" & ;;
    pkprof) "$bin/pkprof" record -a -q -F 997 --budget 100 -o "$work/profile" & ;;
    perf) perf record -q -a -g -F 997 -o "$work/perf.data" >/dev/null 2>&1 & ;;
    *)
      usage >&2
      exit 2
      ;;
  esac
  profiler=$!
  sleep 1.5
}

end_profiler() {
  [[ -n $profiler ]] || return 0
  kill -INT "$profiler"
  wait "$profiler" || true
  profiler=''
  sleep 0.3
}

# Segments a second for a turn.
turn() { # VARIANT
  [[ $1 == plain ]] || begin_profiler "$1"
  local before after
  before="$(segments "$client") $(date +%s%N)"
  sleep "$seconds"
  after="$(segments "$client") $(date +%s%N)"
  end_profiler
  awk -v a="$before" -v b="$after" 'BEGIN { split(a, x); split(b, y); print (y[1] - x[1]) / (y[2] - x[2]) * 1e9 }'
}

# To wake a CPU of a virtual machine takes longer than to answer, and less long where a clock ticks.
exec 9<>/dev/cpu_dma_latency
printf '\0\0\0\0' >&9
start_load "$load"
sleep 1.5
client=${load_pids[-1]}
mapfile -t tracepoints < <(hooks_there | sort)
mapfile -t clients_tracepoints < <(hooks_there --clients | sort)
echo "${#tracepoints[@]} tracepoints"
before=$(turn plain)
for _ in $(seq "$rounds"); do
  for variant in ${variants//,/ }; do
    rate=$(turn "$variant")
    after=$(turn plain)
    awk -v r="$rate" -v a="$before" -v b="$after" 'BEGIN { print 2 * r / (a + b) - 1 }' >>"$work/$variant"
    before=$after
  done
done
for variant in ${variants//,/ }; do
  sort -g "$work/$variant" | awk -v name="$variant" '{ v[NR] = $1 }
    END { printf "%-13s %+.3f [%+.3f to %+.3f]\n", name, v[int((NR + 1) / 2)], v[int((NR + 3) / 4)], v[int((3 * NR + 3) / 4)] }'
done
