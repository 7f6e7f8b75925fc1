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


def python_tour(root, directory, address):
    probe = "import grpc, grpc_tools.protoc, google.rpc.status_pb2"
    if subprocess.run([sys.executable, "-c", probe], capture_output=True, check=False).returncode != 0:
        raise Missing(f"{sys.executable} lacks grpcio, grpcio-tools or googleapis-common-protos")
    run([sys.executable, "-m", "grpc_tools.protoc", "-I", "proto", f"--python_out={directory}",
         f"--grpc_python_out={directory}", *protos(root)], cwd=root)
    return run([sys.executable, "-B", "client/examples/python/quickstart.py", address], cwd=root,
               environment=dict(os.environ, PYTHONPATH=str(directory)))


def go_tour(root, directory, address):
    lacking = [name for name in ("go", "protoc", "protoc-gen-go", "protoc-gen-go-grpc") if shutil.which(name) is None]
    if lacking:
        raise Missing(f"PATH lacks {', '.join(lacking)}")
    run(["protoc", "-I", "proto", f"--go_out={directory}", f"--go-grpc_out={directory}", *protos(root)], cwd=root)
    shutil.copy(root / "client/examples/go/main.go", directory)
    offline = dict(os.environ, GOPROXY="off", GOFLAGS="-mod=mod", GONOSUMDB="*", GONOSUMCHECK="1")
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
