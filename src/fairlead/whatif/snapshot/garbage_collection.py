"""Keeps Python's garbage collector from traversing the objects of a snapshot, or all objects."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event
from typing import Final

from msgspec import Struct

_FROZEN_AT_START_MAX: Final = 1_000
_GROWTH_MAX: Final = 1.5
_frozen_until_exit: Final = Event()  # set once per process at most


class _MemoryUse(Struct):
    """The number of memory blocks of Python's objects after the last collection.

    The number is 0 before the first call of `collect_if_grown`.
    """

    blocks: int = 0


_use_after_collection: Final = _MemoryUse()


def freeze_until_exit() -> None:
    """Exempt all existing objects from garbage collection until this process ends."""
    gc.freeze()
    _frozen_until_exit.set()


def has_frozen_objects() -> bool:
    """Return whether this program has exempted its objects from garbage collection.

    Up to _FROZEN_AT_START_MAX objects do not count, because Python 3.12 itself exempts several
    hundred objects when it starts.
    """
    # Python counts frozen objects one by one, which takes long for the objects of a large cluster.
    return _frozen_until_exit.is_set() or gc.get_freeze_count() > _FROZEN_AT_START_MAX


def collect_if_grown() -> None:
    """Free unreachable objects if memory has grown by half since the last call that freed objects.

    Call this function before a run that freezes all objects. Without these calls, a process with
    many runs would keep the reference cycles of all runs, because `gc.freeze` resets the counts
    that start Python's own full collections. The first call frees nothing, so that a process with
    one run does not wait for a collection. No call frees anything while objects are frozen or the
    collector is disabled.
    """
    if not gc.isenabled() or has_frozen_objects():
        return
    blocks = sys.getallocatedblocks()
    if not _use_after_collection.blocks:
        _use_after_collection.blocks = blocks
    elif blocks > _GROWTH_MAX * _use_after_collection.blocks:
        gc.collect()
        _use_after_collection.blocks = sys.getallocatedblocks()


@contextmanager
def without_collection() -> Iterator[None]:
    """Disable Python's garbage collector within the `with` block, which reads a snapshot.

    Collections would find little to free, because the objects of the snapshot are kept.

    At the end of the block, all objects are moved to the collector's oldest generation. So
    collections of young objects do not traverse the snapshot.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            if not has_frozen_objects():  # otherwise frozen objects would become collectable
                gc.freeze()
                gc.unfreeze()
            gc.enable()
