#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# A problem in a real server, seen in the records of its calls: one worker of nginx sends files that
# are not in memory and one small file that always is. How long the small one's clients wait, with
# sendfile as it comes and with a pool of threads, and what pkprof debox says of the worker meanwhile.
set -euo pipefail
# shellcheck source=bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

usage() {
  cat <<'TEXT'
Usage: bench/debox-nginx.sh [--seconds S] [--rounds N] [--files N] [--dir DIR] [--bin DIR]

Needs root, nginx with threads, and wrk. Makes N files of 2 MiB (300) below DIR, which must not be in
memory (/var/tmp), and takes them out of the page cache before each slice. Listens on loopback.
TEXT
}

seconds=5 rounds=5 files=300 dir=/var/tmp
bin=$(dirname "${BASH_SOURCE[0]}")/../build/release
parse_options "seconds rounds files dir bin" "$@"

PATH=$PATH:/usr/sbin
work=$(mktemp -d "$dir/debox-nginx.XXXXXX")
nginx_pid=''
port=18080
stop() {
  if [[ $nginx_pid ]]; then
    kill "$nginx_pid" 2>/dev/null || true
    wait "$nginx_pid" 2>/dev/null || true
    nginx_pid=''
  fi
}
trap 'stop; rm -rf "$work"' EXIT

mkdir "$work/www"
for ((i = 0; i < files; i++)); do head -c 2097152 /dev/urandom >"$work/www/cold$i"; done
head -c 1024 /dev/urandom >"$work/www/hot"
sync

cat >"$work/cold.lua" <<LUA
local n = 0
request = function()
  n = n + 1
  return wrk.format("GET", "/cold" .. (n % $files))
end
LUA

# Out of the page cache, whoever has read them.
forget() { for file in "$work"/www/cold*; do dd if="$file" of=/dev/null iflag=nocache count=0 status=none; done; }

start() { # $1: off, threads
  cat >"$work/nginx.conf" <<CONF
daemon off;
user root;
worker_processes 1;
pid $work/nginx.pid;
error_log $work/error.log;
events { worker_connections 512; }
http {
  access_log off;
  sendfile on;
  sendfile_max_chunk 512k;
  $([[ $1 == threads ]] && echo 'aio threads;')
  client_body_temp_path $work; proxy_temp_path $work; fastcgi_temp_path $work;
  uwsgi_temp_path $work; scgi_temp_path $work;
  server { listen 127.0.0.1:$port; root $work/www; }
}
CONF
  nginx -c "$work/nginx.conf" &
  nginx_pid=$!
  for ((i = 0; i < 100; i++)); do
    if worker=$(pgrep -P "$nginx_pid") && [[ $worker ]]; then break; fi
    sleep 0.05
  done
}

# What the hot file's clients see: requests a second, median, 99 %.
slice() { # $1: how, $2: where the table goes, if there is to be one
  start "$1"
  forget
  local table=''
  if [[ ${2:-} ]]; then
    "$bin/pkprof" debox -p "$worker" -d "$((seconds + 1))" >"$2" 2>&1 &
    table=$!
    sleep 1
  fi
  wrk -t1 -c4 -d "$seconds" -s "$work/cold.lua" "http://127.0.0.1:$port" >"$work/cold.out" &
  local cold=$!
  wrk -t1 -c1 -d "$seconds" --latency "http://127.0.0.1:$port/hot" >"$work/hot.out"
  wait "$cold"
  [[ ! $table ]] || wait "$table"
  stop
  awk -v how="$1" '/50%/ { p50 = $2 } /99%/ { p99 = $2 } /Requests\/sec/ { rate = $2 }
    END { printf "%-10s %12s %10s %10s", how, rate, p50, p99 }' "$work/hot.out"
  awk '/Transfer\/sec/ { printf " %12s\n", $2 }' "$work/cold.out"
}

printf '%-10s %12s %10s %10s %12s\n' sendfile 'hot req/s' median '99 %' 'cold a s'
for ((round = 0; round < rounds; round++)); do
  if ((round % 2)); then
    slice threads
    slice alone
  else
    slice alone
    slice threads
  fi
done
for how in alone threads; do
  slice "$how" "$work/table" >/dev/null
  echo
  echo "The worker's calls, sendfile $how:"
  cat "$work/table"
done
