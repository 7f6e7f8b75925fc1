#!/usr/bin/env python3
"""Tests the table that run.py makes of benchmarks' lines."""
import unittest

from run import bars_table


def outputs(*figures):
    """Of one run: a bar to be above and one to be below, each with this figure."""
    lines = ["# cpu=one", "other output"]
    for figure in figures:
        lines.append(f"bar | 7 | slow (took {figure}) | {figure} x | 3 % | <= 1.1 | "
                     f"{'reached' if figure <= 1.1 else 'missed'}")
    for figure in figures:
        lines.append(f"bar | 1 | quick | {figure} of limit |  | >= 0.8 | {'reached' if figure >= 0.8 else 'missed'}")
    return ["\n".join(lines)]


class BarsTable(unittest.TestCase):
    def test_one_run_is_shown_as_it_is_by_number(self):
        self.assertEqual(bars_table([outputs(0.5)])[:1] + bars_table([outputs(0.5)])[4:], [
            "cpu=one",
            "| 1 | quick | 0.5 of limit |  | >= 0.8 | missed |",
            "| 7 | slow (took 0.5) | 0.5 x | 3 % | <= 1.1 | reached |"])

    def test_of_several_runs_the_middle(self):
        self.assertEqual(bars_table([outputs(f) for f in (10, 0.9, 1)])[4:], [
            "| 1 | quick | 1 of limit | 0.9, 10 | >= 0.8 | 3 of 3 |",
            "| 7 | slow | 1 x | 0.9, 10 | <= 1.1 | 2 of 3 |"])

    def test_of_an_even_number_the_worse_middle(self):
        self.assertEqual(bars_table([outputs(f) for f in (1, 0.7, 1.2, 0.5)])[4:], [
            "| 1 | quick | 0.7 of limit | 0.5, 1.2 | >= 0.8 | 2 of 4 |",
            "| 7 | slow | 1 x | 0.5, 1.2 | <= 1.1 | 3 of 4 |"])


if __name__ == "__main__":
    unittest.main()
