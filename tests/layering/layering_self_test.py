#!/usr/bin/env python3
"""Shows on small made-up trees that check_layering.py and names_test.py can fail, and when they must not."""
import pathlib
import tempfile
import unittest

import check_layering
import names_test

LIST = """
proto/wire:                    | google/protobuf/
core/low:                      | absl/
core/mid: core/low             | absl/ hwy/
core/top: core/mid             | absl/
server/rpc: core/top ~proto/wire | grpcpp/
server/app: server/rpc         | absl/
never core: thread absl/time/
library absl::  absl/
library gRPC::  grpcpp/
"""
TREE = {
    "proto/wire/a.proto": 'import "google/protobuf/duration.proto";\n',
    "proto/CMakeLists.txt": "kernelstream_proto_library(wire_proto GRPC FILES wire/a.proto)\n",
    "core/low/low.h": "#include <vector>\n",
    "core/low/CMakeLists.txt": "kernelstream_library(low SOURCES low.cc PUBLIC absl::strings)\n",
    "core/mid/mid.h": '#include "core/low/low.h"\n#include <hwy/highway.h>\n',
    "core/mid/CMakeLists.txt": "kernelstream_library(mid SOURCES mid.cc PUBLIC low)\n",
    "core/top/top.h": '#include "core/mid/mid.h"\n#include "absl/status/status.h"\n',
    "core/top/CMakeLists.txt": "kernelstream_library(top SOURCES top.cc PUBLIC mid)\n",
    "server/rpc/rpc.h": '#include "core/top/top.h"\n#include "wire/a.pb.h"\n#include <grpcpp/grpcpp.h>\n',
    "server/rpc/CMakeLists.txt": "kernelstream_library(rpc SOURCES r.cc PUBLIC top PRIVATE wire_proto gRPC::grpc++)\n",
    "server/app/app.h": '#include "server/rpc/rpc.h"\n',
    "server/app/CMakeLists.txt": "kernelstream_library(app SOURCES app.cc PUBLIC rpc)\n",
}


class MadeUpTree(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.root = pathlib.Path(self.temporary.name)
        self.write(TREE)

    def write(self, files):
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")

    def violations(self, files=None, layers=LIST):
        self.write(files or {})
        return check_layering.Checker(self.root, check_layering.Layers(layers)).run()

    def assert_one(self, violations, *parts):
        self.assertEqual(len(violations), 1, violations)
        for part in parts:
            self.assertIn(part, violations[0])


class LayeringSelfTest(MadeUpTree):
    def test_a_tree_that_keeps_to_the_list_passes(self):
        self.assertEqual(self.violations(), [])

    def test_transitive_include_passes(self):
        self.assertEqual(self.violations({"core/top/top.h": '#include "core/low/low.h"\n'}), [])

    def test_upward_include_fails_with_place_and_what_is_allowed(self):
        found = self.violations({"core/low/low.h": '\n#include "core/top/top.h"\n'})
        self.assertIn('core/low/low.h:2: "core/top/top.h" is not allowed here. core/low may include: '
                      "no other folder; from outside: absl/", found)

    def test_edge_with_tilde_is_not_passed_on(self):
        found = self.violations({"server/app/app.h": '#include "server/rpc/rpc.h"\n#include "wire/a.pb.h"\n'})
        self.assert_one(found, "server/app/app.h:2", "wire/a.pb.h")

    def test_library_of_another_folder_fails(self):
        self.assert_one(self.violations({"core/top/x.cc": "#include <hwy/highway.h>\n"}), "core/top/x.cc:1", "hwy/")

    def test_unlisted_library_and_system_header_fail(self):
        self.assert_one(self.violations({"core/low/x.cc": '#include "folly/dynamic.h"\n'}), "folly/dynamic.h")
        self.assert_one(self.violations({"core/low/x.cc": "#include <sys/socket.h>\n"}), "sys/socket.h")

    def test_never_beats_an_allowed_prefix_and_standard_headers(self):
        self.assert_one(self.violations({"core/low/x.cc": "#include <thread>\n"}), "<thread>")
        self.assert_one(self.violations({"core/low/x.cc": '#include "absl/time/clock.h"\n'}), "absl/time/clock.h")

    def test_indented_include_and_registry_lists_are_scanned(self):
        self.assert_one(self.violations({"core/low/list.inc": "  #  include <thread>\n"}), "core/low/list.inc:1")

    def test_include_relative_to_the_folder_fails(self):
        self.assert_one(self.violations({"core/low/x.cc": '#include "low.h"\n'}), '"core/low/low.h"')

    def test_missing_project_file_fails(self):
        self.assert_one(self.violations({"core/low/x.cc": '#include "core/low/gone.h"\n'}), "no such file")

    def test_forbidden_proto_import_fails(self):
        files = {"proto/store/b.proto": 'syntax = "proto3";\nimport "wire/a.proto";\n'}
        layers = LIST.replace("core/low: ", "proto/store: | google/protobuf/\ncore/low: ")
        self.assert_one(self.violations(files, layers), "proto/store/b.proto:2", "wire/a.proto")

    def test_unknown_and_vanished_folders_fail(self):
        self.assert_one(self.violations({"core/new/x.h": ""}), "core/new", "not in layers.txt")
        self.assertTrue(any("core/old has no sources" in v for v in self.violations(layers=LIST + "core/old: |\n")))

    def test_cmake_dependency_against_the_list_fails(self):
        files = {"core/low/CMakeLists.txt": "kernelstream_library(low SOURCES l.cc\n  PRIVATE top gRPC::grpc++)\n"}
        found = self.violations(files)
        self.assertEqual(len(found), 2, found)
        self.assertIn("core/low/CMakeLists.txt:1: low links top", found[0])
        self.assertIn("low links gRPC::grpc++", found[1])

    def test_headers_without_a_target_come_with_the_folder_that_implements_them(self):
        files = {"client/include/api.h": "", "client/src/a.cc": '#include "client/include/api.h"\n',
                 "client/src/CMakeLists.txt": "kernelstream_library(lib SOURCES a.cc)\n",
                 "client/demo/d.cc": '#include "client/include/api.h"\n',
                 "client/demo/CMakeLists.txt": "add_executable(d d.cc)\ntarget_link_libraries(d PRIVATE lib top)\n"}
        layers = LIST + "client/include: |\nclient/src: client/include |\nclient/demo: client/include |\n"
        self.assert_one(self.violations(files, layers), "client/demo/CMakeLists.txt:2: d links top")

    def test_cmake_library_nobody_listed_fails(self):
        files = {"core/low/CMakeLists.txt": "add_library(low low.cc)\ntarget_link_libraries(low PRIVATE curl)\n"}
        self.assert_one(self.violations(files), "low links curl")

    def test_include_without_a_cmake_dependency_fails(self):
        files = {"core/top/CMakeLists.txt": "kernelstream_library(top SOURCES top.cc PUBLIC absl::status)\n",
                 "server/rpc/CMakeLists.txt": "kernelstream_library(rpc SOURCES r.cc PUBLIC top mid wire_proto)\n"}
        self.assert_one(self.violations(files), "core/top/top.h:1", "does not link it")

    def test_list_with_a_cycle_a_repeat_or_an_unknown_folder_is_refused(self):
        for line in ("core/loop: core/loop |", "core/low: |", "core/x: core/y |", "core/x core/y"):
            with self.assertRaises(ValueError):
                check_layering.Layers(LIST + line + "\n")

    def test_readme_must_show_the_diagram_of_the_list(self):
        layers = check_layering.Layers(LIST)
        readme = self.root / "README.md"
        readme.write_text(f"# x\n{check_layering.BEGIN}\n{layers.diagram()}\n{check_layering.END}\n")
        self.assertEqual(check_layering.check_readme(readme, layers), [])
        changed = check_layering.Layers(LIST + "core/extra: core/low |\n")
        self.assert_one(check_layering.check_readme(readme, changed), "differs")
        readme.write_text("# x\n")
        self.assert_one(check_layering.check_readme(readme, layers), "no <!--")


class NamesSelfTest(MadeUpTree):
    def names(self, name, text):
        self.write({name: text})
        return names_test.violations(self.root)

    def test_clean_file_passes(self):
        text = '// The paper calls it sigma.\nfloat bandwidth = std::lgamma(2.0f);\nSay("sigma");\n'
        self.assertEqual(self.names("core/low/x.cc", text), [])

    def test_width_under_a_greek_name_fails(self):
        for word in ("gamma", "kernel_sigma", "tau_"):
            self.assert_one(self.names("core/low/x.cc", f"\nfloat {word} = 1;\n"), "core/low/x.cc:2", word)

    def test_unfinished_mark_fails(self):
        self.assert_one(self.names("server/rpc/x.cc", "// TO" + "DO later\n"), "server/rpc/x.cc:1")

    def test_path_of_one_machine_fails(self):
        self.assert_one(self.names("README.md", "see /ho" + "me/someone/data\n"), "README.md:1")

    def test_file_over_600_lines_fails(self):
        self.assert_one(self.names("client/src/x.cc", "int a;\n" * 601), "client/src/x.cc", "601 lines")


if __name__ == "__main__":
    unittest.main()
