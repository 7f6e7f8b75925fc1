#!/usr/bin/env python3
"""House rules that a search can check: names, unfinished marks, machine paths, file length.

  names_test.py [--root DIR]     prints one line per violation and exits with 1 if there is any
"""
import argparse
import pathlib
import re
import sys

FOLDERS = ("proto", "core", "server", "client", "tests", "deploy", ".ci")
TOP_FILES = ("CMakeLists.txt", "CMakePresets.json", "Dockerfile", "README.md")
TEXT = {".h", ".cc", ".inc", ".proto", ".py", ".sh", ".md", ".txt", ".json", ".yaml", ".yml", ".go", ""}
CODE = {".h", ".cc", ".inc", ".proto", ".py", ".sh", ".go"}
MAX_LINES = 600

# Written in pieces so that this file passes its own check.
UNFINISHED = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b")
MACHINE_PATH = re.compile(r"(?<![\w.])/(wo" r"rk|ho" r"me|ro" r"ot)/\w")
# A kernel's width is `bandwidth`. The Gamma function of the mathematics keeps its name.
GREEK = re.compile(r"(?<![A-Za-z0-9])(gam" r"ma|sig" r"ma|ta" r"u)(?![A-Za-z0-9])")
GAMMA_FUNCTION = re.compile(r"\b(?:[lt]gam" r"ma|gam" r"ma_[pq]\w*)\b|boost::math::\w+|math/special_functions/\w+")
COMMENT_OR_STRING = re.compile(r'//[^\n]*|/\*.*?\*/|R"\(.*?\)"|"(?:\\.|[^"\\\n])*"', re.S)


def strip_comments_and_strings(text):
    return COMMENT_OR_STRING.sub(lambda m: "\n" * m[0].count("\n"), text)


def files(root):
    for name in TOP_FILES:
        if (root / name).is_file():
            yield root / name
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.is_file() and path.suffix in TEXT and "__pycache__" not in path.parts:
                yield path


def file_violations(path, name):
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:  # a binary file without a suffix
        return
    lines = text.splitlines()
    if path.suffix in CODE and len(lines) > MAX_LINES:
        yield f"{name}: {len(lines)} lines; split it, no file is longer than {MAX_LINES}"
    for number, line in enumerate(lines, 1):
        if UNFINISHED.search(line):
            yield f"{name}:{number}: unfinished mark: {line.strip()}"
        if MACHINE_PATH.search(line):
            yield f"{name}:{number}: path of one machine: {line.strip()}"
    if path.suffix in (".h", ".cc", ".inc"):
        for number, line in enumerate(strip_comments_and_strings(text).splitlines(), 1):
            if GREEK.search(GAMMA_FUNCTION.sub("", line)):
                yield f"{name}:{number}: a width is called bandwidth, a step step_size: {line.strip()}"


def violations(root):
    return [v for path in files(root) for v in file_violations(path, path.relative_to(root).as_posix())]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2])
    found = violations(parser.parse_args().root)
    for violation in found:
        print(violation, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
