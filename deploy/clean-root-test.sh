#!/usr/bin/env bash
# Proves that a script needs nothing but a minimal Debian 12: makes one with debootstrap, copies this checkout's files
# into it (those that git tracks, as they are now), and runs COMMAND there in a chroot. Fails as COMMAND does.
#   sudo deploy/clean-root-test.sh tests/run.sh               every test; half an hour on two cores
#   sudo deploy/clean-root-test.sh deploy/quickstart.sh
#   sudo deploy/clean-root-test.sh --root DIR COMMAND...      keeps the root in DIR, or goes on with the one that is there
# Variables set in front of COMMAND with env get in, no others: ... env KERNELSTREAM_FAST=1 tests/run.sh
set -euo pipefail
. "$(dirname "$0")/lib.sh"
root=
if [ "${1:-}" = --root ]; then
  root=${2:-}
  [ -n "$root" ] || { echo "clean-root-test: --root needs a directory" >&2; exit 2; }
  shift 2
fi
[ $# -gt 0 ] || { sed -n '2,7s/^# \{0,1\}//p' "$0"; exit 2; }
[ "$(id -u)" = 0 ] || { echo "clean-root-test: run as root; debootstrap, mount and chroot need it" >&2; exit 1; }
source=$(cd "$(dirname "$0")/.." && pwd)

keep=${root:+1}
if [ -n "$root" ]; then
  mkdir -p "$root"
  root=$(cd "$root" && pwd)
else
  root=$(mktemp -d -t kernelstream-root.XXXXXX)
fi
mounted=()
cleanup() {
  local status=$? place
  trap - EXIT
  for place in "${mounted[@]}"; do umount -l "$root/$place" || true; done
  # Whatever is still mounted is not ours to remove.
  [ -n "$keep" ] || rm -rf --one-file-system "$root"
  exit "$status"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

[ -e "$root/etc/debian_version" ] || debian_root "$root"
cp -L /etc/resolv.conf "$root/etc/resolv.conf"
rm -rf "$root/src/kernelstream"
mkdir -p "$root/src/kernelstream"
git -c safe.directory="$source" -C "$source" ls-files -z |
  tar -C "$source" --null --no-recursion -T - -cf - | tar -C "$root/src/kernelstream" --no-same-owner -xf -
for place in proc sys dev dev/pts dev/shm; do
  [ -d "/$place" ] || continue
  mkdir -p "$root/$place"
  mount --bind "/$place" "$root/$place"
  mounted=("$place" "${mounted[@]}")
done
chroot "$root" /usr/bin/env -i HOME=/root TERM="${TERM:-dumb}" LANG=C.UTF-8 \
  PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
  sh -c 'cd /src/kernelstream && exec "$@"' sh "$@"
