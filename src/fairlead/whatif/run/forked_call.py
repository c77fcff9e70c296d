"""Calls functions in forked processes, which share the memory of this process.

A forked process starts immediately with all loaded objects. The memory of an object is copied only
when one of the processes changes it.
"""

from __future__ import annotations

import gc
import os
import pickle
import signal
import threading
from collections import deque
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from io import BytesIO
from typing import Any, Final, Generic, NoReturn, TypeVar

Result = TypeVar("Result")

_ENDING_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


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
                with _signals_deferred() as mask:
                    running.append(_ForkedCall(waiting.popleft(), index, mask))
            yield running[0].result(shared)
            running.popleft()
    finally:
        with _signals_deferred():
            for one in running:
                one.kill()


@contextmanager
def _signals_deferred() -> Iterator[Collection[int]]:
    """Let the signals that end this process take effect only after the `with` block.

    Without this, the handler of a signal could raise its exception between a fork and the next
    statement: the new process would not be killed, or would go on as a copy of this process.

    The value is the set of signals that were blocked before.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING_SIGNALS)
    try:
        yield before
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _ForkedCall(Generic[Result]):
    """A call of `produce` in a forked process; the caller must call `result` or `kill`.

    If no process can be forked, for lack of memory or because too many processes run, the call has
    failed.
    """

    def __init__(
        self, produce: Callable[[], Result], index: Mapping[int, int], mask: Collection[int]
    ) -> None:
        """Fork the process, while signals are deferred; the new process blocks those in `mask`.

        `index` maps the `id()` of each shared object to its number.
        """
        self._child, self._reading = 0, -1
        try:
            self._reading, writing = os.pipe()
        except OSError:
            return
        try:
            self._child = os.fork()
        except OSError:
            os.close(self._reading)
            os.close(writing)
            return
        if self._child == 0:
            self._send(produce, index, mask, writing)
        os.close(writing)

    def result(self, shared: Sequence[object]) -> Result | None:
        """Wait for the process to end, and return the result; None if the process failed."""
        if not self._child:
            return None
        with os.fdopen(self._reading, "rb", closefd=False) as pipe:
            sent = pipe.read()
        with _signals_deferred():
            self._wait()
        try:
            result: Result = _Unpickler(sent, shared).load()
        except (EOFError, pickle.UnpicklingError):  # the process ended before it had sent all
            return None
        return result

    def kill(self) -> None:
        """Kill the process; do nothing if it has ended."""
        if self._child:
            with suppress(ProcessLookupError):  # see _wait
                os.kill(self._child, signal.SIGKILL)
            self._wait()

    def _wait(self) -> None:
        """Wait until the process has ended.

        Its exit status is not used. It is lost if the program that started this one ignores
        SIGCHLD, because the kernel then removes processes that end.
        """
        os.close(self._reading)
        with suppress(ChildProcessError):
            os.waitpid(self._child, 0)
        self._child = 0

    def _send(
        self,
        produce: Callable[[], Result],
        index: Mapping[int, int],
        mask: Collection[int],
        writing: int,
    ) -> NoReturn:
        """In the forked process, write the result of `produce` to the pipe; end the process.

        An object that both processes have is written as a number: `index` maps the `id()` of such
        an object to its number.
        """
        code = 1
        try:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            gc.freeze()  # a garbage collection would write to all memory pages and so copy them
            os.close(self._reading)
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
