#!/usr/bin/env bash
# Builds the image and uses it as a user would: a server in one container; create, stream, predict and evaluate with the
# command line in the image; not root; health; a clean stop; the model is still there after a restart; not larger than it has to be.
#   deploy/smoke-test.sh [TAG]      SKIP_BUILD=1 tests an image that is there already
set -euo pipefail
cd "$(dirname "$0")/.."
. deploy/lib.sh
tag=${1:-kernelstream}
train=client/examples/a9a.libsvm.gz
held_out=client/examples/a9a.t.libsvm.gz
max_mib=250  # about twice what it is
work=$(mktemp -d -t kernelstream-smoke.XXXXXX)
container=
fail() {
  echo "smoke-test: $*" >&2
  exit 1
}

[ "${SKIP_BUILD:-0}" = 1 ] || deploy/build-image.sh "$tag"

# Two engines, the same five verbs: start, address, inside COMMAND..., stop, size.
if [ "${CONTAINER_ENGINE:-docker}" = docker ] && docker info >/dev/null 2>&1; then
  start() { container=$(docker run -d -p 127.0.0.1::50051 -v kernelstream-smoke:/data "$tag"); }
  inside() { docker exec -i "$container" "$@"; }
  stop() {
    docker stop -t 30 "$container" >/dev/null
    status=$(docker inspect -f '{{.State.ExitCode}}' "$container")
    docker logs "$container" >>"$work/server.log" 2>&1
    docker rm "$container" >/dev/null
    container=
  }
  size() { docker image inspect -f '{{.Size}}' "$tag"; }
  cleanup_engine() {
    [ -z "$container" ] || docker rm -f "$container" >/dev/null
    docker volume rm -f kernelstream-smoke >/dev/null
  }
else
  # Buildah shares the host's network and processes: the port is the server's own choice. It puts
  # a fresh volume on /data in every run, so the data directory is one of ours under another name.
  run_buildah() { buildah --storage-driver "${STORAGE_DRIVER:-vfs}" "$@"; }
  container=$(run_buildah from --pull-never "$tag")
  data=$work/data
  install -d -o 10001 -g 10001 "$data"
  chmod 755 "$work"
  in_image() { run_buildah run --isolation chroot -v "$data:/state" \
    --env KERNELSTREAM_DATA_DIR=/state --env KERNELSTREAM_LISTEN=127.0.0.1:0 \
    --env KERNELSTREAM_METRICS_LISTEN=127.0.0.1:0 --env KERNELSTREAM_ADDRESS="${address:-}" "$container" -- "$@"; }
  start() {
    rm -f "$data/port"  # that of the server before
    in_image sh -c 'echo $$ >/state/pid; exec kernelstream-server --port_file=/state/port' \
      >>"$work/server.log" 2>&1 &
    server=$!
    for _ in $(seq 300); do
      [ ! -s "$data/port" ] || break
      kill -0 "$server" 2>/dev/null || fail "the server did not start"
      sleep 0.1
    done
    [ -s "$data/port" ] || fail "the server did not listen within 30 seconds"
    address=$(cat "$data/port")
  }
  inside() { in_image "$@"; }
  stop() {
    kill "$(cat "$data/pid")"
    status=0
    wait "$server" || status=$?
    server=
  }
  size() { du -sb "$(run_buildah mount "$container")" | cut -f 1; }
  cleanup_engine() {
    [ -z "${server:-}" ] || [ ! -s "$data/pid" ] || kill "$(cat "$data/pid")" || true
    run_buildah rm "$container" >/dev/null
  }
fi
cleanup() {
  local code=$?
  trap - EXIT
  [ "$code" = 0 ] || [ ! -s "$work/server.log" ] || tail -n 20 "$work/server.log" >&2
  cleanup_engine || true
  rm -rf "$work"
  exit "$code"
}
trap cleanup EXIT
wait_healthy() {
  for _ in $(seq 60); do
    ! inside kernelstream health >/dev/null 2>&1 || return 0
    sleep 0.5
  done
  fail "not healthy within 30 seconds"
}

start
wait_healthy
uid=$(inside id -u)
[ "$uid" != 0 ] || fail "the container runs as root"
inside kernelstream create smoke --loss logistic
inside kernelstream update smoke --input - --format libsvm <"$train"
zcat "$held_out" | sed -n 1,5p >"$work/five.libsvm"
inside kernelstream predict smoke --input - --format libsvm <"$work/five.libsvm"
inside kernelstream evaluate smoke --input - --format libsvm <"$held_out"
error=$(inside kernelstream evaluate smoke --input - --format libsvm --json <"$held_out" | json_value error_rate)
awk -v error="$error" 'BEGIN {exit !(error != "" && error > 0 && error <= 0.165)}' || fail "held-out error $error"
before=$(inside kernelstream describe smoke --json | json_value fingerprint)

stop
[ "$status" = 0 ] || fail "SIGTERM ended with status $status"
start
wait_healthy
after=$(inside kernelstream describe smoke --json | json_value fingerprint)
[ -n "$before" ] && [ "$before" = "$after" ] || fail "fingerprint $before became $after over a restart"
stop
mib=$(($(size) / 1048576))
[ "$mib" -gt 0 ] && [ "$mib" -le "$max_mib" ] || fail "the image has $mib MiB; it is not to be larger than $max_mib MiB"
echo "image $tag: uid $uid, $mib MiB, held-out error $error, same model after a restart"
