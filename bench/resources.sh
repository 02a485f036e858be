#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# What it costs to record the use of other resources: of each a load that uses it, under a recording of
# CPU time alone, of that resource, of all, and under a peer that tells about the same.
set -euo pipefail
# shellcheck source=bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

usage() {
  cat <<'TEXT'
Usage: bench/resources.sh [--loads LIST] [--rounds N] [--bin DIR]

Needs root, debugfs, perf, bpftrace, nginx, wrk and gcc. Loads: lock,disk,net,memory,wait by default; 4 rounds.
Variants take turns, each beside a turn of nothing. Prints medians of the rate as a ratio to that, with
quartiles, and the machine's load around the run.
  lock    perf bench sched messaging: processes that contend for pipes' mutexes
  disk    16 KiB written at a time past the page cache, to a file system on a loop device in memory
  net     nginx under wrk, over loopback
  memory  a compiler, started anew for each file
  wait    the same
TEXT
}

loads=lock,disk,net,memory,wait rounds=4
bin=$(dirname "${BASH_SOURCE[0]}")/../build/release
parse_options "loads rounds bin" "$@"
bin=$(realpath "$bin")

if [[ ! -d /sys/kernel/debug/tracing/events ]]; then
  echo "no tracepoints for the peers: mount debugfs on /sys/kernel/debug" >&2
  exit 1
fi

work=$(mktemp -d) image=$(mktemp /dev/shm/pkprof-bench-XXXXXX)
profiler='' nginx='' mounted=''
clean_up() {
  [[ -z $profiler ]] || kill "$profiler" 2>/dev/null || true
  [[ -z $nginx ]] || kill "$nginx" 2>/dev/null || true
  [[ -z $mounted ]] || umount "$work/disk" || true
  rm -rf "$work" "$image"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

begin_load() {
  case $1 in
    disk)
      truncate -s 512M "$image"
      mkfs.ext4 -q "$image"
      mkdir "$work/disk"
      mount -o loop "$image" "$work/disk"
      mounted=yes
      ;;
    net)
      mkdir -p "$work/nginx/logs"
      head -c 1024 /dev/zero >"$work/nginx/file"
      cat >"$work/nginx/conf" <<CONF
daemon off; worker_processes 1; pid $work/nginx/pid; error_log /dev/null;
events { worker_connections 256; }
http { access_log off; server { listen 127.0.0.1:9580; root $work/nginx; } }
CONF
      chmod 755 "$work"
      nginx -c "$work/nginx/conf" -p "$work/nginx" &
      nginx=$!
      sleep 0.5
      ;;
    memory | wait)
      for i in {1..40}; do echo "int f$i(int x) { return x * $i; }"; done >"$work/file.c"
      sed -i '1i #include <stdio.h>\n#include <stdlib.h>\n#include <string.h>' "$work/file.c"
      ;;
  esac
}

end_load() {
  if [[ -n $nginx ]]; then
    kill "$nginx"
    wait "$nginx" || true
  fi
  [[ -z $mounted ]] || umount "$work/disk"
  nginx='' mounted=''
}

per_second() { # COUNT COMMAND…
  local count=$1 before
  shift
  before=$(date +%s%N)
  "$@" >/dev/null 2>&1
  awk -v n="$count" -v ns=$(($(date +%s%N) - before)) 'BEGIN { print n / ns * 1e9 }'
}

compile() { for _ in {1..25}; do gcc -O1 -c "$work/file.c" -o "$work/file.o"; done; }
write_direct() { dd if=/dev/zero of="$work/disk/file" bs=16k count=20000 oflag=direct conv=notrunc; }

rate() {
  case $1 in
    lock) per_second 1 perf bench sched messaging -p -g 4 -l 600 ;;
    disk) per_second 20000 write_direct ;;
    net) wrk -t 1 -c 16 -d 2s http://127.0.0.1:9580/file | awk '/Requests.sec/ { print $2 }' ;;
    memory | wait) per_second 25 compile ;;
  esac
}

# Pid or tid of who runs is the best that these can tell of whom it is for.
peer() { # LOAD
  case $1 in
    lock) bpftrace -e 'tracepoint:lock:contention_begin { @at[tid] = nsecs; }
      tracepoint:lock:contention_end /@at[tid]/ { @[comm, kstack(5)] = sum(nsecs - @at[tid]); delete(@at[tid]); }' ;;
    disk) bpftrace -e 'tracepoint:block:block_rq_issue { @at[args->dev, args->sector] = nsecs; @who[args->dev, args->sector] = comm; }
      tracepoint:block:block_rq_complete /@at[args->dev, args->sector]/ {
        @ns[@who[args->dev, args->sector]] = sum(nsecs - @at[args->dev, args->sector]);
        @bytes[@who[args->dev, args->sector]] = sum(args->nr_sector * 512);
        delete(@at[args->dev, args->sector]); delete(@who[args->dev, args->sector]); }' ;;
    net) bpftrace -e 'tracepoint:net:netif_receive_skb { @received[comm, str(args->name)] = sum(args->len); }
      tracepoint:net:net_dev_queue { @sent[comm, str(args->name)] = sum(args->len); }' ;;
    memory) bpftrace -e 'tracepoint:kmem:mm_page_alloc { @[comm, kstack(5)] = sum(4096 << args->order); }' ;;
    wait) perf record -q -a -g -e sched:sched_switch,sched:sched_waking -o "$work/perf.data" ;;
  esac
}

start_profiler() { # LOAD VARIANT
  case $2 in
    cpu) PKPROF_CONFIG=/dev/null "$bin/pkprof" record -a -q --budget 100 -o "$work/profile" ;;
    peer) peer "$1" ;;
    *) PKPROF_CONFIG=/dev/null "$bin/pkprof" record -a -q --budget 100 --resource "$2" -o "$work/profile" ;;
  esac >/dev/null 2>"$work/errors" &
  profiler=$!
  sleep 2.5
  kill -0 "$profiler" || { cat "$work/errors" >&2 && exit 1; }
}

end_profiler() {
  pkill -INT -P "$profiler" || kill -INT "$profiler"
  wait "$profiler" || true
  profiler=''
  rm -f "$work/perf.data"
}

echo "$(date -I) $(uname -r), $(nproc) CPUs, load $(cut -d' ' -f1-3 /proc/loadavg)"
for load in ${loads//,/ }; do
  begin_load "$load"
  before=$(rate "$load")
  for ((i = 0; i < rounds; ++i)); do
    for variant in cpu "$load" all peer; do
      start_profiler "$load" "$variant"
      under=$(rate "$load")
      end_profiler
      after=$(rate "$load")
      awk -v u="$under" -v a="$before" -v b="$after" 'BEGIN { print 2 * u / (a + b) }' >>"$work/$load.$variant"
      before=$after
    done
  done
  end_load
  for variant in cpu "$load" all peer; do
    sort -g "$work/$load.$variant" | awk -v load="$load" -v variant="$variant" '{ v[NR] = $1 }
      function at(q,  i) { i = 1 + q * (NR - 1); return v[int(i)] + (i - int(i)) * (v[int(i) + (i > int(i))] - v[int(i)]) }
      END { printf "%-7s %-7s %.3f (%.3f to %.3f)\n", load, variant, at(0.5), at(0.25), at(0.75) }'
  done
done
echo "load $(cut -d' ' -f1-3 /proc/loadavg)"
