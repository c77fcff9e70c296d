"""Detects simulations in which time stands still or hardly advances, because of endless repetition.

EndlessInstant: if pods and all their replacements complete at the instant at which they start, time
never advances. A run is refused if a workload creates and loses too many pods at one instant. The
limit is PODS_MAX plus twice the workload's wanted number of pods.

    a ReplicaSet of 3 whose pods complete after 0 s: refused after 1,007 pods
    a Deployment of 50,000 that is created and deleted at one instant: 50,000 pods, below the limit
                                                                       of 101,000

AttemptLimit: if a plugin rejects two pods after a node was selected for them, each failure wakes
the other pod. While the active queue is empty, pods are retried without backoff, so time never
advances. A run is refused if a pod fails too often at one instant. The limit is ATTEMPTS_MAX plus
ATTEMPTS_PER_OBJECT times the number of nodes and pods. The limit depends on the number of nodes and
pods, because each change of a node or pod can wake the failed pod.

EvictionLimit: the template of a workload may name a node with a NoExecute taint, and tolerate the
taint for 0 seconds. Then each new pod is evicted at once and replaced a moment later. A virtual
second can then take longer than a real second. A run is refused if the pods of a workload are
evicted too often for the same reason within a minute. The limit is EVICTIONS_MAX plus
EVICTIONS_PER_POD times the number of the workload's pods. This number includes the pods that are
evicted at the same instant, because their replacements might not exist yet. Slower loops appear
only in the result (`eviction_loops`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final

from msgspec import Struct, field

from fairlead.api.objects import Pod
from fairlead.api.pods.facts import is_terminal
from fairlead.api.text.name_list import listed
from fairlead.api.timestamp import format_timestamp
from fairlead.engine.core.command import ObjectRef
from fairlead.engine.core.instant import Instant, seconds
from fairlead.engine.core.reporter import PodEvicted, PodUnschedulable, Record, Reporter
from fairlead.engine.core.stimulus import ObjectChanged, ObjectDeleted, Stimulus
from fairlead.whatif.input.error import InputError
from fairlead.whatif.outcome.workload import WorkloadRef, workload_of
from fairlead.worlds.driver import LivelockError

PODS_MAX: Final = 1_000
ATTEMPTS_MAX: Final = 5_000
ATTEMPTS_PER_OBJECT: Final = 10
EVICTIONS_MAX: Final = 2_000
EVICTIONS_PER_POD: Final = 20
_MINUTE: Final = seconds(60)
_NAMED_MAX: Final = 3


class EndlessInstant(Struct):
    """Counts, by workload, the pods that end at the instant at which they are created.

    `wanted` returns the wanted number of pods of a workload; None means no limit.
    """

    source: str
    wanted: Callable[[WorkloadRef], int | None]
    _now: Instant = -1
    _time: str = ""
    _ended: set[str] = field(default_factory=set)
    _counts: Counter[WorkloadRef] = field(default_factory=Counter)

    def observe(self, stimulus: Stimulus, now: Instant) -> None:
        """Count the pod in `stimulus` if the pod was created at `now` and ends at `now`.

        Raises InputError if the count shows that the pod's workload would replace its pods forever.
        """
        if type(stimulus) is not ObjectChanged and type(stimulus) is not ObjectDeleted:
            return
        pod = stimulus.object
        if type(pod) is Pod and (type(stimulus) is ObjectDeleted or is_terminal(pod)):
            self._count(pod, now)

    def _count(self, pod: Pod, now: Instant) -> None:
        if now != self._now:
            self._now, self._time = now, format_timestamp(now)
            self._ended.clear()
            self._counts.clear()
        meta = pod.metadata
        if meta.creation_timestamp != self._time or meta.uid in self._ended:
            return
        self._ended.add(meta.uid)
        workload = workload_of(pod)
        self._counts[workload] += 1
        count = self._counts[workload]
        if count <= PODS_MAX:
            return
        wanted = self.wanted(workload)
        if wanted is None or count <= PODS_MAX + 2 * wanted:
            return
        problem = (
            f"its pods are replaced without end: {count:,} were created and ended at {self._time}, "
            f"the last was Pod {pod.key}; a pod must run for some time"
        )
        raise InputError(self.source, problem, object_name=str(workload))


class AttemptLimit(Struct):
    """A Reporter that counts failed attempts at one instant, and forwards every record.

    `objects` returns the number of nodes and pods.
    """

    reporter: Reporter
    source: str
    objects: Callable[[], int]
    _now: Instant = -1
    _counts: dict[ObjectRef, int] = field(default_factory=dict)

    def report(self, record: Record) -> None:
        """Count the attempt if `record` is about a failed attempt; forward `record`.

        Raises InputError if the attempts of a pod fail without end.
        """
        if type(record) is PodUnschedulable:
            self._count(record)
        self.reporter.report(record)

    def _count(self, failed: PodUnschedulable) -> None:
        if failed.at != self._now:
            self._now = failed.at
            self._counts.clear()
        count = self._counts[failed.pod] = self._counts.get(failed.pod, 0) + 1
        if count <= ATTEMPTS_MAX or count <= ATTEMPTS_MAX + ATTEMPTS_PER_OBJECT * self.objects():
            return
        repeated = [f"Pod {pod.key}" for pod, number in self._counts.items() if 2 * number > count]
        rejected = f"; rejected by {', '.join(failed.plugins)}" if failed.plugins else ""
        problem = (
            f"{listed(repeated, _NAMED_MAX)}: scheduling fails without end at "
            f"{format_timestamp(failed.at)}, {count:,} times for Pod {failed.pod.key}{rejected}: "
            f"{failed.message}"
        )
        raise InputError(self.source, problem)


class EvictionLimit(Struct):
    """A Reporter that counts the evictions within a minute, and forwards every record.

    `workload` returns the workload of a pod, None if it is unknown. `pods` returns the number of
    pods that a workload should have. If this number is not known, `pods` returns the number of
    existing pods, except pods that are being replaced. `pods` is called once per minute, workload
    and reason, and only after EVICTIONS_MAX evictions.
    """

    reporter: Reporter
    source: str
    workload: Callable[[ObjectRef], WorkloadRef | None]
    pods: Callable[[WorkloadRef], int]
    _minute: int = -1
    _counts: Counter[tuple[WorkloadRef, str]] = field(default_factory=Counter)
    _limits: dict[tuple[WorkloadRef, str], int] = field(default_factory=dict)
    _now: Instant = -1
    _counts_now: Counter[tuple[WorkloadRef, str]] = field(default_factory=Counter)  # at `_now`

    def report(self, record: Record) -> None:
        """Forward `record`; if it is about an eviction, count the eviction.

        Raises InputError if the pods of a workload are evicted and replaced without end.
        """
        self.reporter.report(record)
        if type(record) is PodEvicted:
            self._count(record)

    def _count(self, evicted: PodEvicted) -> None:
        workload = self.workload(evicted.pod)
        if workload is None:
            return
        if evicted.at // _MINUTE != self._minute:
            self._minute = evicted.at // _MINUTE
            self._counts.clear()
            self._limits.clear()
        if evicted.at != self._now:
            self._now = evicted.at
            self._counts_now.clear()
        key = workload, evicted.why
        self._counts[key] += 1
        self._counts_now[key] += 1
        count = self._counts[key]
        if count == EVICTIONS_MAX:
            pods = self.pods(workload) + self._counts_now[key]
            self._limits[key] = EVICTIONS_MAX + EVICTIONS_PER_POD * pods
        if count <= self._limits.get(key, EVICTIONS_MAX):
            return
        problem = (
            f"its pods are evicted and replaced without end: {count:,} evictions within a minute "
            f"of virtual time, up to {format_timestamp(evicted.at)}: {evicted.why}"
        )
        raise InputError(self.source, problem, object_name=str(workload))


def livelock_error(source: str, cause: LivelockError) -> InputError:
    """Return the error for the simulation `source`, in which time stands still because of `cause`.

    The message names the object that changed most often.
    """
    repeated = Counter(_subjects(cause.history)).most_common(1)
    what = f"; the object that changed most often is {repeated[0][0]}" if repeated else ""
    time = format_timestamp(cause.now)
    problem = (
        f"the simulation does not advance beyond {time}, even after {cause.steps:,} steps{what}"
    )
    return InputError(source, problem)


def _subjects(history: Iterable[Stimulus | None]) -> Iterable[str]:
    for one in history:
        if isinstance(one, ObjectChanged | ObjectDeleted):
            namespace, name = one.object.metadata.namespace, one.object.metadata.name
            yield f"{type(one.object).__name__} {'/'.join(filter(None, (namespace, name)))}"
