"""Thresholds of Python's garbage collection."""

import gc
from collections.abc import Iterator

import pytest

from fairlead.worlds.gc_thresholds import collect_briefly, collect_rarely


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    thresholds = gc.get_threshold()
    yield
    gc.set_threshold(*thresholds)


def young_collections() -> list[int]:
    """Return the numbers of objects that young collections examine while 60,000 are created."""
    sizes = []

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "start" and info["generation"] == 0:
            sizes.append(len(gc.get_objects(generation=0)))

    gc.freeze()  # sets the count of new objects to 0, as a collection does
    gc.callbacks.append(note)
    try:
        made: list[list[int]] = [[] for _ in range(60_000)]
        del made
    finally:
        gc.callbacks.remove(note)
    return sizes


def test_a_young_collection_of_a_server_examines_few_objects() -> None:
    collect_briefly()
    sizes = young_collections()
    assert sizes
    assert max(sizes) < 20_000


def test_other_processes_do_not_collect_60_000_objects() -> None:
    collect_rarely()
    assert not young_collections()


def test_a_server_collects_older_objects_as_rarely_as_other_processes() -> None:
    collect_rarely()
    young, middle, full = gc.get_threshold()
    collect_briefly()
    assert gc.get_threshold()[2] == full
    assert gc.get_threshold()[0] * gc.get_threshold()[1] == young * middle
