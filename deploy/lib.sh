# shellcheck shell=bash
# Sourced by deploy/quickstart.sh, deploy/smoke-test.sh, tests/run.sh and the Dockerfile: how to build here, how to be quiet
# about it, and how to read an answer.

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
