"""What the API server costs: reads, durable writes, watches, many pods, and its start.

    python benchmarks/api_server.py [--pods 150000]

Prints one table, with the target beside each figure that has one; it takes two minutes on two
cores that have nothing else to do. CPU times are the server's alone, of all its threads. Over
HTTPS the server is a process of its own, and all clients together are another, with 64 connections
that stay open. Durable writes are answered when they are on the disk, so how many there are in a
second depends on the disk as well.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from rich.console import Console

from api_cost import blocking, holding, reading, starting, unread, watching, writing
from api_cost.figure import Figure, table
from api_cost.process import ALONE, PLAIN, UP, serving

NODES: Final = 100  # with room for all pods that are posted
WIDTH: Final = 150


def measured(directory: Path, pods: int) -> Iterator[Figure]:
    """Measure all figures."""
    places = {
        name: directory / name
        for name in ("plain", "alone", "watched", "unread", "large", "up", "busy")
    }
    for place in places.values():
        place.mkdir()
    yield from holding.many(directory, pods)  # first, while this process has no memory to reuse
    yield from reading.in_process()
    yield from writing.into_store(directory)
    with serving(PLAIN, places["plain"]) as server:
        yield from reading.over_http(server)
    with serving(ALONE, places["alone"]) as server:
        yield from writing.over_https(server)
        yield from reading.over_https(server)
    with serving((*UP, "--nodes", str(NODES)), places["busy"]) as server:
        yield from writing.with_controllers(server)
    with serving(ALONE, places["watched"]) as server:
        yield from watching.over_https(server)
    with serving((*UP, "--nodes", "1", "--paused"), places["unread"]) as server:
        yield from unread.over_https(server)
    with serving(ALONE, places["large"]) as server:
        yield from blocking.over_https(server)
    yield from starting.up(places["up"])


def main() -> int:
    """Measure everything; return 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=150_000)
    wanted = parser.parse_args()
    figures = []
    with tempfile.TemporaryDirectory() as name:
        for figure in measured(Path(name), wanted.pods):
            print(figure.what, file=sys.stderr)
            figures.append(figure)
    Console(width=WIDTH).print(table(figures))
    return 0 if all(figure.holds for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
