# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Loads for benchmarks in bash: to be sourced. Each is started with start_load NAME and runs until
# stop_load, which is to be called also when the script is ended. $bin has our programs, $work is an
# empty directory.

: "${bin:=}" "${work:=}"
load_pids=()

# Of a load that somebody else's programs make: NAME PROGRAM.
load_needs() {
  case $1 in
    pgbench) echo pgbench ;;
    redis) echo redis-benchmark ;;
    nginx) echo wrk ;;
    build) echo gcc-12 ;;
    stress-*) echo stress-ng ;;
    *) echo true ;;
  esac
}

as_postgres() { # PROGRAM ARGUMENT…
  local program
  program=$(find /usr/lib/postgresql -path "*/bin/$1" 2>/dev/null | sort -V | tail -n 1)
  setpriv --reuid postgres --regid postgres --clear-groups "${program:-$1}" "${@:2}"
}

begin() { # PROGRAM ARGUMENT…
  "$@" >/dev/null 2>&1 &
  load_pids+=($!)
}

# Two namespaces joined by a veth pair: 10.78.0.1 and 10.78.0.2.
make_pair() {
  local ns
  for ns in a b; do ip netns add "pkl-$$-$ns"; done
  ip -n "pkl-$$-a" link add v0 type veth peer name v0 netns "pkl-$$-b"
  ip -n "pkl-$$-a" addr add 10.78.0.1/24 dev v0
  ip -n "pkl-$$-b" addr add 10.78.0.2/24 dev v0
  for ns in a b; do ip -n "pkl-$$-$ns" link set v0 up; done
}
client() { begin ip netns exec "pkl-$$-a" taskset -c 0 "$@"; }
server() { begin ip netns exec "pkl-$$-b" taskset -c "$(($(nproc) - 1))" "$@"; }

start_pgbench() {
  mkdir "$work/data" && chown postgres "$work" "$work/data"
  as_postgres initdb -D "$work/data" >/dev/null 2>&1
  as_postgres pg_ctl -D "$work/data" -o "-k $work -c listen_addresses=" -l "$work/log" -w start >/dev/null
  as_postgres createdb -h "$work" bench
  as_postgres pgbench -h "$work" -i -s 10 -q bench >/dev/null 2>&1
  begin setpriv --reuid postgres --regid postgres --clear-groups \
    pgbench -h "$work" -c 4 -j 2 -T 3600 bench
}

start_nginx() {
  head -c 2000 /dev/zero >"$work/file"
  cat >"$work/nginx.conf" <<CONF
daemon off; pid $work/nginx.pid; error_log /dev/null; worker_processes 1; events {}
http { access_log off; client_body_temp_path $work/1; proxy_temp_path $work/2;
  fastcgi_temp_path $work/3; uwsgi_temp_path $work/4; scgi_temp_path $work/5;
  server { listen 127.0.0.1:7398; root $work; } }
CONF
  chmod 755 "$work"
  begin nginx -c "$work/nginx.conf"
  sleep 0.5
  begin wrk -c 16 -t 1 -d 3600 http://127.0.0.1:7398/file
}

# As make -j2: units of a few functions, one after the other.
start_build() {
  seq 1 200 | sed 's/.*/int f&(int x) { int s = 0; for (int i = 0; i < x; i++) s += i ^ x; return s; }/' >"$work/unit.c"
  local job
  for job in 1 2; do
    # shellcheck disable=SC2016 # for the shell that it starts
    begin sh -c 'while :; do gcc-12 -O2 -c -o "$0.o" "$1"; done' "$work/job$job" "$work/unit.c"
  done
}

start_load() { # NAME
  case $1 in
    loop) for _ in $(seq "$(nproc)"); do begin "$bin/pk_hog"; done ;;
    dd) for _ in $(seq "$(nproc)"); do begin dd if=/dev/zero of=/dev/null bs=64k; done ;;
    udp)
      make_pair
      server "$bin/pk_udp" recv --port 7001 --mode busy
      client "$bin/pk_udp" send --to 10.78.0.2 --port 7001
      ;;
    tcp-stream)
      make_pair
      server "$bin/pk_tcp" serve --port 7002
      sleep 0.2
      client "$bin/pk_tcp" stream --to 10.78.0.2 --port 7002
      ;;
    tcp-rr)
      make_pair
      server "$bin/pk_tcp" serve --port 7002 --mode echo
      sleep 0.2
      client "$bin/pk_tcp" rr --to 10.78.0.2 --port 7002
      ;;
    write)
      # shellcheck disable=SC2016 # for the shell that it starts
      begin sh -c 'while :; do dd if=/dev/zero of="$0" bs=64k count=4096 conv=fsync; done' "$work/written"
      ;;
    pgbench) start_pgbench ;;
    redis)
      begin redis-server --port 7399 --bind 127.0.0.1 --save '' --dir "$work"
      sleep 0.5
      begin redis-benchmark -p 7399 -t get,set -n 1000000000 -c 50 -q
      ;;
    nginx) start_nginx ;;
    build) start_build ;;
    stress-*) begin stress-ng "--${1#stress-}" 2 --timeout 600 --temp-path "$work" ;;
    *) return 1 ;;
  esac
}

# The children of what we started, too: stress-ng's, a shell's.
stop_load() {
  local pid ns
  for pid in "${load_pids[@]}"; do
    pkill -P "$pid" 2>/dev/null || true
    kill "$pid" 2>/dev/null || true
  done
  [[ ! -f $work/data/postmaster.pid ]] || as_postgres pg_ctl -D "$work/data" -m immediate stop >/dev/null || true
  for pid in "${load_pids[@]}"; do wait "$pid" 2>/dev/null || true; done
  load_pids=()
  for ns in a b; do ip netns del "pkl-$$-$ns" 2>/dev/null || true; done
  rm -rf "${work:?}/data"
}
