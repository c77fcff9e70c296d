"""`fairlead conformance`: replay recorded decisions of the real binaries."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

Recorded = Literal["scheduling", "timelines", "volumes", "nodelifecycle", "kubebatch"]


def conformance(kind: Recorded, /, *files: Path) -> int:
    """Replay golden case files and compare every decision with the recorded one.

    Prints per file how many cases agree and differ, and the first differing path with both
    values. Exit code 1 on any difference, 2 for a file that is not there or of another kind.

    Try:

        fairlead conformance scheduling tests/golden/data/scheduling/*.jsonl.gz

    Parameters
    ----------
    kind
        What the files record.
    files
        Golden case files, plain or gzipped JSON lines.
    """
    from fairlead.conformance.cli import run

    return run(kind, files)
