"""GangRecorder: follows the members of gangs through a run and counts their outcomes.

`GangTally` defines the counts. A replacement of an evicted member counts as the same member.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from msgspec import Struct, field

from fairlead.api.objects import ApiObject, Pod, PodGroup
from fairlead.api.pods.facts import is_terminating
from fairlead.api.pods.original import original_name
from fairlead.api.pods.replicas import Replicas
from fairlead.api.pods.requests import pod_requests
from fairlead.engine.batch.info.group import group_info, group_name
from fairlead.engine.batch.info.queue import DEFAULT_QUEUE
from fairlead.engine.core.command import ObjectRef
from fairlead.engine.core.instant import DurationNs, Instant
from fairlead.engine.core.stimulus import ObjectChanged, ObjectDeleted, ObjectsLoaded, Stimulus
from fairlead.whatif.outcome.jobs import GangTally, GangWaits, IncompleteGang


class _Run(Struct):
    """A period in which a gang member runs; `until` is the time at which the member succeeded.

    `until` is None if the member has not succeeded.
    """

    began: Instant
    requests: dict[str, int]
    until: Instant | None = None


class _Gang(Struct):
    """The members of a gang, and their runs."""

    minimum: int = 0
    queue: str = ""
    created: Instant | None = None
    # The instant at which the number of running and succeeded members first reached `minimum`.
    started: Instant | None = None
    members: dict[str, None] = field(default_factory=dict)
    running: dict[str, _Run] = field(default_factory=dict)  # the runs of running pods by uid
    # The runs of succeeded pods by `original_name`.
    done: dict[str, _Run] = field(default_factory=dict)
    since: Instant = 0
    # The total time before `since` during which the gang was incomplete.
    incomplete_for: DurationNs = 0

    def note_start(self, now: Instant) -> None:
        """Set `started` to `now` if it is not set and the gang has reached its minimum."""
        if self.started is None and len(self.running) + len(self.done) >= self.minimum > 0:
            self.started = now

    @property
    def is_incomplete(self) -> bool:
        return 0 < len(self.running) < self.minimum - len(self.done)

    @property
    def is_finished(self) -> bool:
        if not self.minimum or len(self.done) < max(self.minimum, len(self.members)):
            return False
        ends = [run.until for run in self.done.values() if run.until is not None]
        return max(run.began for run in self.done.values()) <= min(ends)


class GangRecorder:
    """Observes pods and groups, and records preemptions."""

    def __init__(self) -> None:
        self._gangs: dict[str, _Gang] = {}
        self._gang_of: dict[str, _Gang] = {}  # {uid of a pod: its gang}
        self._touched: dict[str, _Gang] = {}
        self._touched_at: Instant = 0
        self._broken = 0
        self._lost: Counter[str] = Counter()
        self._incomplete: Counter[str] = Counter()

    # --- observing ----------------------------------------------------------------------

    def observe(self, stimulus: Stimulus, now: Instant) -> None:
        """Record the changes of pods and PodGroups in `stimulus`."""
        if type(stimulus) is ObjectChanged:
            self._record(stimulus.object, now)
        elif type(stimulus) is ObjectDeleted and type(stimulus.object) is Pod:
            self._leave(stimulus.object.metadata.uid, now)
        elif type(stimulus) is ObjectsLoaded:
            for some in stimulus.grouped:
                if not isinstance(some, Replicas):
                    self._record(some, now)
                elif group_name(some[0]):
                    for pod in some:
                        self._record(pod, now)

    def _record(self, found: ApiObject, now: Instant) -> None:
        if type(found) is Pod:
            name = group_name(found)
            if name:
                self._record_pod(found, self._gang(f"{found.metadata.namespace}/{name}"), now)
        elif type(found) is PodGroup:
            gang, info = self._gang(found.key), group_info(found)
            self._count(gang, now)  # until now, the earlier minimum counts
            gang.minimum, gang.queue = info.min_member, info.queue
            gang.created = now if gang.created is None else gang.created
            gang.note_start(now)

    def _gang(self, key: str) -> _Gang:
        return self._gangs.setdefault(key, _Gang())

    def _record_pod(self, pod: Pod, gang: _Gang, now: Instant) -> None:
        uid = pod.metadata.uid
        self._gang_of[uid] = gang
        gang.members[original_name(pod)] = None
        if pod.status.phase == "Succeeded":
            self._count(gang, now)
            run = gang.running.pop(uid, None)
            if run is not None:
                run.until = now
                gang.done[original_name(pod)] = run
        elif pod.status.phase == "Running" and not is_terminating(pod):
            if uid not in gang.running:
                self._count(gang, now)
                gang.running[uid] = _Run(now, dict(pod_requests(pod, existing=True)))
                gang.note_start(now)
        else:
            self._leave(uid, now)

    def _leave(self, uid: str, now: Instant) -> None:
        gang = self._gang_of.get(uid)
        if gang is not None and uid in gang.running:
            self._count(gang, now)
            del gang.running[uid]

    def preempted(self, victims: Iterable[ObjectRef], now: Instant) -> None:
        """Record that `victims` are preempted.

        `_count_broken` finds broken gangs later, when all victims of the instant are known.
        """
        self._count_broken(now)
        for ref in victims:
            gang = self._gang_of.get(ref.uid)
            run = None if gang is None else gang.running.get(ref.uid)
            if gang is None or run is None:
                continue
            self._count(gang, now)
            del gang.running[ref.uid]
            for resource, amount in run.requests.items():
                self._lost[resource] += amount * (now - run.began)
            self._touched[ref.uid] = gang

    def _count_broken(self, now: Instant) -> None:
        """Count the gangs that are incomplete because of preemptions before `now`.

        Preemptions at `now` itself are counted by the first call at a later instant, because more
        preemptions may follow at `now`.
        """
        if now > self._touched_at:
            broken = {id(g): g for g in self._touched.values() if g.is_incomplete}
            self._broken += len(broken)
            self._touched.clear()
            self._touched_at = now

    def _count(self, gang: _Gang, now: Instant) -> None:
        """If `gang` is incomplete, count the time since its last change, and its resource use.

        The resource use is the requests of the running members, multiplied by this time. A gang is
        incomplete while some, but too few, of its members run.
        """
        if gang.is_incomplete:
            gang.incomplete_for += now - gang.since
            for run in gang.running.values():
                for resource, amount in run.requests.items():
                    self._incomplete[resource] += amount * (now - gang.since)
        gang.since = now

    # --- result ---------------------------------------------------------------------------

    def tally(self, now: Instant) -> GangTally:
        """Return the counts over all gangs that need more than one member.

        The count `lost` is an exception: it also covers PodGroups that need just one member.
        """
        self._count_broken(now + 1)
        gangs = [gang for gang in self._gangs.values() if gang.minimum > 1]
        for gang in gangs:
            self._count(gang, now)
        return GangTally(
            gangs=len(gangs),
            finished=sum(gang.is_finished for gang in gangs),
            broken=self._broken,
            lost=_sorted(self._lost),
            incomplete=_sorted(self._incomplete),
            waits=tuple(_waits(gangs)),
            incomplete_now=tuple(
                IncompleteGang(key, key, len(gang.running) + len(gang.done), gang.minimum)
                for key, gang in sorted(self._gangs.items())
                if gang.is_incomplete
            ),
            incomplete_for={
                key: gang.incomplete_for
                for key, gang in sorted(self._gangs.items())
                if gang.incomplete_for
            },
        )


def _waits(gangs: Iterable[_Gang]) -> Iterator[GangWaits]:
    """Yield, for each queue, how long its gangs waited; sorted by queue."""
    by_queue: dict[str, list[_Gang]] = defaultdict(list)
    for gang in gangs:
        by_queue[gang.queue or DEFAULT_QUEUE].append(gang)
    for queue, its_gangs in sorted(by_queue.items()):
        waits = (
            one.started - one.created
            for one in its_gangs
            if one.started is not None and one.created is not None
        )
        yield GangWaits(queue, len(its_gangs), tuple(sorted(waits)))


def _sorted(amounts: Counter[str]) -> dict[str, int]:
    return {resource: amount for resource, amount in sorted(amounts.items()) if amount}
