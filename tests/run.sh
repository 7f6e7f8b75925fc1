#!/usr/bin/env bash
# Runs the tests on Debian 12, starting from nothing: installs what is missing (deploy/packages.txt), builds, tests.
#   tests/run.sh                        everything below
#   KERNELSTREAM_FAST=1 tests/run.sh    the release build only, without the sanitizers and clang
#   KERNELSTREAM_DATA=DIR tests/run.sh  also the tests that need the larger data sets
# 1. release: all tests but those labelled long or paper-full    2. tsan: those labelled concurrency
# 3. asan-ubsan: those labelled unit or garbage
# The sanitizer builds use clang, which checks every lock annotation while it compiles.
# The last line is "N passed, N failed"; a build that breaks counts as one failure.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
. deploy/lib.sh
passed=0
failed=0

say() { printf '[%3d min] %s\n' $((SECONDS / 60)) "$*"; }

finish() {
  echo "$passed passed, $failed failed"
  [ "$failed" = 0 ] && [ "$passed" -gt 0 ]
  exit
}

build() {
  local preset=$1
  say "build $preset"
  mkdir -p "build/$preset"
  if run_logged "build/$preset/configure.log" cmake --preset "$preset" &&
    run_logged "build/$preset/build.log" cmake --build --preset "$preset" -j "$jobs"; then
    return 0
  fi
  failed=$((failed + 1))
  say "build $preset FAILED; see build/$preset/*.log"
  return 1
}

# How many test cases of a JUnit file have this status; text inside a case is escaped and cannot match.
cases() { grep -cE "^[[:space:]]*<testcase .*status=\"($2)\"" "$1"; }

run_tests() {
  local preset=$1 junit=$PWD/build/$1/junit.xml status=0 bad=0 skipped
  say "test $preset"
  rm -f "$junit"
  ctest --preset "$preset" -j "$jobs" --output-junit "$junit" |
    grep --line-buffered -vE '^ *Start +[0-9]+:|^$' || status=$?
  if [ -f "$junit" ]; then
    # ctest calls a test whose program is missing "skipped" too; such a test has failed.
    skipped=$(grep -cE '^[[:space:]]*<skipped message="(SKIP_|Disabled)' "$junit")
    bad=$(($(cases "$junit" 'fail|notrun|disabled') - skipped))
    passed=$((passed + $(cases "$junit" run)))
    [ "$skipped" = 0 ] || say "  $skipped skipped"
  fi
  [ "$status" = 0 ] || [ "$bad" -gt 0 ] || bad=1
  failed=$((failed + bad))
}

say "packages"
if ! deploy/install-packages.sh build test; then
  failed=1
  finish
fi
jobs=$(parallel_jobs)

build release && run_tests release
if [ "${KERNELSTREAM_FAST:-0}" != 1 ]; then
  build tsan && run_tests tsan
  build asan-ubsan && run_tests asan-ubsan
fi
finish
