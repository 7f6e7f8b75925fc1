#!/usr/bin/env python3
"""Runs what README.md shows.

  readme_test.py --readme README.md --server PATH --client PATH [--example PATH ...] [--update]

Marks after the language of a fenced block say what is done with it:
  ```sh readme-test      run in order from the repository's top, against a server of the test; each has to succeed
  ```text readme-output  what the block before prints, loosely: its lines in this order, others may stand between;
                         a number stands for any number (error_rate: for one within a tenth of it), also for the - of
                         a table's empty cell (two spaces before it), a run of spaces or of bar signs for any other,
                         ... for anything
  ```LANG from=PATH      an excerpt: these lines stand in that file, layout aside; // ... stands for lines left out
What stands between <!-- generated: COMMAND --> and <!-- generated end --> has to be what COMMAND prints; --update
writes it, and does nothing else.
Every program given with --example is run with --address against the same server and has to succeed.
"""
import argparse
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.M | re.S)
GENERATED = re.compile(r"(<!-- generated: (.+?) -->\n)(.*?)(<!-- generated end -->\n)", re.S)
NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?%?")
NUMBER_PATTERN = r"[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?%?"
# What README promises of the data it brings, and how far off it may be.
ERROR_RATE = re.compile(rf"error_rate\s+({NUMBER.pattern})")
ERROR_RATE_TOLERANCE = 0.1
COMMAND_SECONDS = 240


class ReadmeError(Exception):
    """README.md shows something that does not hold."""


def blocks(text):
    """(line number, mark, body) of each marked block; the mark is what follows the language."""
    for match in FENCE.finditer(text):
        words = match[1].split(maxsplit=1)
        if len(words) == 2:
            yield text.count("\n", 0, match.start()) + 1, words[1], match[2]


def generated(text, output_of):
    """The text with what each command prints now."""
    return GENERATED.sub(lambda match: f"{match[1]}\n{output_of(match[2])}\n{match[4]}", text)


def line_pattern(expected):
    """A regular expression for one line of expected output."""
    pattern = []
    in_table = False
    for piece in re.split(rf"({NUMBER.pattern}|\s+|\.\.\.|[#=\-\u2580-\u259f]{{3,}})", expected.strip()):
        if NUMBER.fullmatch(piece):
            pattern.append(rf"(?:{NUMBER_PATTERN}|-(?=\s|$))" if in_table else NUMBER_PATTERN)
        elif piece == "..." or re.fullmatch(r"[#=\-\u2580-\u259f]{3,}", piece):
            pattern.append(".*")
        elif piece.isspace():
            pattern.append(r"\s+")
        else:
            pattern.append(re.escape(piece))
        if piece:
            in_table = re.fullmatch(r"\s{2,}", piece) is not None
    return re.compile("".join(pattern))


def same_error_rate(wanted, line):
    pair = [ERROR_RATE.search(text) for text in (wanted, line)]
    if pair[0] is None:
        return True
    if pair[1] is None:
        return False
    want, have = (float(match[1].rstrip("%")) for match in pair)
    return abs(have - want) <= ERROR_RATE_TOLERANCE * want


def check_output(expected, actual):
    lines = iter(actual.splitlines())
    for wanted in expected.splitlines():
        if wanted.strip() in ("", "..."):
            continue
        if not any(line_pattern(wanted).search(line) and same_error_rate(wanted, line) for line in lines):
            raise ReadmeError(f"no line like this in the output (from here on): {wanted.strip()}\n{actual}")


def check_excerpt(body, path):
    def dense(text):
        return re.sub(r"\s", "", text)
    have, start = dense(path.read_text(encoding="utf-8")), 0
    for piece in re.split(r"^\s*// \.\.\.$", body, flags=re.M):
        found = have.find(dense(piece), start)
        if found < 0:
            raise ReadmeError(f"these lines do not stand in {path}, in this order:\n{piece}")
        start = found + len(dense(piece))


class Server:
    def __init__(self, program, directory):
        self.log_path = directory / "server.log"
        port_file = directory / "port"
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                [program, f"--data_dir={directory / 'data'}", "--listen=127.0.0.1:0", "--metrics_listen=127.0.0.1:0",
                 f"--port_file={port_file}"], stdout=log, stderr=subprocess.STDOUT)
        deadline = time.monotonic() + 60
        while not (port_file.exists() and port_file.read_text().strip()):
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise ReadmeError("the server did not come up:\n" + self.log())
            time.sleep(0.05)
        self.address = port_file.read_text().strip()

    def log(self):
        return self.log_path.read_text(errors="replace")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        if self.process.wait(timeout=60) != 0:
            raise ReadmeError(f"the server ended with {self.process.returncode}:\n{self.log()}")

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def run(command, environment, root):
    result = subprocess.run(command, cwd=root, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            timeout=COMMAND_SECONDS, text=True, errors="replace", check=False)
    if result.returncode != 0:
        raise ReadmeError(f"{command} ended with {result.returncode}:\n{result.stdout}")
    return result.stdout


def check_generated(options, output_of):
    """Number of generated parts; with --update they are written."""
    text = options.readme.read_text(encoding="utf-8")
    now = generated(text, output_of)
    if now != text and options.update:
        options.readme.write_text(now, encoding="utf-8")
    elif now != text:
        old, new = text.splitlines(), now.splitlines()
        line = next((i for i, (a, b) in enumerate(zip(old, new)) if a != b), min(len(old), len(new)) - 1)
        raise ReadmeError(f"{options.readme.name}:{line + 1}: a generated part is not what its command prints. Have:\n"
                          f"{old[line]}\nwant:\n{new[line]}\nWrite it anew: tests/integration/readme_test.py --update "
                          f"--readme {options.readme} --server {options.server} --client {options.client}")
    return len(GENERATED.findall(text))


def run_readme(options):
    """Number of blocks run or compared."""
    root = options.readme.resolve().parent
    directory = pathlib.Path(tempfile.mkdtemp(prefix="readme_test."))
    server = None
    count, output = 0, None
    try:
        server = Server(options.server, directory)
        programs = {str(pathlib.Path(p).resolve().parent) for p in (options.server, options.client)}
        environment = dict(os.environ, KERNELSTREAM_ADDRESS=server.address,
                           PATH=os.pathsep.join([*programs, os.environ["PATH"]]))
        count += check_generated(options, lambda command: run(["bash", "-eu", "-c", command], environment, root))
        if options.update:
            return count
        for line, mark, body in blocks(options.readme.read_text(encoding="utf-8")):
            try:
                if mark == "readme-test":
                    output = run(["bash", "-eu", "-c", body], environment, root)
                elif mark == "readme-output":
                    check_output(body, output if output is not None else "")
                elif mark.startswith("from="):
                    check_excerpt(body, root / mark[len("from="):])
                else:
                    raise ReadmeError(f"unknown mark: {mark}")
            except (ReadmeError, subprocess.TimeoutExpired, OSError) as error:
                raise ReadmeError(f"{options.readme.name}:{line}: {error}\nserver log:\n{server.log()}") from error
            count += 1
        for example in options.example:
            run([example, "--address", server.address], environment, root)
            count += 1
        server.stop()
        return count
    finally:
        if server is not None:
            server.kill()
        shutil.rmtree(directory, ignore_errors=True)


class SelfTest(unittest.TestCase):
    """The comparison can fail; run with --self_test."""

    def test_numbers_spaces_and_lines_between_do_not_matter(self):
        check_output("rows  12,000 error 0.15\n...\ndone\n", "x\nrows 7 error 15.2%\ny\ndone and more\n")

    def test_only_cells_of_tables_may_be_empty(self):
        check_output("call   0.541   4,926", "call   -   4,926")
        check_output("call   4,926   0.541", "call   4,926   -")
        with self.assertRaises(ReadmeError):
            check_output("error_rate   0.15", "error_rate   -")
        for actual in ("call - 4,926", "call   x   4,926"):
            with self.assertRaises(ReadmeError):
                check_output("call 0.541   4,926", actual)

    def test_error_rates_matter(self):
        check_output("error_rate 0.1500\n", "error_rate 0.1390\n")
        for actual in ("error_rate 0.1300\n", "error_rate 0.2\n", "error_rate 15.0%\n"):
            with self.assertRaises(ReadmeError):
                check_output("error_rate 0.1500\n", actual)

    def test_words_and_order_matter(self):
        for expected in ("rows 12 loss 3\n", "b 1\na 1\n", "c\n"):
            with self.assertRaises(ReadmeError):
                check_output(expected, "rows 12 error 3\na 1\nb 1\n")

    def test_excerpt_must_stand_in_the_file_in_this_order(self):
        with tempfile.TemporaryDirectory() as directory:
            path = pathlib.Path(directory) / "x.cc"
            path.write_text("int a;\nint b =\n    Call(1);\nint c;\n")
            check_excerpt("int a;\nint b = Call(1);\n", path)
            check_excerpt("int a;\n// ...\nint c;\n", path)
            for body in ("int a;\nint c;\n", "int c;\n// ...\nint a;\n", "int d;\n"):
                with self.assertRaises(ReadmeError):
                    check_excerpt(body, path)

    def test_generated_parts_are_what_their_commands_print(self):
        text = "a\n<!-- generated: x -->\n\nold\n\n<!-- generated end -->\nb\n"
        self.assertEqual(generated(text, lambda command: f"{command}1\n"), text.replace("old", "x1"))
        self.assertEqual(generated(text, lambda command: "old\n"), text)

    def test_only_marked_blocks_count(self):
        text = "```sh\na\n```\n\n```sh readme-test\nb\n```\n```text readme-output\nc\n```\n"
        self.assertEqual([(m, b) for _, m, b in blocks(text)], [("readme-test", "b\n"), ("readme-output", "c\n")])


def main():
    if sys.argv[1:] == ["--self_test"]:
        unittest.main(argv=sys.argv[:1])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--readme", type=pathlib.Path, required=True)
    parser.add_argument("--server", required=True)
    parser.add_argument("--client", required=True)
    parser.add_argument("--example", action="append", default=[])
    parser.add_argument("--update", action="store_true")
    try:
        count = run_readme(parser.parse_args())
    except ReadmeError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{count} blocks and programs of the README hold")
    return 0 if count else 1


if __name__ == "__main__":
    sys.exit(main())
