"""kubectl against our own server: its output is compared with its output against upstream.

The commands were recorded against kube-apiserver 1.36 with its controllers. Each command uses the
objects of earlier commands, so they run in order, on one cluster for each part of the session.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from fairlead.conformance.api.replay.kubectl_session import KubectlSession

GOLDEN: Final = Path(__file__).parents[1] / "golden"
RECORDED: Final = GOLDEN / "data" / "api" / "06-kubectl.jsonl.gz"
KNOWN: Final = frozenset((GOLDEN / "api_differences.txt").read_text().split())
OLDER: Final = frozenset((Path(__file__).parent / "older_kubectl.txt").read_text().splitlines())
NEWER: Final = frozenset((Path(__file__).parent / "newer_kubectl.txt").read_text().splitlines())
RECORDED_MINOR: Final = 32

# Commands that wait by kubectl's own clock, and change nothing.
SLOW: Final = frozenset((75,))
FIRST: Final = range(1, 130)
LAST: Final = range(601, 632)

Line = dict[str, Any]


def number_of(line: Line) -> int:
    return int(line["id"].split(".")[1])


def recorded_lines() -> list[Line]:
    with gzip.open(RECORDED, "rt") as lines:
        return [json.loads(line) for line in lines]


def unexpected(lines: Sequence[Line]) -> Iterator[tuple[str, str]]:
    """Yield the differences that are not known."""
    session = KubectlSession()
    known = known_to(session.minor)
    try:
        for line in lines:
            differences = session.judge(line)
            if differences and line["id"] not in known:
                yield line["id"], str(differences[0])
    finally:
        session.close()


def known_to(minor: int) -> frozenset[str]:
    """Return the commands that are known to differ with kubectl 1.`minor`."""
    if minor == RECORDED_MINOR:
        return KNOWN
    return KNOWN | (OLDER if minor < RECORDED_MINOR else NEWER)


def is_compared(line: Line) -> bool:
    return "exit" in line and "version" not in line["argv"]


@pytest.mark.needs("kubectl")
@pytest.mark.parametrize("numbers", [FIRST, LAST], ids=["first", "last"])
def test_kubectl_prints_the_recorded_output(numbers):
    """Commands that create, change, print and wait for objects of every kind."""
    lines = [line for line in recorded_lines() if number_of(line) in numbers]
    quick = [line for line in lines if number_of(line) not in SLOW]
    assert dict(unexpected(quick)) == {}


def test_enough_commands_are_compared():
    """Every run compares the outputs of at least 120 commands, and 90 of an old kubectl."""
    numbers = {*FIRST, *LAST} - SLOW
    lines = [line for line in recorded_lines() if number_of(line) in numbers]
    compared = {line["id"] for line in lines if is_compared(line)} - KNOWN
    assert len(compared) >= 120
    assert len(compared - OLDER) >= 90


@pytest.mark.long
@pytest.mark.needs("kubectl")
def test_kubectl_prints_the_recorded_output_of_the_whole_session():
    """This includes drains, deletions, custom resources and old clients."""
    lines = recorded_lines()
    assert sum(not line.get("setup") for line in lines) == 365
    assert dict(unexpected(lines)) == {}
