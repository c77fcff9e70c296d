"""Runtimes: how long pods run until they complete, from a dump's completed pods or a file.

A completed pod of the dump ran from status.startTime until its last container finished. Its runtime
is used for pods of the same owner and for pods of the same template. If the owner is a Job of a
CronJob, the CronJob counts as the owner. Pods that restart forever (restartPolicy Always) are
ignored. Pods with a `status.reason` other than DeadlineExceeded, such as Evicted, are also ignored.

The remaining runtime of a pod that has run for `age` is drawn from the runtimes above `age`:

    runtimes 10m 20m 30m, age 15m    ->    20m or 30m in total, 5m or 15m from now

If no runtime is above `age`, the end of the pod is unknown.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Final, TypeVar
from zlib import crc32

from msgspec import Struct, field

from fairlead.api.objects import Pod
from fairlead.api.pods.facts import is_daemon_pod, is_static, is_terminal, is_terminating
from fairlead.api.timestamp import parse_timestamp
from fairlead.apiserver.kind import POD
from fairlead.engine.core.instant import DurationNs, Instant
from fairlead.whatif.input.seeded_choice import draws
from fairlead.whatif.outcome.workload import WorkloadRef, workload_of
from fairlead.whatif.snapshot.manifest import Manifest, ReplicaManifests, entries_of

# The number of this purpose in `seeded_choice`: random runtimes. Arrivals and node selection have
# other numbers, so their random choices are independent of the runtimes.
_PURPOSE: Final = 1 << 42
_ALWAYS: Final = "Always"
_DEADLINE: Final = "DeadlineExceeded"

Key = TypeVar("Key")
Durations = tuple[DurationNs, ...]
Template = tuple[str, str, tuple[tuple[str, tuple[tuple[str, str], ...]], ...]]


class StatedRuntime(Struct, frozen=True, kw_only=True):
    """Runtimes from a file, sorted, for the pods that `workload`, `image` or `label` selects.

    `workload` is `kind/namespace/name`, in which * matches any part of a name; `label` is (key,
    value). Only one of `workload`, `image` and `label` is given.
    """

    durations: Durations
    workload: str = ""
    image: str = ""
    label: tuple[str, str] = ("", "")

    @property
    def subject(self) -> str:
        """The selector as the file contains it."""
        return self.workload or self.image or "=".join(self.label)

    def matches(self, pod: Pod) -> bool:
        """Return whether the runtimes apply to `pod`."""
        if self.workload:
            ref = workload_of(pod)
            full = f"{ref.kind.lower()}/{ref.namespace}/{ref.name}"
            return fnmatchcase(str(ref), self.workload) or fnmatchcase(full, self.workload)
        if self.image:
            return any(one.image == self.image for one in pod.spec.containers)
        key, value = self.label
        return pod.metadata.labels.get(key) == value


class Runtimes(Struct, frozen=True):
    """The known runtimes.

    `stated` contains the runtimes from a file. `by_owner` and `by_template` contain the runtimes of
    completed pods. For each pod, the fields are searched in this order: `stated`, `by_owner`,
    `by_template`. The first match applies.
    """

    stated: tuple[StatedRuntime, ...] = ()
    by_owner: Mapping[WorkloadRef, Durations] = field(default_factory=dict)
    by_template: Mapping[Template, Durations] = field(default_factory=dict)

    @property
    def is_given(self) -> bool:
        """Whether any runtime is known."""
        return bool(self.stated or self.by_owner)

    def of(self, pod: Pod) -> Durations:
        """Return the runtimes that apply to `pod`, sorted; () if they are unknown."""
        for one in self.stated:
            if one.matches(pod):
                return one.durations
        if pod.spec.restart_policy == _ALWAYS:
            return ()
        return self.by_owner.get(workload_of(pod)) or self.by_template.get(_template(pod), ())

    def remaining(self, pod: Pod, now: Instant) -> Durations:
        """Return those runtimes of `pod` that are longer than its running time at `now`.

        The returned runtimes are unchanged: they count from the start of the pod, not from `now`.
        """
        known = self.of(pod)
        return known[bisect_right(known, _age(pod, now)) :]


class RuntimeDraw(Struct, frozen=True):
    """Draws a runtime for each pod; the kubelets call this object like a function.

    Equal seeds lead to equal runtimes. Pods that ran at `start` get a runtime longer than their
    age. `others` returns the time for pods without a known runtime.
    """

    runtimes: Runtimes
    start: Instant
    seed: int
    others: Callable[[Pod], DurationNs | None] | None = None

    def __call__(self, pod: Pod) -> DurationNs | None:
        """Return the time from the start of `pod` to its completion; None if it is unknown."""
        known = self.runtimes.remaining(pod, self.start)
        if not known:
            return None if self.others is None else self.others(pod)
        purpose = _PURPOSE ^ crc32(pod.key.encode())
        return known[next(draws(self.seed, purpose)) % len(known)]


class RuntimeCoverage(Struct, frozen=True):
    """How many pods run in a dump (`running`), and how many have a known runtime (`known`).

    `stated` is the number of pods whose known runtime comes from a file. Pods of DaemonSets and
    static pods are not counted. `longest` is the longest known runtime, 0 if there is none.
    """

    running: int = 0
    known: int = 0
    stated: int = 0
    longest: DurationNs = 0


def runtimes_in(manifests: Iterable[Manifest], stated: Iterable[StatedRuntime] = ()) -> Runtimes:
    """Return the runtimes in `stated`, and the runtimes of completed pods among `manifests`."""
    by_owner: dict[WorkloadRef, list[DurationNs]] = defaultdict(list)
    by_template: dict[Template, list[DurationNs]] = defaultdict(list)
    for entry in entries_of(manifests):
        if entry.kind is not POD:
            continue
        for pod in _pods_with_runtime(entry):
            took = _runtime(pod)
            if took is not None:
                by_owner[workload_of(pod)].append(took)
                by_template[_template(pod)].append(took)
    return Runtimes(tuple(stated), _sorted(by_owner), _sorted(by_template))


def _pods_with_runtime(entry: Manifest | ReplicaManifests) -> Iterable[Pod]:
    """Return the pods in `entry`; () for replicas that have not completed."""
    if isinstance(entry, ReplicaManifests):
        return entry.replicas if is_terminal(entry.replicas[0]) else ()
    return (entry.pod,)


def coverage(runtimes: Runtimes, manifests: Iterable[Manifest], now: Instant) -> RuntimeCoverage:
    """Return how many pods in `manifests` run at `now`, and for how many the runtime is known."""
    running = known = stated = 0
    for manifest in manifests:
        if manifest.kind is not POD:
            continue
        pod = manifest.pod
        if not _runs(pod):
            continue
        running += 1
        if runtimes.remaining(pod, now):
            known += 1
            stated += any(one.matches(pod) for one in runtimes.stated)
    lists = (
        *(one.durations for one in runtimes.stated),
        *runtimes.by_owner.values(),
    )
    return RuntimeCoverage(running, known, stated, max((one[-1] for one in lists), default=0))


def unmatched(runtimes: Runtimes, manifests: Iterable[Manifest]) -> list[StatedRuntime]:
    """Return the stated runtimes that match no pod among `manifests`."""
    pods = [one.pod for one in manifests if one.kind is POD] if runtimes.stated else []
    return [one for one in runtimes.stated if not any(map(one.matches, pods))]


def _runs(pod: Pod) -> bool:
    if is_terminal(pod) or is_terminating(pod) or is_daemon_pod(pod) or is_static(pod):
        return False
    return bool(pod.spec.node_name)


def _runtime(pod: Pod) -> DurationNs | None:
    """Return the runtime of the completed `pod`; None if the dump does not show it."""
    if not is_terminal(pod) or pod.spec.restart_policy == _ALWAYS:
        return None
    if pod.status.reason not in ("", _DEADLINE) or not pod.status.start_time:
        return None
    finished = [
        one.state.terminated.finished_at
        for one in pod.status.container_statuses
        if one.state.terminated is not None and one.state.terminated.finished_at
    ]
    if not finished:
        return None
    try:
        took = max(map(parse_timestamp, finished)) - parse_timestamp(pod.status.start_time)
    except ValueError:
        return None  # a malformed timestamp is refused when the object is loaded
    return took if took >= 0 else None


def _age(pod: Pod, now: Instant) -> DurationNs:
    """Return the time for which `pod` has run at `now`; -1 if it does not run."""
    if not pod.status.start_time or pod.status.phase != "Running":
        return -1
    try:
        started = parse_timestamp(pod.status.start_time)
    except ValueError:
        return -1
    return now - started if started <= now else -1


def _template(pod: Pod) -> Template:
    """Return a key of a pod's template: namespace, priority class, images and requests."""
    containers = tuple(
        (one.image, tuple(sorted((name, str(n)) for name, n in one.resources.requests.items())))
        for one in pod.spec.containers
    )
    return (pod.metadata.namespace, pod.spec.priority_class_name, containers)


def _sorted(found: Mapping[Key, list[DurationNs]]) -> dict[Key, Durations]:
    return {key: tuple(sorted(times)) for key, times in found.items()}
