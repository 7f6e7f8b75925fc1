#!/usr/bin/env bash
# Builds the container image with whatever is there: docker, podman, or buildah without any daemon.
#   deploy/build-image.sh [TAG] [--build-arg NAME=VALUE ...]      TAG defaults to kernelstream
# CONTAINER_ENGINE=docker|podman|buildah overrides the choice. Buildah runs in chroot isolation, so root in a container
# is enough; where no registry can be reached it makes the base image itself with debootstrap.
set -euo pipefail
cd "$(dirname "$0")/.."
. deploy/lib.sh
tag=kernelstream
case "${1:-}" in
  "" | --*) ;;
  *) tag=$1; shift ;;
esac
base=docker.io/library/debian:bookworm-slim

engine() {
  if [ -n "${CONTAINER_ENGINE:-}" ]; then
    echo "$CONTAINER_ENGINE"
  elif docker info >/dev/null 2>&1; then
    echo docker
  elif command -v buildah >/dev/null; then
    echo buildah
  elif command -v podman >/dev/null; then
    echo podman
  else
    echo "build-image: install docker, podman or buildah" >&2
    return 1
  fi
}

# A minimal Debian from the machine's own package sources, under the name the Dockerfile asks for.
make_base() {
  local root container
  echo "build-image: cannot pull $base; making one" >&2
  root=$(mktemp -d -t kernelstream-base.XXXXXX)
  debian_root "$root"
  container=$(run_buildah from scratch)
  tar -C "$root" -cf "$root.tar" .
  run_buildah add -q "$container" "$root.tar" / >/dev/null
  run_buildah config --cmd /bin/bash "$container"
  run_buildah commit -q "$container" "$base" >/dev/null
  run_buildah rm "$container" >/dev/null
  rm -rf --one-file-system "$root" "$root.tar"
}
run_buildah() { buildah --storage-driver "${STORAGE_DRIVER:-vfs}" "$@"; }

case "$(engine)" in
  docker) docker build -t "$tag" "$@" . ;;
  podman) podman build --format docker -t "$tag" "$@" . ;;
  buildah)
    run_buildah images -q "$base" >/dev/null 2>&1 || run_buildah pull -q "$base" >/dev/null 2>&1 || make_base
    run_buildah bud --isolation chroot --format docker --pull-never --build-arg BASE="$base" -t "$tag" "$@" .
    ;;
  *) exit 1 ;;
esac
