"""Measures the cost of the API server: reads, durable writes, watches, many pods, and its start.

    python benchmarks/api_server.py [--pods 150000] [--only rollout idle]

Prints a table of the figures and their targets. All parts together take three minutes on two idle
cores. `--only` measures only the named parts: reads, writes, watches, pods, rollout, idle or start.
CPU times include all threads of the server, but not the clients. In measurements over HTTP and
HTTPS, the server has its own process, and all clients share another process, in most cases with 64
connections. CPU times per request include the opening of these connections. A durable write is
answered when it is on the disk, so the number of durable writes per second depends on the disk,
too.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from rich.console import Console

from api_cost import blocking, holding, reading, rollout, starting, unread, watching, writing
from api_cost.figure import Figure, table
from api_cost.process import ALONE, PLAIN, UP, serving

NODES: Final = 100  # with room for all pods that are posted
WIDTH: Final = 150


# A function that measures one part. It writes its files to the directory; the number is --pods.
Part = Callable[[Path, int], Iterator[Figure]]


def _reads(directory: Path, _: int) -> Iterator[Figure]:
    yield from reading.in_process()
    with serving(PLAIN, directory) as server:
        yield from reading.over_http(server)


def _writes(directory: Path, _: int) -> Iterator[Figure]:
    alone, busy = (_new(directory, name) for name in ("alone", "busy"))
    yield from writing.into_store(directory)
    with serving(ALONE, alone) as server:
        yield from writing.over_https(server)
        yield from writing.by_few_clients(server)
        yield from reading.over_https(server)
    with serving((*UP, "--nodes", str(NODES)), busy) as server:
        yield from writing.with_controllers(server)


def _watches(directory: Path, _: int) -> Iterator[Figure]:
    watched, unreading, large = (_new(directory, name) for name in ("watched", "unread", "large"))
    with serving(ALONE, watched) as server:
        yield from watching.over_https(server)
    with serving((*UP, "--nodes", "1", "--paused"), unreading) as server:
        yield from unread.over_https(server)
    with serving(ALONE, large) as server:
        yield from blocking.over_https(server)


def _rollout(directory: Path, _: int) -> Iterator[Figure]:
    command = (*UP, "--nodes", str(rollout.NODES))
    with serving(command, _new(directory, "memory"), is_durable=False) as server:
        yield from rollout.of_deployment(server, "in memory")
    with serving(command, _new(directory, "disk")) as server:
        yield from rollout.of_deployment(server, "--data-dir")


PARTS: Final[dict[str, Part]] = {
    # This part is first, because later this process could use freed memory for the pods.
    "pods": holding.many,
    "reads": _reads,
    "writes": _writes,
    "watches": _watches,
    "rollout": _rollout,
    "idle": lambda directory, _: starting.idle(directory),
    "start": lambda directory, _: starting.up(directory),
}


def _new(directory: Path, name: str) -> Path:
    made = directory / name
    made.mkdir()
    return made


def main() -> int:
    """Measure everything; return 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=150_000)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    wanted = parser.parse_args()
    figures = []
    with tempfile.TemporaryDirectory() as name:
        for part in wanted.only:
            for figure in PARTS[part](_new(Path(name), part), wanted.pods):
                print(figure.what, file=sys.stderr)
                figures.append(figure)
    Console(width=WIDTH).print(table(figures))
    return 0 if all(figure.holds for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
