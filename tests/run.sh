#!/usr/bin/env bash
# Runs the tests on Debian 12, starting from nothing: installs what is missing (deploy/packages.txt), builds, tests.
#   tests/run.sh                        everything below
#   KERNELSTREAM_FAST=1 tests/run.sh    the release build only, without the sanitizers and clang
#   KERNELSTREAM_DATA=DIR tests/run.sh  also the tests that need the larger data sets
# 1. release: all tests but those labelled long or paper-full    2. tsan: those labelled concurrency
# 3. asan-ubsan: those labelled unit or garbage
# The sanitizer builds use clang, which checks every lock annotation while it compiles.
# The last line is "N passed, N failed"; a build that breaks counts as one failure. Before it come the names of the tests
# that were skipped, also of those inside a program that passed.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
. deploy/lib.sh
passed=0
failed=0
skipped=()

say() { printf '[%3d min] %s\n' $((SECONDS / 60)) "$*"; }

finish() {
  if [ "${#skipped[@]}" -gt 0 ]; then
    echo "${#skipped[@]} skipped (why: build/PRESET/junit.xml):"
    printf '  %s\n' "${skipped[@]}"
  fi
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

# Names of the programs that skipped themselves, and of the tests that programs did not run.
skips() {
  awk -F'"' '/^[[:space:]]*<testcase /{name = $2} /^[[:space:]]*<skipped message="(SKIP_|Disabled)/{print name}' "$1"
  sed -nE 's/^.*\[  SKIPPED \] ([^ ]+\.[^ ]+)( .*)?$/\1/p' "$1" | sort -u
}

run_tests() {
  local preset=$1 junit=$PWD/build/$1/junit.xml status=0 bad=0 programs name
  say "test $preset"
  rm -f "$junit"
  ctest --preset "$preset" -j "$jobs" --output-junit "$junit" --test-output-size-passed 1000000 |
    grep --line-buffered -vE '^ *Start +[0-9]+:|^$' || status=$?
  if [ -f "$junit" ]; then
    # ctest calls a test whose program is missing "skipped" too; such a test has failed.
    programs=$(grep -cE '^[[:space:]]*<skipped message="(SKIP_|Disabled)' "$junit")
    bad=$(($(cases "$junit" 'fail|notrun|disabled') - programs))
    passed=$((passed + $(cases "$junit" run)))
    while read -r name; do skipped+=("$preset $name"); done < <(skips "$junit")
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
