#!/bin/sh
# Installs the Debian packages of one or more sections of deploy/packages.txt: build, test, runtime.
#   deploy/install-packages.sh build test
#   deploy/install-packages.sh --list build     prints the names and installs nothing
# Does nothing, and needs neither root nor network, when everything is there already.
set -eu
list=$(dirname "$0")/packages.txt
only_print=0
if [ "${1:-}" = --list ]; then
  only_print=1
  shift
fi
[ $# -gt 0 ] || { sed -n '2,5s/^# \{0,1\}//p' "$0"; exit 2; }

packages=
for section in "$@"; do
  names=$(sed -n "/^\[$section\]\$/,/^\[/{/^[a-z0-9]/p}" "$list")
  [ -n "$names" ] || { echo "install-packages: no section [$section] in $list" >&2; exit 2; }
  packages="$packages $names"
done
if [ "$only_print" = 1 ]; then
  printf '%s\n' $packages
  exit
fi

missing=
for package in $packages; do
  status=$(dpkg-query -W -f '${Status}' "$package" 2>/dev/null || true)
  [ "$status" = "install ok installed" ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

sudo=
if [ "$(id -u)" != 0 ]; then
  command -v sudo >/dev/null || {
    echo "install-packages: run as root or install sudo; missing:$missing" >&2
    exit 1
  }
  sudo=sudo
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt() { $sudo env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 "$@" >"$log" 2>&1; }
echo "installing$missing"
if ! { apt update && apt install -y --no-install-recommends $missing; }; then
  cat "$log" >&2
  echo "install-packages: apt-get failed; this needs Debian 12 (bookworm) and its package archive" >&2
  exit 1
fi
