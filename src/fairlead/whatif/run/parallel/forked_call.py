"""Calls functions in forked processes, which share the memory of this process.

A forked process starts immediately with all loaded objects. The memory of an object is copied only
when one of the processes changes it.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import cycle
from typing import Any, BinaryIO, Final, Generic, NoReturn, TypeVar

from fairlead.whatif.snapshot.garbage_collection import freeze_until_exit

Item = TypeVar("Item")
Result = TypeVar("Result")

_PR_SET_PDEATHSIG: Final = 1  # linux/prctl.h
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
    """Yield the results of `calls` in order; each call is made in a forked process.

    If the process of a call fails, its result is None.

    At most `usable_cores()` of these processes run at the same time. If the caller closes the
    iterator early, the running processes are killed. The results may refer to objects in `shared`,
    which are not sent (`in_child`).
    """
    # The index is made before the fork. In the forked process, counting a reference to each object
    # would copy the memory of all objects.
    index = dict(zip(map(id, shared), range(len(shared)), strict=True))
    waiting, running = deque(calls), deque[_ForkedCalls[Result]]()
    try:
        while waiting or running:
            while waiting and len(running) < usable_cores():
                call = partial(map, _called, (waiting.popleft(),))
                with _signals_deferred() as mask:
                    running.append(_ForkedCalls(call, index, mask))
            try:
                result = running[0].next_result(shared)
            except EOFError:
                result = None
            with _signals_deferred():
                running.popleft().end()
            yield result
    finally:
        with _signals_deferred():
            for one in running:
                one.kill()


def _called(call: Callable[[], Result]) -> Result:
    return call()


def each_in_children(
    call: Callable[[Item], Result],
    items: Sequence[Item],
    processes_max: int | None = None,
    calls_max: int | None = None,
) -> Generator[Result, None, None]:
    """Yield `call(item)` for each of `items`, in order, computed in forked processes.

    One process is forked for each core that this process may use, but at most `processes_max`. Of N
    processes, the first makes the calls for the items 0, N, 2N, ... The second makes the calls for
    the items 1, N + 1, ... Results must therefore not depend on earlier calls. After `calls_max`
    calls, a process is replaced by a new process: forked processes collect no garbage, so each call
    uses more memory. If a process fails, its remaining calls are made in this process. If the
    caller closes the iterator early, the processes are killed.
    """
    count = min(usable_cores(), len(items), processes_max or len(items))
    running = [_Successors(call, items[first::count], calls_max) for first in range(count)]
    try:
        for one in running:
            one.start()
        for item, process in zip(items, cycle(running), strict=False):
            try:
                result = process.next_result()
            except EOFError:
                result = call(item)
            yield result
    finally:
        with _signals_deferred():
            for one in running:
                one.kill()


def usable_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0))


@contextmanager
def _signals_deferred() -> Iterator[Collection[int]]:
    """Let the signals that end this process take effect only after the `with` block.

    If a signal took effect within the block, its handler could raise an exception between a fork
    and the next statement. The new process would then not be killed, or would go on as a copy of
    this process.

    The context manager yields the set of signals that were blocked before.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING_SIGNALS)
    try:
        yield before
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end_with(parent: int) -> None:
    """Let the system kill this forked process when the process `parent` ends; Linux only.

    A process that is killed cannot kill the processes that it has forked.
    """
    if sys.platform != "linux":
        return
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it has ended before the call of prctl
        os._exit(1)


class _ForkedCalls(Generic[Result]):
    """A forked process that computes results; the caller must call `end` or `kill`.

    If the fork fails, for lack of memory or because too many processes run, the process counts as a
    failed process.
    """

    def __init__(
        self,
        produce: Callable[[], Iterable[Result]],
        index: Mapping[int, int],
        mask: Collection[int],
    ) -> None:
        """Fork the process; in the new process, only the signals in `mask` stay blocked.

        The caller must have deferred the signals that end the process (`_signals_deferred`).

        `produce` is called in the new process and returns the results. `index` maps the `id()` of
        each shared object to its number.
        """
        self._child = 0
        self._reading: BinaryIO | None = None
        try:
            reading, writing = os.pipe()
        except OSError:
            return
        parent = os.getpid()
        try:
            self._child = os.fork()
        except OSError:
            os.close(reading)
            os.close(writing)
            return
        if self._child == 0:
            os.close(reading)
            _end_with(parent)
            self._send(produce, index, mask, writing)
        os.close(writing)
        self._reading = os.fdopen(reading, "rb")

    def next_result(self, shared: Sequence[object]) -> Result:
        """Wait for the next result, and return it.

        `shared` are the objects that the result may refer to (`in_child`). Raises EOFError if the
        process ended without sending the result.
        """
        if self._reading is None:
            raise EOFError
        try:
            result: Result = _Unpickler(self._reading, shared).load()
        except pickle.UnpicklingError:  # the process ended before it had sent all
            raise EOFError from None
        return result

    def kill(self) -> None:
        """Kill the process; do nothing after `end`."""
        if self._child:
            with suppress(ProcessLookupError):  # see `end`
                os.kill(self._child, signal.SIGKILL)
        self.end()

    def end(self) -> None:
        """Wait until the process has ended.

        Its exit status is not used. If the program that started Fairlead ignores SIGCHLD, the
        status is lost, because the kernel then removes processes that end.
        """
        if self._reading is not None:
            self._reading.close()
        if self._child:
            with suppress(ChildProcessError):
                os.waitpid(self._child, 0)
        self._child, self._reading = 0, None

    def _send(
        self,
        produce: Callable[[], Iterable[Result]],
        index: Mapping[int, int],
        mask: Collection[int],
        writing: int,
    ) -> NoReturn:
        """In the forked process, write the results of `produce` to the pipe; end the process.

        An object that both processes have is written as a number: `index` maps the `id()` of such
        an object to its number. `mask` are the signals to block, and `writing` is the descriptor of
        the pipe.
        """
        code = 1
        try:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            # A garbage collection would write to all memory pages and so copy them.
            freeze_until_exit()
            with os.fdopen(writing, "wb") as pipe:
                for result in produce():
                    _Pickler(pipe, index).dump(result)
                    pipe.flush()
            code = 0
        finally:
            os._exit(code)


class _Successors(Generic[Item, Result]):
    """Forked processes, one after the other, that make the calls `call(item)` for `items`.

    Each process makes at most `calls_max` calls; None means no limit. The caller must call `kill`.
    """

    def __init__(
        self, call: Callable[[Item], Result], items: Sequence[Item], calls_max: int | None
    ) -> None:
        """Prepare the processes; `start` forks the first process."""
        size = calls_max or len(items)
        self._call = call
        self._parts = deque(items[first : first + size] for first in range(0, len(items), size))
        self._process: _ForkedCalls[Result] | None = None
        self._missing = 0  # results that the process has not sent yet

    def start(self) -> None:
        """Fork the next process, if calls are left.

        Before that, end the present process, which has made its calls.
        """
        with _signals_deferred() as mask:
            if self._process is not None:
                self._process.end()
                self._process = None
            if self._parts:
                part = self._parts.popleft()
                self._missing = len(part)
                self._process = _ForkedCalls(partial(map, self._call, part), {}, mask)

    def next_result(self) -> Result:
        """Wait for the next result, and return it.

        Raises EOFError if the forked process ended without sending this result.
        """
        assert self._process is not None
        self._missing -= 1
        try:
            return self._process.next_result(())
        finally:
            if not self._missing:
                self.start()

    def kill(self) -> None:
        """Kill the present process, if there is one.

        The caller must have deferred the signals that end this process (`_signals_deferred`).
        """
        if self._process is not None:
            self._process.kill()


class _Pickler(pickle.Pickler):
    """Pickles each shared object as a number: `index` maps the object's `id()` to this number."""

    def __init__(self, file: Any, index: Mapping[int, int]) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self._index = index

    def persistent_id(self, obj: object) -> int | None:
        return self._index.get(id(obj))


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: BinaryIO, shared: Sequence[object]) -> None:
        super().__init__(file)
        self._shared = shared

    def persistent_load(self, index: Any) -> object:
        return self._shared[index]
