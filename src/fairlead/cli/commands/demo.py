"""`fairlead demo`: prints three commands about a small example cluster, and runs them."""

from __future__ import annotations

import shlex
import sys
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Final

from fairlead.cli import exit_code
from fairlead.cli.options.parameter import named

_FOLDER: Final = Path("fairlead-demo")
_DUMP: Final = "store.yaml"
_SALE: Final = "flash-sale.yaml"
_REPORT: Final = "flash-sale.html"


def demo(
    *,
    output: Annotated[
        Path,
        named(
            "DIR",
            "Directory for the files of the demo (default: fairlead-demo). The files are the dump "
            "of the example cluster, and the manifest and the HTML report of the third question.",
        ),
    ] = _FOLDER,
) -> int:
    """Answer three what-if questions about a small example cluster.

    The example cluster is a dump of a Kubernetes 1.36 control plane. It has 12 nodes in two zones,
    51 pods, PriorityClasses and a disruption budget. The demo takes a few seconds, and needs
    neither a running cluster nor a network. At the end, it prints two commands for your own
    cluster: one dumps the cluster, and the other simulates the drain of a node.
    """
    from fairlead.whatif.snapshot.dump_command import dump_command

    _write_files(output)
    dump, sale, report = (str(output / name) for name in (_DUMP, _SALE, _REPORT))
    codes = (
        _ask("What happens if a node is drained?", "whatif", dump, "--drain", "worker-03"),
        _ask("And if half of the cluster is gone for twenty minutes?", "whatif", dump,
             "--fail-zone", "west-1b", "--for", "20m"),
        _ask("And if ten pods of high priority arrive?", "whatif", dump, "--apply", sale,
             "--scale", "deploy/flash-sale=10", "--report", report),
    )  # fmt: skip
    if any(code != exit_code.DIFFERENCE for code in codes):
        return max(codes)
    print(f"\nOpen {report} in a browser to see the last answer node by node.\n")
    print("Ask about your own cluster:\n")
    print(f"  {dump_command('cluster.json')}")
    print("  fairlead whatif cluster.json --drain NODE")
    return exit_code.SUCCESS


def _write_files(folder: Path) -> None:
    """Copy the files of the example into `folder`.

    Raises InputError if `folder` contains a different file of the same name.
    """
    from fairlead.whatif.input.error import InputError

    contents = {name: _example(name) for name in (_DUMP, _SALE)}
    for name, content in contents.items():
        file = folder / name
        if file.exists() and (not file.is_file() or file.read_bytes() != content):
            raise InputError(
                "--output", f"{file} exists and is not the example; name another folder"
            )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise InputError("--output", f"{folder} is not a directory") from None
    for name, content in contents.items():
        (folder / name).write_bytes(content)


def _example(name: str) -> bytes:
    """Return the content of the file `name` in examples/store."""
    package = Path(str(files("fairlead")))
    folders = (package / "examples", package.parents[1] / "examples")
    return (
        next(folder for folder in folders if folder.is_dir()).joinpath("store", name).read_bytes()
    )


def _ask(question: str, *arguments: str) -> int:
    """Print `question` and the command `fairlead ARGUMENTS`; run it and return its exit code."""
    from fairlead.cli.main import run

    quiet = () if "--report" in arguments else ("--no-report",)
    print(f"\n# {question}\n$ fairlead {shlex.join(arguments)}\n")
    sys.stdout.flush()
    return run([*arguments, *quiet])
