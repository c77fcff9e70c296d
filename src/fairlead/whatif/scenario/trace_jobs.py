"""Makes gangs of the pods of a trace, and gives each gang to a queue.

    jobs:
      queues:
      - {name: research, jobs: 40, weight: 2}
      - {name: ads, jobs: 10, begins: 30m, over: 15m}
      members: [2, 4, 8]
      runtimes: [20m, 40m]

In the list `queues`, `jobs` is the number of gangs of a queue. The first gang of the queue arrives
at `begins`, and all its gangs arrive within the duration `over`. All members of a gang are made
from one row of the pod table. The gangs of a queue take the rows in a random order. Each row occurs
as often as its count column says. After the last row, the order begins again. The number of members
and the runtime of the pods are chosen at random from the lists `members` and `runtimes`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from msgspec import Struct

from fairlead.api.json import Json
from fairlead.api.pods.run_duration import RUN_DURATION
from fairlead.api.timestamp import format_timestamp
from fairlead.engine.batch.info.group import GROUP_NAME_ANNOTATION
from fairlead.engine.batch.scheduler_name import FAIRLEAD
from fairlead.engine.core.instant import DurationNs, Instant, to_seconds
from fairlead.whatif.input.duration import read_duration
from fairlead.whatif.input.error import InputError
from fairlead.whatif.input.seeded_choice import draws, shuffled
from fairlead.whatif.input.strict_form import StrictForm

API: Final = "scheduling.volcano.sh/v1beta1"
JOBS_MAX: Final = 100_000
MEMBERS_MAX: Final = 10_000
_FIELD: Final = "cluster.trace.jobs"


class JobQueue(StrictForm, frozen=True, kw_only=True):
    """A queue that gets `jobs` gangs, at equal intervals.

    The first gang arrives at `begins`, and all gangs arrive within the duration `over`. The default
    of `over` is the field `arrivals` of the trace.
    """

    name: str
    jobs: int
    weight: int = 1
    begins: str | int | float = 0
    over: str | int | float | None = None


class TraceJobs(StrictForm, frozen=True, kw_only=True):
    """The field `jobs` of a trace; `scheduler` is the schedulerName of the pods."""

    queues: tuple[JobQueue, ...]
    members: tuple[int, ...] = (2, 4, 8)
    runtimes: tuple[str | int | float, ...] = ("20m", "40m")
    scheduler: str = FAIRLEAD


Row = Any
MakePod = Callable[[Row, str], Json]
ArrivingObject = tuple[DurationNs, Json]


def queue_objects(jobs: TraceJobs, start: Instant) -> list[Json]:
    """Return a Queue object for each queue in `jobs`, created at `start`."""
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


class PodSource(Struct, frozen=True, kw_only=True):
    """The rows of the pod table; `make_pod(row, name)` creates a pod from a row.

    `arrivals` is the default duration within which all gangs of a queue arrive.
    """

    rows: Sequence[Row]
    make_pod: MakePod
    arrivals: DurationNs
    namespace: str


def job_arrivals(
    jobs: TraceJobs, pod_source: PodSource, seed: int, scenario: str
) -> list[ArrivingObject]:
    """Return PodGroups and pods in order of arrival, each with its time since the start.

    `seed` determines the row of the pod table for each gang, the number of members, and the
    runtime. Raises InputError. Its message names `scenario`, the scenario file.
    """
    _check(jobs, pod_source.rows, scenario)
    runtimes = [_duration(scenario, "runtimes", each) for each in jobs.runtimes]
    found: list[ArrivingObject] = []
    for number, queue in enumerate(jobs.queues):
        begins = _duration(scenario, f"queues[{number}].begins", queue.begins)
        over = pod_source.arrivals
        if queue.over is not None:
            over = _duration(scenario, f"queues[{number}].over", queue.over)
        shapes = shuffled(pod_source.rows, seed, number + 1)
        chance = draws(seed, 1000 + number)
        for job in range(queue.jobs):
            members = jobs.members[next(chance) % len(jobs.members)]
            runtime = runtimes[next(chance) % len(runtimes)]
            gang = _Gang(f"{queue.name}-{job:04}", queue.name, members, runtime)
            at = begins + job * over // queue.jobs
            row = shapes[job % len(shapes)]
            found += [(at, one) for one in gang.objects(row, pod_source, jobs.scheduler)]
    return sorted(found, key=lambda arrival: arrival[0])


class _Gang(Struct, frozen=True):
    """A PodGroup and its pods, which run for `runtime`."""

    name: str
    queue: str
    members: int
    runtime: DurationNs

    def objects(self, row: Row, pod_source: PodSource, scheduler: str) -> Iterator[Json]:
        """Yield the PodGroup and its pods."""
        yield {
            "apiVersion": API,
            "kind": "PodGroup",
            "metadata": {"name": self.name, "namespace": pod_source.namespace},
            "spec": {"minMember": self.members, "queue": self.queue},
        }
        annotations = {
            GROUP_NAME_ANNOTATION: self.name,
            RUN_DURATION: f"{to_seconds(self.runtime):g}s",
        }
        for member in range(self.members):
            pod = pod_source.make_pod(row, f"{self.name}-{member}")
            metadata = pod["metadata"]
            metadata = {
                **metadata,
                "annotations": {**metadata.get("annotations", {}), **annotations},
            }
            yield {**pod, "metadata": metadata, "spec": {**pod["spec"], "schedulerName": scheduler}}


def _check(jobs: TraceJobs, rows: Sequence[Row], scenario: str) -> None:
    def refuse(field: str, problem: str) -> InputError:
        return InputError(scenario, problem, field=f"{_FIELD}.{field}")

    if not rows:
        raise refuse("queues", "the trace has no pods to make gangs of")
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
            raise refuse(f"queues[{number}].name", f"{queue.name!r} is empty or used twice")


def _duration(scenario: str, field: str, text: str | float) -> DurationNs:
    try:
        return read_duration(text)
    except ValueError as cause:
        raise InputError(scenario, str(cause), field=f"{_FIELD}.{field}") from None
