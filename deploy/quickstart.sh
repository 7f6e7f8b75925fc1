#!/usr/bin/env bash
# From a bare Debian 12 to a model that learned: installs, builds, starts a server, streams UCI Adult to it, asks it about
# people it has not seen, kills it with SIGKILL, and shows that it comes back as the same model.
#   deploy/quickstart.sh           about two minutes after the build; leaves nothing behind but build/programs
#   deploy/quickstart.sh --keep    leaves the server running and says how to reach and stop it
set -euo pipefail
case "${1:-}" in
  "") keep=0 ;;
  --keep) keep=1 ;;
  *) sed -n '2,5s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac
cd "$(dirname "$0")/.."
. deploy/lib.sh

train=client/examples/a9a.libsvm.gz
held_out=client/examples/a9a.t.libsvm.gz
max_error_percent=16.5
work=$(mktemp -d -t kernelstream-quickstart.XXXXXX)
server_pid=

cleanup() {
  local status=$?
  trap - EXIT
  if [ "$status" != 0 ] && [ -s "$work/server.log" ]; then
    echo "The last lines of the server's log:" >&2
    tail -n 20 "$work/server.log" >&2
  fi
  if [ "$status" != 0 ] || [ "$keep" = 0 ]; then
    if [ -n "$server_pid" ] && kill "$server_pid" 2>/dev/null; then
      wait "$server_pid" || true
    fi
    rm -rf "$work"
  fi
  exit "$status"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

step() { printf '\n== %s\n' "$*"; }
show() {
  printf '$ %s\n' "$*"
  "$@"
}
fail() {
  echo "quickstart: $*" >&2
  exit 1
}

start_server() {
  rm -f "$work/port"
  kernelstream-server --data_dir="$work/data" --listen=127.0.0.1:0 --metrics_listen=127.0.0.1:0 \
    --port_file="$work/port" >>"$work/server.log" 2>&1 &
  server_pid=$!
  for _ in $(seq 300); do
    [ ! -s "$work/port" ] || break
    kill -0 "$server_pid" 2>/dev/null || fail "the server did not start"
    sleep 0.1
  done
  [ -s "$work/port" ] || fail "the server did not listen within 30 seconds"
  KERNELSTREAM_ADDRESS=$(cat "$work/port")
  export KERNELSTREAM_ADDRESS
  for _ in $(seq 300); do
    ! kernelstream health >/dev/null 2>&1 || return 0
    sleep 0.1
  done
  fail "the server was not ready within 30 seconds"
}

step "Packages and programs"
deploy/install-packages.sh build runtime
cmake --preset programs >"$work/configure.log" 2>&1 || { cat "$work/configure.log"; exit 1; }
echo "building with $(parallel_jobs) compilers at once; the first time takes some minutes"
run_logged "$work/build.log" cmake --build --preset programs -j "$(parallel_jobs)" || fail "the build failed"
PATH=$PWD/build/programs/server:$PWD/build/programs/client/cli:$PATH

step "A server, and a model that has learned nothing yet"
start_server
echo "kernelstream-server listens on $KERNELSTREAM_ADDRESS"
show kernelstream create adult --loss logistic

step "Stream $(zcat "$train" | wc -l) rows: does this person earn more than 50 000 dollars a year?"
started=$(date +%s%N)
show kernelstream update adult --input "$train" --format libsvm
elapsed_ms=$((($(date +%s%N) - started) / 1000000 + 1))
echo "$(($(zcat "$train" | wc -l) * 1000 / elapsed_ms)) rows/s from file to published model"

step "Predict five people it has not seen"
zcat "$held_out" | sed -n 1,5p >"$work/five.libsvm"
show kernelstream predict adult --input "$work/five.libsvm" --format libsvm
echo "their labels: $(cut -d ' ' -f 1 "$work/five.libsvm" | tr '\n' ' ')"

step "Evaluate $(zcat "$held_out" | wc -l) held-out rows"
show kernelstream evaluate adult --input "$held_out" --format libsvm
error=$(kernelstream evaluate adult --input "$held_out" --format libsvm --json | json_value error_rate)
error_percent=$(awk -v error="$error" 'BEGIN {printf "%.2f", 100 * error}')

step "kill -9, start again"
before=$(kernelstream describe adult --json | json_value fingerprint)
{ kill -9 "$server_pid" && wait "$server_pid"; } 2>/dev/null || true
start_server
after=$(kernelstream describe adult --json | json_value fingerprint)
echo "fingerprint before: $before"
echo "fingerprint after:  $after"
[ -n "$before" ] && [ "$before" = "$after" ] || fail "the model changed over the restart"

step "Done"
echo "held-out error: $error_percent % (always answering no: 23.6 %)"
awk -v error="$error_percent" -v limit="$max_error_percent" 'BEGIN {exit !(error != "" && error + 0 > 0 && error + 0 <= limit)}' ||
  fail "held-out error $error_percent % is not within $max_error_percent %"
if [ "$keep" = 1 ]; then
  cat <<MESSAGE
The server is still running. In this directory:
  export KERNELSTREAM_ADDRESS=$KERNELSTREAM_ADDRESS PATH=$PWD/build/programs/client/cli:\$PATH
  kernelstream list
  kernelstream describe adult
  kernelstream update adult --input YOUR_FILE --format libsvm
Stop it and remove its data:
  kill $server_pid; rm -rf $work
MESSAGE
else
  kill "$server_pid"
  wait "$server_pid" || fail "the server did not stop cleanly"
  server_pid=
  echo "The server has stopped. Try next: deploy/quickstart.sh --keep, then the tour in README.md"
fi
