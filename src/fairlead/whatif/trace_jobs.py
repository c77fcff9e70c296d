"""Whole jobs made of a trace's pods: gangs of members of one shape that arrive queue by queue.

    jobs:
      members: [2, 4, 8]             how many members a gang has, by turns and by chance
      runtimes: [20m, 40m]           how long its members run, likewise
      queues:
      - {name: research, weight: 2, jobs: 300}
      - {name: production, weight: 3, jobs: 200, begins: 1h, over: 2h}

The shapes of members are drawn from the table of pods as often as it counts them. Gangs of a queue
arrive evenly, from `begins` on. Each is a PodGroup and its pods, which come back when they are
evicted, as everything that a trace brings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fairlead.api.json import Json
from fairlead.api.pods.run_duration import RUN_DURATION
from fairlead.api.timestamp import format_timestamp
from fairlead.engine.batch.info.group import GROUP_NAME_ANNOTATION
from fairlead.engine.batch.info.job_table import FAIRLEAD
from fairlead.engine.core.instant import DurationNs, Instant, to_seconds
from fairlead.whatif.chance import draws, shuffled
from fairlead.whatif.duration import read_duration
from fairlead.whatif.input_error import InputError
from fairlead.whatif.strict import StrictForm

API: Final = "scheduling.volcano.sh/v1beta1"
JOBS_MAX: Final = 100_000
MEMBERS_MAX: Final = 10_000
_FIELD: Final = "cluster.trace.jobs"


class JobQueue(StrictForm, frozen=True, kw_only=True):
    """One queue, and the gangs that arrive in it; `over` is the arrivals' by default."""

    name: str
    jobs: int
    weight: int = 1
    begins: str | int | float = 0
    over: str | int | float | None = None


class TraceJobs(StrictForm, frozen=True, kw_only=True):
    """`jobs:` of a trace; `scheduler` is whom the pods choose."""

    queues: tuple[JobQueue, ...]
    members: tuple[int, ...] = (2, 4, 8)
    runtimes: tuple[str | int | float, ...] = ("20m", "40m")
    scheduler: str = FAIRLEAD


Row = Any
MakePod = Callable[[Row, str], Json]
Coming = tuple[DurationNs, Json]


def queue_objects(jobs: TraceJobs, start: Instant) -> list[Json]:
    """The queues."""
    created = format_timestamp(start)
    return [
        {
            "apiVersion": API,
            "kind": "Queue",
            "metadata": {"name": queue.name, "creationTimestamp": created},
            "spec": {"weight": queue.weight},
        }
        for queue in jobs.queues
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """What gangs are made of: `make_pod` makes the pod of one of `rows` under a name."""

    rows: Sequence[Row]
    make_pod: MakePod
    arrivals: DurationNs
    namespace: str


def coming_jobs(jobs: TraceJobs, material: Material, seed: int, scenario: str) -> list[Coming]:
    """Groups and pods in order of arrival. Raises InputError in the name of `scenario`."""
    _check(jobs, material.rows, scenario)
    runtimes = [_duration(scenario, "runtimes", each) for each in jobs.runtimes]
    found: list[Coming] = []
    for number, queue in enumerate(jobs.queues):
        begins = _duration(scenario, f"queues[{number}].begins", queue.begins)
        over = material.arrivals
        if queue.over is not None:
            over = _duration(scenario, f"queues[{number}].over", queue.over)
        shapes = shuffled(material.rows, seed, number + 1)
        chance = draws(seed, 1000 + number)
        for job in range(queue.jobs):
            members = jobs.members[next(chance) % len(jobs.members)]
            runtime = runtimes[next(chance) % len(runtimes)]
            gang = _Gang(f"{queue.name}-{job:04}", queue.name, members, runtime)
            at = begins + job * over // queue.jobs
            row = shapes[job % len(shapes)]
            found += [(at, one) for one in gang.objects(row, material, jobs.scheduler)]
    return sorted(found, key=lambda coming: coming[0])


@dataclass(frozen=True, slots=True)
class _Gang:
    """One job."""

    name: str
    queue: str
    members: int
    runtime: DurationNs

    def objects(self, row: Row, material: Material, scheduler: str) -> Iterator[Json]:
        """Its group and its pods."""
        yield {
            "apiVersion": API,
            "kind": "PodGroup",
            "metadata": {"name": self.name, "namespace": material.namespace},
            "spec": {"minMember": self.members, "queue": self.queue},
        }
        marks = {
            GROUP_NAME_ANNOTATION: self.name,
            RUN_DURATION: f"{to_seconds(self.runtime):g}s",
        }
        for member in range(self.members):
            pod = material.make_pod(row, f"{self.name}-{member}")
            metadata = {**pod["metadata"], "annotations": marks}
            yield {**pod, "metadata": metadata, "spec": {**pod["spec"], "schedulerName": scheduler}}


def _check(jobs: TraceJobs, rows: Sequence[Row], scenario: str) -> None:
    def refuse(field: str, problem: str) -> InputError:
        return InputError(scenario, problem, field=f"{_FIELD}.{field}")

    if not rows:
        raise refuse("queues", "there are no pods in the trace that gangs could be made of")
    if not jobs.members or not all(0 < each <= MEMBERS_MAX for each in jobs.members):
        raise refuse("members", f"expected numbers from 1 to {MEMBERS_MAX}")
    if not jobs.runtimes:
        raise refuse("runtimes", "expected at least one duration")
    names = [queue.name for queue in jobs.queues]
    for number, queue in enumerate(jobs.queues):
        if not 0 < queue.jobs <= JOBS_MAX:
            raise refuse(f"queues[{number}].jobs", f"expected a number from 1 to {JOBS_MAX}")
        if queue.weight < 1:
            raise refuse(f"queues[{number}].weight", "expected a positive number")
        if not queue.name or queue.name in names[:number]:
            raise refuse(f"queues[{number}].name", f"{queue.name!r} is no name of its own")


def _duration(scenario: str, field: str, text: str | float) -> DurationNs:
    try:
        return read_duration(text)
    except ValueError as cause:
        raise InputError(scenario, str(cause), field=f"{_FIELD}.{field}") from None
