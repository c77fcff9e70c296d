"""Calls in forked processes return their results, in order, and leave this process as it is."""

from __future__ import annotations

import errno
import gc
import os
import signal
import sys
from contextlib import closing
from pathlib import Path
from select import select

import pytest

from fairlead.whatif.run.parallel.forked_call import each_in_children, in_child, in_children
from fairlead.whatif.run.progress import PhasesInTurn
from fairlead.whatif.snapshot.garbage_collection import has_frozen_objects


def test_a_child_that_fails_has_no_result():
    assert in_child(lambda: 1 / 0, ()) is None


def test_a_child_process_does_not_change_the_parent():
    here = []
    assert in_child(lambda: (here.append(1), list(here))[1], ()) == [1]
    assert here == []


def test_the_objects_of_a_child_process_are_frozen_and_not_counted(monkeypatch, unfrozen):
    """Python counts frozen objects one by one, which takes long in a large process."""
    assert not has_frozen_objects()
    assert in_child(gc.get_freeze_count, ()) > 0
    monkeypatch.delattr(gc, "get_freeze_count")
    assert in_child(has_frozen_objects, ()) is True


def test_shared_objects_are_not_sent():
    shared = [object(), {"a": 1}]
    assert in_child(lambda: {"x": shared[1], "y": 2}, shared)["x"] is shared[1]


def test_a_failed_call_does_not_stop_the_others():
    assert list(in_children([lambda: 1, lambda: 1 / 0, lambda: 3], ())) == [1, None, 3]


def test_as_many_calls_run_at_once_as_there_are_cores(monkeypatch):
    """The first call waits for the second, and its result still comes first."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1})
    reading, writing = os.pipe()
    calls = [lambda: os.read(reading, 1), lambda: os.write(writing, b"x")]
    assert list(in_children(calls, ())) == [b"x", 1]


def test_one_call_runs_at_a_time_on_one_core(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0})
    reading, writing = os.pipe()
    calls = [lambda: select([reading], [], [], 0.1)[0], lambda: os.write(writing, b"x")]
    assert list(in_children(calls, ())) == [[], 1]


def test_the_other_processes_are_killed_when_the_caller_stops(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1})
    never_written, _ = os.pipe()
    children = []
    fork = os.fork
    monkeypatch.setattr(os, "fork", lambda: children.append(fork()) or children[-1])
    with closing(in_children([lambda: 1, lambda: os.read(never_written, 1)], ())) as results:
        assert next(results) == 1
    assert len(children) == 2
    with pytest.raises(ChildProcessError):
        os.waitpid(children[1], os.WNOHANG)


def open_files():
    return {one.name for one in Path("/proc/self/fd").iterdir()}


def test_a_call_fails_if_no_process_can_be_forked(monkeypatch):
    def fork():
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(os, "fork", fork)
    opened = open_files()
    assert list(in_children([lambda: 1, lambda: 2], ())) == [None, None]
    assert open_files() == opened


def test_results_arrive_if_the_kernel_removes_ended_processes():
    """A program that ignores SIGCHLD passes this on to the programs that it starts."""
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        assert list(in_children([lambda: 1, lambda: 1 / 0, lambda: 3], ())) == [1, None, 3]
    finally:
        signal.signal(signal.SIGCHLD, before)


def test_a_killed_process_has_no_result():
    """The process has sent a part of its result."""

    class Deadly:
        def __reduce__(self):
            os.kill(os.getpid(), signal.SIGKILL)

    assert in_child(lambda: [b"x" * 100_000, Deadly()], ()) is None


def processes(monkeypatch, count):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(count)))


def test_the_results_of_many_items_are_in_the_order_of_the_items(monkeypatch):
    """Three processes make the calls, so neighbouring items have different processes."""
    processes(monkeypatch, 3)
    found = list(each_in_children(lambda item: (item, os.getpid()), range(8)))
    assert [item for item, _ in found] == list(range(8))
    used = [process for _, process in found]
    assert used == (used[:3] * 3)[:8]
    assert len({*used, os.getpid()}) == 4


def test_a_process_is_replaced_after_some_calls(monkeypatch):
    """Two processes at a time make two calls each, so eleven calls need six processes."""
    processes(monkeypatch, 2)
    results = each_in_children(lambda item: (item, os.getpid()), range(11), calls_max=2)
    found = [*results]
    assert [item for item, _ in found] == list(range(11))
    used = [process for _, process in found]
    assert [used.index(process) for process in used] == [0, 1, 0, 1, 4, 5, 4, 5, 8, 9, 8]
    for child in {*used}:
        with pytest.raises(ChildProcessError):
            os.waitpid(child, os.WNOHANG)


def test_a_process_that_replaces_a_failed_one_makes_its_own_calls(monkeypatch):
    processes(monkeypatch, 1)
    here = os.getpid()

    def call(item):
        if item == 1 and os.getpid() != here:
            os.kill(os.getpid(), signal.SIGKILL)
        return item, os.getpid() == here

    found = [*each_in_children(call, range(5), calls_max=3)]
    assert found == [(0, False), (1, True), (2, True), (3, False), (4, False)]


def test_no_process_is_started_without_an_item(monkeypatch):
    processes(monkeypatch, 4)
    assert list(each_in_children(str, ())) == []
    assert list(each_in_children(lambda _: os.getpid(), (1,))) != [os.getpid()]


def test_this_process_makes_the_calls_that_a_failed_process_still_had_to_make(monkeypatch):
    processes(monkeypatch, 2)
    here = os.getpid()

    def call(item):
        if item == 2 and os.getpid() != here:
            os.kill(os.getpid(), signal.SIGKILL)
        return item, os.getpid() == here

    found = [*each_in_children(call, range(6))]
    assert found == [(0, False), (1, False), (2, True), (3, False), (4, True), (5, False)]


def test_an_error_of_a_call_is_raised_here(monkeypatch):
    processes(monkeypatch, 2)
    with closing(each_in_children(lambda item: 1 / item, (1, 2, 0, 3))) as results:
        assert (next(results), next(results)) == (1, 0.5)
        with pytest.raises(ZeroDivisionError):
            next(results)


def test_a_caller_that_stops_early_leaves_no_process_behind(monkeypatch):
    processes(monkeypatch, 2)
    never_written, _ = os.pipe()
    children = []
    fork = os.fork
    monkeypatch.setattr(os, "fork", lambda: children.append(fork()) or children[-1])
    call = {0: lambda: 1, 1: lambda: os.read(never_written, 1)}
    with closing(each_in_children(lambda item: call[item](), (0, 1))) as results:
        assert next(results) == 1
    assert len(children) == 2
    for child in children:
        with pytest.raises(ChildProcessError):
            os.waitpid(child, os.WNOHANG)


def test_a_signal_during_a_fork_leaves_no_process_behind(monkeypatch):
    """The signal takes effect once the new process can be killed."""
    children = []
    fork = os.fork

    def fork_and_signal():
        children.append(fork())
        if children[-1]:
            signal.raise_signal(signal.SIGINT)
        return children[-1]

    monkeypatch.setattr(os, "fork", fork_and_signal)
    never_written, _ = os.pipe()
    # A shell starts background jobs with the signal ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            in_child(lambda: select([never_written], [], [], 10), ())
    finally:
        signal.signal(signal.SIGINT, before)
    with pytest.raises(ChildProcessError):
        os.waitpid(children[0], os.WNOHANG)


def has_ended(process):
    try:
        stat = Path(f"/proc/{process}/stat").read_text()
    except FileNotFoundError:
        return True
    return stat.rsplit(")", 1)[1].split()[0] == "Z"  # a zombie, whose parent does not wait for it


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not kill such processes")
def test_a_killed_process_leaves_none_of_its_own_processes_behind(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1})
    reading, writing = os.pipe()

    def wait():
        os.write(writing, str(os.getpid()).encode())
        select([], [], [], 60)

    calls = [lambda: os.read(reading, 20), lambda: in_child(wait, ())]
    with closing(in_children(calls, ())) as results:
        waiting = int(next(results))
        assert not has_ended(waiting)
    for _ in range(1_000):
        if has_ended(waiting):
            break
        select([], [], [], 0.01)
    assert has_ended(waiting)


class Shown:
    def __init__(self):
        self.lines = []

    def begin(self, phase, total):
        self.lines.append(phase)

    def reach(self, done, now_s):
        self.lines.append(now_s)


def test_only_the_first_phase_that_has_not_ended_is_shown():
    shown = Shown()
    phases = PhasesInTurn(shown)
    first, second = phases.phase(0, "one"), phases.phase(1, "two")
    second.reach(0, 1.0)
    first.reach(0, 2.0)
    first.reach(0, 3.0)
    phases.end_phase()
    first.reach(0, 4.0)
    second.reach(0, 5.0)
    assert shown.lines == ["one", 2.0, 3.0, "two", 5.0]


def test_a_forked_process_sees_which_phase_is_shown():
    shown = Shown()
    phases = PhasesInTurn(shown)
    second = phases.phase(1, "two")

    def wait_for_turn():
        while not shown.lines:
            second.reach(0, 1.0)
        return shown.lines

    def produce():
        with closing(in_children([lambda: "done", wait_for_turn], ())) as results:
            yield next(results)
            phases.end_phase()
            yield next(results)

    assert list(produce()) == ["done", ["two", 1.0]]
