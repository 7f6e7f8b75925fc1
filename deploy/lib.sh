# shellcheck shell=bash
# Sourced by the scripts of deploy/, tests/run.sh and the Dockerfile: how to build here, how to be quiet about it, how to
# read an answer, and how to make a Debian.

# One compiler for gRPC code takes up to 1.5 GiB: no more of them at once than fit.
parallel_jobs() {
  local cores memory_kib fit
  cores=$(nproc)
  memory_kib=$(awk '/^MemAvailable:/ {print $2}' /proc/meminfo)
  fit=$((memory_kib / 1572864))
  [ "$fit" -ge 1 ] || fit=1
  [ "$fit" -lt "$cores" ] && echo "$fit" || echo "$cores"
}

# run_logged LOG COMMAND...: quiet, but a line every half minute; shows what went wrong if COMMAND fails.
run_logged() {
  local log=$1 pid waited=0
  shift
  "$@" >"$log" 2>&1 &
  pid=$!
  while kill -0 "$pid" 2>/dev/null; do
    sleep 1
    waited=$((waited + 1))
    [ $((waited % 30)) != 0 ] || printf '  %3d s  %s\n' "$waited" "$(tail -n 1 "$log" | cut -c 1-100)"
  done
  wait "$pid" && return 0
  grep -E -m 1 -A 20 'FAILED:|CMake Error' "$log" || tail -n 40 "$log"
  return 1
}

# json_value KEY: the number or string after KEY in the JSON on standard input.
json_value() { grep -oE "\"$1\": *\"?[^\",}]+" | head -n 1 | sed -E 's/^[^:]*: *"?//'; }

# debian_root DIR: a minimal Debian 12 in the empty directory DIR. Its packages come from where this machine's Debian
# packages come from, or else from where debootstrap takes them. Needs root.
debian_root() {
  local sources mirror log
  command -v debootstrap >/dev/null || { echo "install debootstrap: a minimal Debian is to be made" >&2; return 1; }
  chmod 755 "$1"
  sources=$(apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) $(COMPONENT)' \
    'Created-By: Packages' 'Origin: Debian' 2>/dev/null | grep ' bookworm' | sort -u || true)
  mirror=$(awk '$3 == "bookworm" {print $2; exit}' <<<"$sources")
  log=$(mktemp)
  debootstrap --variant=minbase bookworm "$1" ${mirror:+"$mirror"} >"$log" 2>&1 || { tail -n 20 "$log" >&2; return 1; }
  rm -f "$log" "$1"/var/cache/apt/archives/*.deb
  [ -z "$mirror" ] || echo "$sources" >"$1/etc/apt/sources.list"
  cp -a /etc/apt/apt.conf.d "$1/etc/apt/"
}
