"""The runner performs due work in slices."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field
from itertools import count

import pytest
from tests.leaping_loop import run_leaping

from fairlead.apiserver.error import ApiError
from fairlead.apiserver.storage.storage import Storage
from fairlead.engine.core.instant import seconds
from fairlead.worlds.local.clock import LocalClock
from fairlead.worlds.local.server import runner
from fairlead.worlds.local.server.runner import Runner

START = seconds(1000)


@dataclass
class ControlPlaneDouble:
    """A control plane with work at these instants; the first piece of work may fail."""

    due: list[int] = field(default_factory=list)
    done: list[int] = field(default_factory=list)
    untils: list[int] = field(default_factory=list)
    fails: int = 0
    reached: int | None = None  # time at which the work is late; None if it is not
    pending: deque = field(default_factory=deque)
    is_settled: bool = True

    def next_due(self):
        return self.due[0] if self.due else None

    def run_until(self, instant, *, stop_when=None):
        if self.fails:
            self.fails -= 1
            raise ValueError("defect")
        self.untils.append(instant)
        while self.due and self.due[0] <= instant:
            self.done.append(self.due.pop(0))
            if stop_when is not None and stop_when():
                break
        return instant if self.reached is None else self.reached


@dataclass
class Store:
    """A store that never changes."""

    storage: Storage = field(default_factory=Storage)

    def subscribe(self, _):
        return lambda: None


@dataclass
class Cluster:
    """The attributes of a cluster that a runner uses."""

    control_plane: ControlPlaneDouble
    clock: LocalClock = field(default_factory=lambda: LocalClock(START, paused=True))
    store: Store = field(default_factory=Store)


def run(control_plane, body):
    """Call `body` with a started runner; return the exceptions that the event loop reported.

    The loop's time is virtual, so everything that is ready is done before a sleep ends.
    """
    errors = []

    async def main():
        asyncio.get_running_loop().set_exception_handler(lambda _, about: errors.append(about))
        one = Runner(Cluster(control_plane))
        one.start()
        await body(one)
        one.stop()

    run_leaping(main())
    return errors


def test_due_work_is_done_while_time_stands_still(monkeypatch):
    """The work is performed in slices, until none is left."""
    monkeypatch.setattr(runner, "SLICE_S", 0)
    control_plane = ControlPlaneDouble([START - 2, START - 1, START, START + 1])
    assert run(control_plane, lambda _: asyncio.sleep(0.05)) == []
    assert control_plane.done == [START - 2, START - 1, START]


def test_advancing_waits_until_no_work_is_due(monkeypatch):
    """`advance` returns when no work is due before the new time."""
    monkeypatch.setattr(runner, "SLICE_S", 0)
    control_plane = ControlPlaneDouble([START + second for second in range(1, 6)])

    async def advance(one):
        assert await one.advance(4) == START + 4

    run(control_plane, advance)
    assert control_plane.done == [START + second for second in range(1, 5)]


def test_advancing_performs_due_work_before_time_passes(monkeypatch):
    """While work is due, time does not pass, because a control plane could skip time."""
    monkeypatch.setattr(runner, "SLICE_S", 0)
    control_plane = ControlPlaneDouble([START, START, START + 1])

    async def advance(one):
        assert await one.advance(4) == START + 4

    run(control_plane, advance)
    assert control_plane.done == [START, START, START + 1]
    assert control_plane.untils[:3] == [START, START, START + 4]


def test_an_exception_does_not_stop_the_runner(monkeypatch):
    """The exception is reported, and the remaining work is performed later."""
    monkeypatch.setattr(runner, "AFTER_DEFECT_S", 0.01)
    control_plane = ControlPlaneDouble([START], fails=1)
    errors = run(control_plane, lambda _: asyncio.sleep(0.2))
    assert [str(about["exception"]) for about in errors] == ["defect"]
    assert control_plane.done == [START]


def test_advancing_raises_the_exception_of_a_defect():
    """The caller of `advance` gets the exception."""
    control_plane = ControlPlaneDouble([START], fails=2)

    async def advance(one):
        with pytest.raises(ValueError, match="defect"):
            await one.advance(1)

    run(control_plane, advance)


def test_no_work_is_done_while_disk_space_is_short(monkeypatch):
    """Due work waits, `advance` is refused, and work continues when there is space again."""
    monkeypatch.setattr(runner, "LOOK_FOR_ROOM_S", 0.01)
    control_plane, room = ControlPlaneDouble([START, START + 1]), []

    async def fill_and_empty(one):
        one._cluster.store.storage.has_room = lambda: bool(room)
        await asyncio.sleep(0.05)
        assert control_plane.done == []
        with pytest.raises(ApiError, match="database space exceeded"):
            await one.advance(1)
        room.append("made")
        await asyncio.sleep(0.05)
        assert control_plane.done == [START]
        await one.advance(1)

    assert run(control_plane, fill_and_empty) == []
    assert control_plane.done == [START, START + 1]


def test_slices_do_not_delay_due_work(monkeypatch, cluster):
    """If a slice ends within an instant, the rest of its work is performed at the same instant."""
    monkeypatch.setattr(runner, "SLICE_S", 4)
    monkeypatch.setattr(runner, "perf_counter", count().__next__)
    pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
    job = {"spec": {"parallelism": 3, "template": {"spec": pod}}}
    spec = {"schedule": "*/5 * * * *", "jobTemplate": job}
    path = "/apis/batch/v1/namespaces/default/cronjobs"
    cluster.ask("POST", path, {"metadata": {"name": "often"}, "spec": spec})

    async def main():
        one = Runner(cluster.local)
        one.start()
        await one.advance(seconds(14 * 60 + 58))
        one.stop()

    asyncio.run(main())
    times = [pod["metadata"]["creationTimestamp"] for pod in cluster.list("pod")]
    assert times == ["2026-01-01T00:05:00Z"] * 3 + ["2026-01-01T00:10:00Z"] * 3


@pytest.mark.parametrize("speed", [1000, 1])
def test_only_a_clock_that_is_faster_than_real_time_waits_for_late_work(speed):
    real = [0]
    clock = LocalClock(START, speed=speed, monotonic=lambda: real[0])
    control_plane = ControlPlaneDouble(reached=START - 1)

    async def pass_real_time(duration_s):
        for _ in range(runner.ITERATIONS_BEFORE_SLICE + 3):
            await asyncio.sleep(0)
        before = clock.now()
        real[0] += seconds(duration_s)
        return clock.now() - before

    async def main():
        one = Runner(Cluster(control_plane, clock))
        one.start()
        passed = await pass_real_time(60)
        control_plane.reached = None  # the work is done
        one.control(speed=speed)
        then_passed = await pass_real_time(1)
        one.stop()
        return passed, then_passed

    held = seconds(runner.LEAD_S) * speed - 1 if speed > 1 else seconds(60)
    assert asyncio.run(main()) == (held, seconds(1) * speed)
