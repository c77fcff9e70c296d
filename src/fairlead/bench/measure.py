"""Measures one workload: builds it, schedules the initial pods, and times the measured pods."""

from __future__ import annotations

import gc
import resource
import time
from collections.abc import Sequence
from typing import Final

import fairlead.engine.scheduling.preemption.evaluator  # noqa: F401 - loaded before its first use
from fairlead.bench.bare_world import BareWorld
from fairlead.bench.measurement import KIB_PER_MIB, IncompleteRunError, Measurement
from fairlead.bench.workload import Setting, Workload
from fairlead.engine.core.command import IssuedCommand
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.stimulus import ObjectChanged, ObjectsLoaded
from fairlead.worlds.driver import CommandSource

_NS_PER_MS: Final = 1_000_000
# Reading the CPU time of the process twice takes 3 µs, a tenth of the time of a scheduling cycle.
# So with at least _MANY_PODS measured pods, only every seventh of these cycles is measured. Seven
# has no factor in common with the numbers of different pods that alternate in SchedulingMixed.
_MANY_PODS: Final = 1_000
_SAMPLING_INTERVAL: Final = 7


def measure(workload: Workload) -> Measurement:
    """Run `workload` once in this process.

    Raises IncompleteRunError if fewer pods were bound than the workload measures.
    """
    setting = workload.build()
    engine = TimedEngine(workload.engine())
    world = BareWorld(engine)
    world.enqueue([ObjectsLoaded(setting.objects)])
    world.enqueue(ObjectChanged(pod) for pod in setting.initial)
    world.run()
    gc.collect()
    before = world.bound
    is_sampled = len(setting.measured) >= _MANY_PODS and not workload.has_long_cycles
    engine.restart(_SAMPLING_INTERVAL if is_sampled else 1)
    peak_before = _peak_mib()
    started, cpu = time.perf_counter(), time.process_time()
    _run_measured(world, setting, workload.churn_every)
    elapsed, used = time.perf_counter() - started, time.process_time() - cpu
    if world.bound - before < len(setting.measured):
        missing = len(setting.measured) - (world.bound - before)
        raise IncompleteRunError(f"{workload.name}: {missing} pods were not bound")
    peak = _peak_mib()
    return Measurement(
        workload=workload.name,
        pods_per_second=len(setting.measured) / elapsed,
        seconds=elapsed,
        peak_mib=peak,
        upstream_threshold=workload.threshold,
        cpu_seconds=used,
        growth_mib=peak - peak_before,
        first_cycle_ms=first_ms(engine.cycles_ns),
        p99_cycle_ms=p99_of_later_ms(engine.cycles_ns),
    )


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / KIB_PER_MIB


def _run_measured(world: BareWorld, setting: Setting, churn_every: int | None) -> None:
    world.enqueue(ObjectChanged(pod) for pod in setting.measured)
    if setting.churn is None or churn_every is None:
        world.run()
        return
    for i in range(len(setting.measured) // churn_every):
        world.enqueue(setting.churn(i))
        world.run(churn_every)
    world.run()


class TimedEngine:
    """Passes all calls to `engine`; `cycles_ns` are the CPU times of measured cycles, in order.

    A cycle is one unit of work: a scheduling cycle, or a session of the batch scheduler.
    """

    def __init__(self, engine: CommandSource) -> None:
        self._engine = engine
        self.handle = engine.handle  # called directly, because it is frequent and not measured
        self.next_deadline = engine.next_deadline
        self.cycles_ns: list[int] = []
        self._every = 1
        self._skipped = 0

    def restart(self, every: int) -> None:
        """Discard all measured cycles; measure the next cycle, and then every `every`-th cycle."""
        self.cycles_ns, self._every, self._skipped = [], every, every

    def handle_deadline(self, now: Instant) -> Sequence[IssuedCommand]:
        """Do one unit of work that is due at `now`.

        Measures only every N-th unit. N is the argument `every` of `restart`.
        """
        self._skipped += 1
        if self._skipped < self._every:
            return self._engine.handle_deadline(now)
        self._skipped = 0
        started = time.process_time_ns()
        issued = self._engine.handle_deadline(now)
        self.cycles_ns.append(time.process_time_ns() - started)
        return issued


def first_ms(cycles_ns: Sequence[int]) -> float | None:
    """Return the CPU time of the first cycle, in ms; None if there are no cycles."""
    return cycles_ns[0] / _NS_PER_MS if cycles_ns else None


def p99_of_later_ms(cycles_ns: Sequence[int]) -> float | None:
    """Return the 99th percentile of the times of all cycles after the first, in ms.

    Returns the longest time if there are fewer than a hundred such cycles, and None if there are
    none.
    """
    later = sorted(cycles_ns[1:])
    return later[-(len(later) // 100) - 1] / _NS_PER_MS if later else None
