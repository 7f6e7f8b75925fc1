#!/usr/bin/env python3
"""Runs every benchmark and writes one table (Markdown) to standard output.

  tests/bench/run.py [--build build/release] [--quick] > figures.md
  tests/bench/run.py --bars [--runs 5] > bars.md

First what has to be reached (--bars: only that), one line each; of several runs the median (of an even number the worse
of the two in the middle), the extremes and how many reached it. Each run's table also goes to standard error as it ends. Each Google Benchmark line is the median of three repetitions, with their spread beside it; the other programs print
their own lines. --quick: a tenth of the time, to see that everything runs. Run it while nothing else does.
"""
import argparse
import json
import re
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


def run(program, arguments):
    """Standard output; what a program that fails says goes to standard error."""
    done = subprocess.run([program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.stderr.write(done.stdout + done.stderr)
        raise SystemExit(f"{program} failed: exit status {done.returncode}")
    return done.stdout


def bar_lines(output):
    """The fields of the lines that begin with "bar |"."""
    return [[field.strip() for field in line.split("|")[1:]] for line in output.splitlines() if line.startswith("bar |")]


def bars_table(runs):
    """Lines of a table of the bars by number; each run is the outputs of all programs."""
    machine = next(line for line in runs[0][0].splitlines() if line.startswith("#"))
    table = [machine.lstrip("# "), ""]
    measured = {}
    for outputs in runs:
        for line in (line for output in outputs for line in bar_lines(output)):
            # Figures of the one run are in parentheses.
            name = line[1] if len(runs) == 1 else re.sub(r" \([^)]*\)", "", line[1])
            measured.setdefault((int(line[0]), name), []).append(line)
    by_number = sorted(measured.items(), key=lambda item: item[0][0])
    if len(runs) == 1:
        table += ["| # | measure | figure | spread | bar | |", "|---|---|---|---|---|---|"]
        return table + [f"| {' | '.join(line)} |" for _, lines in by_number for line in lines]
    table += [f"| # | measure | median of {len(runs)} | lowest, highest | bar | reached |", "|---|---|---|---|---|---|"]
    for (number, name), lines in by_number:
        figures = sorted((line[2] for line in lines), key=lambda figure: float(figure.split()[0]))
        low, high = (figures[i].split()[0] for i in (0, -1))
        at_most = lines[0][4].startswith("<=")
        middle = figures[len(figures) // 2 if at_most else (len(figures) - 1) // 2]
        reached = sum(line[5] == "reached" for line in lines)
        table.append(f"| {number} | {name} | {middle} | {low}, {high} | {lines[0][4]} | {reached} of {len(lines)} |")
    return table


def run_programs(bench, programs):
    """The outputs of all programs; their table goes to standard error."""
    outputs = [run(f"{bench}/{name}", arguments) for name, arguments in programs]
    print("\n".join(bars_table([outputs])) + "\n", file=sys.stderr, flush=True)
    return outputs


def positive(text):
    if int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return int(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--bars", action="store_true")
    parser.add_argument("--runs", type=positive, default=1)
    args = parser.parse_args()
    bench = f"{args.build}/tests/bench"
    seconds, models = ("0.3", "50") if args.quick else ("3", "1000")
    programs = (("bars_bench", []), ("rpc_bench", [seconds]), ("fleet_bench", [models]))
    runs = [run_programs(bench, programs) for _ in range(args.runs)]
    print("\n".join(bars_table(runs)), flush=True)
    if args.bars:
        return 0
    for name in ("core_simd_bench", "core_model_bench"):
        print(f"\n## {name}\n", flush=True)
        google_rows(f"{bench}/{name}", 0.02 if args.quick else 0.2)
    print(f"\n## kernel_bench\n\n{run(f'{bench}/kernel_bench', [])}")
    for name, output in zip((name for name, _ in programs), runs[0]):
        print(f"\n## {name}\n\n```\n{output}```", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
