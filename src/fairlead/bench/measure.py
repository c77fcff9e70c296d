"""Measures one workload: builds it, schedules the initial pods, and times the measured pods."""

from __future__ import annotations

import gc
import resource
import time

from fairlead.bench.bare_world import BareWorld
from fairlead.bench.measurement import KIB_PER_MIB, IncompleteRunError, Measurement
from fairlead.bench.timed_engine import TimedEngine, first_ms, p99_of_later_ms
from fairlead.bench.workload import Setting, Workload
from fairlead.engine.core.stimulus import ObjectChanged, ObjectsLoaded


def measure(workload: Workload) -> Measurement:
    """Run `workload` once in this process.

    Raises IncompleteRunError if a measured pod was not bound.
    """
    setting = workload.build()
    engine = TimedEngine(workload.engine())
    world = BareWorld(engine)
    world.enqueue([ObjectsLoaded(setting.objects)])
    world.enqueue(ObjectChanged(pod) for pod in setting.initial)
    world.run()
    gc.collect()
    before, cycles_before = world.bound, len(engine.cycles_ns)
    peak_before = _peak_mib()
    started, cpu = time.perf_counter(), time.process_time()
    _run_measured(world, setting, workload.disturb_every)
    elapsed, used = time.perf_counter() - started, time.process_time() - cpu
    if world.bound - before < len(setting.measured):
        missing = len(setting.measured) - (world.bound - before)
        raise IncompleteRunError(f"{workload.name}: {missing} pods were not bound")
    peak = _peak_mib()
    cycles_ns = engine.cycles_ns[cycles_before:]
    return Measurement(
        workload=workload.name,
        pods_per_second=len(setting.measured) / elapsed,
        seconds=elapsed,
        peak_mib=peak,
        upstream_threshold=workload.threshold,
        cpu_seconds=used,
        growth_mib=peak - peak_before,
        first_cycle_ms=first_ms(cycles_ns),
        p99_cycle_ms=p99_of_later_ms(cycles_ns),
    )


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / KIB_PER_MIB


def _run_measured(world: BareWorld, setting: Setting, disturb_every: int | None) -> None:
    world.enqueue(ObjectChanged(pod) for pod in setting.measured)
    if setting.disturb is None or disturb_every is None:
        world.run()
        return
    for i in range(len(setting.measured) // disturb_every):
        world.enqueue(setting.disturb(i))
        world.run(disturb_every)
    world.run()
