"""Calls functions in forked processes, which share the memory of this process.

A forked process starts immediately with all loaded objects. The memory of an object is copied only
when one of the processes changes it.
"""

from __future__ import annotations

import gc
import os
import pickle
import threading
from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from io import BytesIO
from signal import SIGKILL
from typing import Any, Generic, TypeVar

Result = TypeVar("Result")


def can_fork() -> bool:
    """Return whether this process can be forked.

    A process with several threads is not forked, because locks held by other threads would never be
    released.
    """
    return hasattr(os, "fork") and threading.active_count() == 1


def in_child(produce: Callable[[], Result], shared: Sequence[object]) -> Result | None:
    """Return the result of `produce`, called in a forked process; None if that process fails.

    The result may refer to objects in `shared`. These objects are not sent: in the returned result,
    the references point to the objects of this process.
    """
    [result] = in_children([produce], shared)
    return result


def in_children(
    calls: Sequence[Callable[[], Result]], shared: Sequence[object]
) -> Generator[Result | None, None, None]:
    """Yield the results of `calls` in their order; each call is made in a forked process.

    As many processes run at the same time as this process may use cores. If the caller closes the
    iterator early, the running processes are killed. Results are as in `in_child`.
    """
    cores = len(os.sched_getaffinity(0))
    # Made before the fork: counting a reference to each object would copy all of their memory.
    index = {id(one): at for at, one in enumerate(shared)}
    waiting, running = deque(calls), deque[_ForkedCall[Result]]()
    try:
        while waiting or running:
            while waiting and len(running) < cores:
                running.append(_ForkedCall(waiting.popleft(), index))
            yield running[0].result(shared)
            running.popleft()
    finally:
        for one in running:
            one.kill()


class _ForkedCall(Generic[Result]):
    """A call of `produce` in a forked process; the caller must call `result` or `kill`."""

    def __init__(self, produce: Callable[[], Result], index: Mapping[int, int]) -> None:
        """Fork the process. `index` maps the `id()` of each shared object to its number."""
        self._reading, writing = os.pipe()
        self._child = os.fork()
        if self._child == 0:
            gc.freeze()  # a garbage collection would write to all memory pages and so copy them
            os.close(self._reading)
            _send(produce, index, writing)
        os.close(writing)
        self._is_over = False

    def result(self, shared: Sequence[object]) -> Result | None:
        """Wait for the process to end, and return the result; None if the process failed."""
        with os.fdopen(self._reading, "rb", closefd=False) as pipe:
            sent = pipe.read()
        if self._wait() != 0:
            return None
        result: Result = _Unpickler(sent, shared).load()
        return result

    def kill(self) -> None:
        """Kill the process; do nothing if it has ended."""
        if not self._is_over:
            os.kill(self._child, SIGKILL)
            self._wait()

    def _wait(self) -> int:
        os.close(self._reading)
        self._is_over = True
        return os.waitpid(self._child, 0)[1]


def _send(produce: Callable[[], object], index: Mapping[int, int], writing: int) -> None:
    """Write the result of `produce` to the pipe `writing`, and end the process.

    An object that both processes have is written as a number: `index` maps the `id()` of such an
    object to its number.
    """
    code = 1
    try:
        with os.fdopen(writing, "wb") as pipe:
            _Pickler(pipe, index).dump(produce())
        code = 0
    finally:
        os._exit(code)


class _Pickler(pickle.Pickler):
    """Pickles each shared object as a number: `index` maps the object's `id()` to its position."""

    def __init__(self, file: Any, index: Mapping[int, int]) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self._index = index

    def persistent_id(self, obj: object) -> int | None:
        return self._index.get(id(obj))


class _Unpickler(pickle.Unpickler):
    def __init__(self, sent: bytes, shared: Sequence[object]) -> None:
        super().__init__(BytesIO(sent))
        self._shared = shared

    def persistent_load(self, index: Any) -> object:
        return self._shared[index]
