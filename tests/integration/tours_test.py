#!/usr/bin/env python3
"""Runs client/examples in languages whose stubs are generated, as client/examples/README.md says, against a server.

  tours_test.py python|go --root DIR --server PATH

Nothing is fetched: where a generator or a library is missing, one sentence says so and the exit status is 77.
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import readme_test

SKIPPED = 77


class Missing(Exception):
    """What the machine lacks."""


def run(command, **options):
    return readme_test.run([str(word) for word in command], options.pop("environment", dict(os.environ)),
                           options.pop("cwd"))


def protos(root):
    return sorted(p.relative_to(root) for p in (root / "proto/kernelstream/v1").glob("*.proto"))


def imports(interpreter, modules):
    return subprocess.run([interpreter, "-c", f"import {modules}"], capture_output=True, check=False).returncode == 0


def python_tour(root, directory, address):
    # The interpreter that runs the tests may be another than Debian's, which has Debian's packages.
    interpreters = [name for name in (sys.executable, "/usr/bin/python3") if shutil.which(name) is not None]
    interpreter = next((name for name in interpreters if imports(name, "grpc, google.protobuf")), None)
    if interpreter is None:
        raise Missing(f"neither of {', '.join(interpreters)} has grpcio and protobuf (Debian: python3-grpcio)")
    plugin = shutil.which("grpc_python_plugin")
    if plugin is None or shutil.which("protoc") is None:
        raise Missing("PATH lacks protoc or grpc_python_plugin (Debian: protobuf-compiler-grpc)")
    run(["protoc", "-I", "proto", f"--plugin=protoc-gen-grpc_python={plugin}", f"--python_out={directory}",
         f"--grpc_python_out={directory}", *protos(root), "proto/google/rpc/status.proto"], cwd=root)
    return run([interpreter, "-B", "client/examples/python/quickstart.py", address], cwd=root,
               environment=dict(os.environ, PYTHONPATH=str(directory)))


def go_tour(root, directory, address):
    lacking = [name for name in ("go", "protoc", "protoc-gen-go", "protoc-gen-go-grpc") if shutil.which(name) is None]
    if lacking:
        raise Missing(f"PATH lacks {', '.join(lacking)}")
    run(["protoc", "-I", "proto", f"--go_out={directory}", f"--go-grpc_out={directory}", *protos(root)], cwd=root)
    shutil.copy(root / "client/examples/go/main.go", directory)
    cache = subprocess.run(["go", "env", "GOMODCACHE"], capture_output=True, check=True, text=True).stdout.strip()
    offline = dict(os.environ, GOPROXY=f"file://{cache}/cache/download", GOSUMDB="off", GOFLAGS="-mod=mod")
    run(["go", "mod", "init", "quickstart"], cwd=directory, environment=offline)
    try:
        run(["go", "mod", "tidy"], cwd=directory, environment=offline)
    except readme_test.ReadmeError as error:
        raise Missing(f"Go's cache lacks the modules of the tour:\n{error}") from error
    return run(["go", "run", ".", address], cwd=directory, environment=offline)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("language", choices=["python", "go"])
    parser.add_argument("--root", type=pathlib.Path, required=True)
    parser.add_argument("--server", required=True)
    options = parser.parse_args()
    tour = {"python": python_tour, "go": go_tour}[options.language]
    directory = pathlib.Path(tempfile.mkdtemp(prefix="tours_test."))
    server = None
    try:
        (directory / "stubs").mkdir()
        server = readme_test.Server(options.server, directory)
        print(tour(options.root.resolve(), directory / "stubs", server.address))
        server.stop()
        return 0
    except Missing as error:
        print(f"skipped: {error}")
        return SKIPPED
    except readme_test.ReadmeError as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        if server is not None:
            server.kill()
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
