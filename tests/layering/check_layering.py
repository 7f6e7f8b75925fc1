#!/usr/bin/env python3
"""Checks every #include, proto import and CMake dependency against layers.txt.

  check_layering.py --root DIR                       the whole tree
  check_layering.py --root DIR --readme README.md    and that the README shows the diagram of the list
  check_layering.py --diagram                        prints that diagram

Prints one line per violation and exits with 1 if there is any. tests/ may include anything and is not scanned.
"""
import argparse
import collections
import pathlib
import re
import sys

AREAS = ("proto", "core", "server", "client")
SOURCES = (".h", ".cc", ".inc", ".proto")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
IMPORT = re.compile(r'^\s*import\s+(?:public\s+|weak\s+)?(")([^"]+)"')
FOLDER_LINE = re.compile(r"^([\w./-]+):([^|]*)(?:\|(.*))?$")
BEGIN, END = "<!-- layering:begin -->", "<!-- layering:end -->"
# Ours, with nothing to check: compile options only.
NEUTRAL_TARGETS = {"kernelstream_options"}
CMAKE_KEYWORDS = {"PUBLIC", "PRIVATE", "INTERFACE", "SOURCES", "DEPS", "FILES", "GRPC", "STATIC", "OBJECT"}


class Layers:
    """The parsed list. Raises ValueError naming the line if the list itself is wrong."""

    def __init__(self, text):
        self.edges = {}  # folder -> folders it may include directly
        self.own = {}  # folder -> the subset of those edges which is not passed on
        self.headers = {}  # folder -> prefixes of outside headers
        self.never = []  # (area, header or prefix)
        self.libraries = {}  # CMake target prefix -> header
        for number, raw in enumerate(text.splitlines(), 1):
            line = raw.split("#", 1)[0].strip()
            if line:
                self._parse(line, number)
        for folder, targets in self.edges.items():
            for target in targets:
                if target not in self.edges:
                    raise ValueError(f"layers.txt: {folder} names {target}, which has no line of its own")
        for folder in self.edges:
            if folder in self.reachable(folder):
                raise ValueError(f"layers.txt: {folder} reaches itself; the list must have no cycle")

    def _parse(self, line, number):
        words = line.split()
        if words[0] == "never":
            self.never += [(words[1].rstrip(":"), header) for header in words[2:]]
        elif words[0] == "library" and len(words) == 3:
            self.libraries[words[1]] = words[2]
        else:
            match = FOLDER_LINE.match(line)
            if not match or match[1] in self.edges:
                raise ValueError(f"layers.txt:{number}: not understood, or a folder listed twice: {line}")
            targets = match[2].split()
            self.edges[match[1]] = [t.lstrip("~") for t in targets]
            self.own[match[1]] = {t[1:] for t in targets if t.startswith("~")}
            self.headers[match[1]] = (match[3] or "").split()

    def reachable(self, folder):
        """Folders that `folder` may include: its edges, and what is passed on through them."""
        seen = set()
        todo = list(self.edges[folder])
        while todo:
            target = todo.pop()
            if target not in seen:
                seen.add(target)
                if target not in self.own[folder]:
                    todo += [t for t in self.edges[target] if t not in self.own[target]]
        return seen

    def forbidden(self, folder, header):
        return any(in_area(folder, area) and covers(rule, header) for area, rule in self.never)

    def outside_allowed(self, folder, header):
        if self.forbidden(folder, header):
            return False
        standard = "/" not in header and "." not in header
        return standard or any(covers(prefix, header) for prefix in self.headers[folder])

    def allowed_text(self, folder):
        folders = ", ".join(sorted(self.reachable(folder))) or "no other folder"
        headers = ", ".join(self.headers[folder]) or "standard headers only"
        return f"{folder} may include: {folders}; from outside: {headers}"

    def diagram(self):
        lines = ["```mermaid", "flowchart BT"]
        for area in AREAS:
            folders = [f for f in self.edges if in_area(f, area)]
            if folders:
                lines.append(f"  subgraph {area}_area [{area}]")
                lines += [f"    {node(f)}[{f}]" for f in folders]
                lines.append("  end")
        for folder, targets in self.edges.items():
            for target in targets:
                arrow = "-.->" if target in self.own[folder] else "-->"
                lines.append(f"  {node(folder)} {arrow} {node(target)}")
        return "\n".join(lines + ["```"])


def node(folder):
    return re.sub(r"\W", "_", folder) + "_"


def in_area(folder, area):
    return folder == area or folder.startswith(area + "/")


def covers(rule, header):
    return header.startswith(rule) if rule.endswith("/") else header == rule


class Checker:
    def __init__(self, root, layers):
        self.root = root
        self.layers = layers
        self.violations = []
        self.included = collections.defaultdict(dict)  # folder -> {folder it includes: first place}
        self.target_folder = {}
        self.linked = collections.defaultdict(set)  # folder -> folders its targets link

    def fail(self, place, message):
        self.violations.append(f"{place}: {message}")

    def run(self):
        found = set()
        for area in AREAS:
            for path in sorted((self.root / area).rglob("*")):
                if path.suffix in SOURCES and path.is_file():
                    folder = path.parent.relative_to(self.root).as_posix()
                    found.add(folder)
                    if folder in self.layers.edges:
                        self.check_file(path, folder)
        for folder in sorted(found - set(self.layers.edges)):
            self.fail(folder, "this folder is not in layers.txt; give it a line")
        for folder in sorted(set(self.layers.edges) - found):
            self.fail("layers.txt", f"{folder} has no sources; remove its line")
        self.check_cmake()
        return self.violations

    def folder_of(self, header):
        """The project folder a header comes from, or None if it is from outside."""
        source = re.sub(r"(\.grpc)?\.pb\.h$", ".proto", header)
        for base in ("", "client/include/", "proto/"):
            path = self.root / base / source
            if path.is_file():
                return path.parent.relative_to(self.root).as_posix()
        return None

    def check_file(self, path, folder):
        pattern = IMPORT if path.suffix == ".proto" else INCLUDE
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            match = pattern.match(line)
            if match:
                self.check_include(f"{path.relative_to(self.root)}:{number}", folder, match[1], match[2])

    def check_include(self, place, folder, quote, header):
        source = self.folder_of(header)
        area_of_header = header.split("/")[0]
        if source is None and quote == '"' and (self.root / folder / header).is_file():
            self.fail(place, f'"{header}": write the path from the top of the repository: "{folder}/{header}"')
        elif source is None and area_of_header in AREAS:
            self.fail(place, f'"{header}": there is no such file')
        elif source is None:
            if not self.layers.outside_allowed(folder, header):
                self.fail(place, f"<{header}> is not allowed here. {self.layers.allowed_text(folder)}")
        elif source != folder:
            self.included[folder].setdefault(source, place)
            if source not in self.layers.reachable(folder) or self.layers.forbidden(folder, header):
                self.fail(place, f'"{header}" is not allowed here. {self.layers.allowed_text(folder)}')

    # CMake: the targets of a folder link what the folder may include, and what it does include.
    def check_cmake(self):
        commands = []
        for area in AREAS:
            for path in sorted((self.root / area).rglob("CMakeLists.txt")):
                commands += self.read_cmake(path)
        for folder, name, words, place in commands:
            if name in ("kernelstream_library", "add_library", "add_executable"):
                self.target_folder[words[0]] = folder
            elif name == "kernelstream_proto_library":
                files = words[words.index("FILES") + 1:] if "FILES" in words else []
                folders = {"proto/" + str(pathlib.PurePosixPath(f).parent) for f in files}
                if len(folders) == 1:
                    self.target_folder[words[0]] = folders.pop()
                else:
                    self.fail(place, f"{words[0]}: one proto folder per target, found {sorted(folders)}")
        for folder, name, words, place in commands:
            if name in ("kernelstream_library", "target_link_libraries", "kernelstream_proto_library"):
                self.check_dependencies(place, words)
        self.check_links()

    def read_cmake(self, path):
        text = re.sub(r"#.*", "", path.read_text(encoding="utf-8"))
        text = re.sub(r"function\s*\(.*?endfunction\s*\(\s*\)", lambda m: "\n" * m[0].count("\n"), text,
                      flags=re.S | re.I)
        folder = path.parent.relative_to(self.root).as_posix()
        for match in re.finditer(r"(\w+)\s*\(([^()]*)\)", text):
            words = match[2].replace('"', " ").split()
            if words:
                line = text.count("\n", 0, match.start()) + 1
                yield folder, match[1].lower(), words, f"{path.relative_to(self.root)}:{line}"

    def check_dependencies(self, place, words):
        folder = self.target_folder.get(words[0])
        if folder not in self.layers.edges:
            if folder is not None:
                self.fail(place, f"target {words[0]} is in {folder}, which is not in layers.txt")
            return
        for word in words[1:]:
            if word in CMAKE_KEYWORDS or word in NEUTRAL_TARGETS or word.endswith(SOURCES) or word == words[0]:
                continue
            if word in self.target_folder:
                target = self.target_folder[word]
                self.linked[folder].add(target)
                if target != folder and not self.may_link(folder, target):
                    self.fail(place, f"{words[0]} links {word}. {self.layers.allowed_text(folder)}")
                continue
            header = next((h for p, h in self.layers.libraries.items() if word.startswith(p)), None)
            if header is None:
                self.fail(place, f"{words[0]} links {word}, which no library line of layers.txt names")
            elif not self.layers.outside_allowed(folder, header):
                self.fail(place, f"{words[0]} links {word}. {self.layers.allowed_text(folder)}")

    def may_link(self, folder, target):
        """A folder of headers only comes with the target of a folder that implements it, that is, includes it."""
        reachable = self.layers.reachable(folder)
        with_target = set(self.target_folder.values())
        return target in reachable or any(f in reachable and f not in with_target for f in self.layers.edges[target])

    def check_links(self):
        with_target = set(self.target_folder.values())
        for folder, sources in self.included.items():
            if folder not in with_target:
                continue
            reached, todo = set(), [folder]
            while todo:
                current = todo.pop()
                if current not in reached:
                    reached.add(current)
                    todo += self.linked[current]
            for source, place in sources.items():
                if source not in reached and source in with_target:
                    self.fail(place, f"{folder} includes {source}, and its CMake target does not link it")


def check_readme(readme, layers):
    text = readme.read_text(encoding="utf-8")
    if BEGIN not in text or END not in text:
        return [f"{readme.name}: no {BEGIN} ... {END}"]
    shown = text.split(BEGIN, 1)[1].split(END, 1)[0].strip()
    if shown != layers.diagram():
        return [f"{readme.name}: the layering diagram differs from layers.txt; "
                "put the output of check_layering.py --diagram between the markers"]
    return []


def main(arguments):
    here = pathlib.Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, default=here.parent.parent)
    parser.add_argument("--layers", type=pathlib.Path, default=here / "layers.txt")
    parser.add_argument("--readme", type=pathlib.Path)
    parser.add_argument("--diagram", action="store_true")
    options = parser.parse_args(arguments)
    try:
        layers = Layers(options.layers.read_text(encoding="utf-8"))
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    if options.diagram:
        print(layers.diagram())
        return 0
    violations = Checker(options.root.resolve(), layers).run()
    if options.readme:
        violations += check_readme(options.readme, layers)
    for violation in violations:
        print(violation, file=sys.stderr)
    if not violations:
        print(f"{len(layers.edges)} folders keep to layers.txt")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
