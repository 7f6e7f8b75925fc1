#!/usr/bin/env python3
"""Runs every benchmark and writes one table (Markdown) to standard output.

  tests/bench/run.py [--build build/release] [--quick] > figures.md

Each Google Benchmark line is the median of three repetitions, with their spread beside it; the other programs print
their own lines. --quick: a tenth of the time, to see that everything runs. Run it while nothing else does.
"""
import argparse
import json
import subprocess
import sys


def spread(times):
    """Half the distance between the extremes, in percent of the middle."""
    middle = sorted(times)[len(times) // 2]
    return 50 * (max(times) - min(times)) / middle if middle else 0


def google_rows(program, min_time):
    out = subprocess.run(
        [program, "--benchmark_format=json", "--benchmark_repetitions=3",
         f"--benchmark_min_time={min_time}"],
        check=True, stdout=subprocess.PIPE, text=True).stdout
    begin = out.index("{")
    if out[:begin].strip():
        print(out[:begin].strip() + "\n")
    groups = {}
    for run in json.loads(out[begin:])["benchmarks"]:
        if run.get("run_type") == "iteration":
            groups.setdefault(run["run_name"], []).append(run)
    print("| benchmark | ns per call, median of 3 | spread | counters |\n|---|---|---|---|")
    known = {"name", "run_name", "run_type", "repetitions", "repetition_index", "threads", "iterations",
             "real_time", "cpu_time", "time_unit", "family_index", "per_family_instance_index"}
    for name, runs in groups.items():
        times = [run["real_time"] for run in runs]
        middle = sorted(runs, key=lambda run: run["real_time"])[len(runs) // 2]
        counters = ", ".join(f"{key} {value:.4g}" for key, value in middle.items()
                             if key not in known and isinstance(value, (int, float)))
        print(f"| {name} | {middle['real_time']:.0f} | {spread(times):.0f} % | {counters} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    bench = f"{args.build}/tests/bench"
    for name in ("core_simd_bench", "core_model_bench"):
        print(f"\n## {name}\n", flush=True)
        google_rows(f"{bench}/{name}", 0.02 if args.quick else 0.2)
    for name, arguments in (("kernel_bench", []), ("rpc_bench", ["0.3" if args.quick else "3"]),
                            ("fleet_bench", ["50"] if args.quick else [])):
        print(f"\n## {name}\n", flush=True)
        lines = subprocess.run([f"{bench}/{name}", *arguments], check=True, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True).stdout
        print(lines if name == "kernel_bench" else f"```\n{lines}```", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
