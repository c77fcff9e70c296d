"""Finds rollouts of Deployments that exceed `progressDeadlineSeconds` during a run.

A rollout makes progress when a new pod is created, an old pod ends, or a pod becomes ready or
available. If a rollout makes no progress for `progressDeadlineSeconds`, the Deployment gets the
condition Progressing=False with the reason ProgressDeadlineExceeded. The rollout continues anyway.

Only rollouts that begin in the run count. A Deployment whose rollout is complete has no deadline,
even if its pods are replaced or its size changes later.

upstream: pkg/controller/deployment/progress.go: syncRolloutStatus,
util/deployment_util.go: DeploymentComplete, DeploymentProgressing, DeploymentTimedOut
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from fairlead.api.codec import decode_as
from fairlead.api.objects import Deployment
from fairlead.api.text.integer import parse_int64
from fairlead.api.text.name_list import listed
from fairlead.apiserver.kind import DEPLOYMENT, REPLICA_SET
from fairlead.apiserver.registry.store import Store
from fairlead.engine.core.instant import Instant, seconds
from fairlead.engine.workloads.deployment.progress import has_deadline
from fairlead.engine.workloads.deployment.revision import REVISION
from fairlead.whatif.input.duration import for_readers
from fairlead.whatif.outcome.run_outcome import ObjectError
from fairlead.whatif.outcome.workload import WorkloadRef, revision_in
from fairlead.whatif.run.recorders.workload_recorder import PodTransition, Step
from fairlead.whatif.snapshot.manifest import Manifest
from fairlead.whatif.snapshot.samples import samples

_NAMES_MAX: Final = 3
# Members that are read often (STYLE.md, rule 19).
_CREATED: Final = Step.CREATED
_LEFT: Final = Step.LEFT


class RolloutHistory(Struct, frozen=True):
    """What happened to the pods of Deployments in a run from `since` to `until`."""

    store: Store  # the objects at the end
    initial: Sequence[Manifest]  # the objects at the start
    # The transitions of each Deployment in order of time.
    transitions: Mapping[WorkloadRef, Sequence[PodTransition]]
    # The number of pods at the end, by revision of each Deployment, without ended and terminating
    # pods.
    live: Mapping[WorkloadRef, Mapping[str, int]]
    errors: Sequence[ObjectError]  # names the pods that could not be created
    since: Instant
    until: Instant
    settled: bool  # whether nothing changes after `until`


def deployment_transitions(
    transitions: Iterable[PodTransition],
) -> dict[WorkloadRef, list[PodTransition]]:
    """Return the `transitions` of the pods of Deployments, by Deployment."""
    found: dict[WorkloadRef, list[PodTransition]] = defaultdict(list)
    for one in transitions:
        if one.workload.kind == DEPLOYMENT.kind:
            found[one.workload].append(one)
    return found


def deadline_note(run: RolloutHistory) -> str:
    """Return a note about the rollouts in `run` that exceed their deadline, or ""."""
    found = {ref: at for ref, at in _exceeded(run) if at is not None}
    if not found:
        return ""
    first, names = min(found.values()), listed([str(ref) for ref in found], _NAMES_MAX)
    one = len(found) == 1
    return (
        f"The {'rollout' if one else 'rollouts'} of {names} {'exceeds' if one else 'exceed'} "
        f"progressDeadlineSeconds {'' if one else 'for the first time '}after "
        f"{for_readers(first - run.since)}: the condition Progressing becomes False "
        "(ProgressDeadlineExceeded), and kubectl rollout status fails. The controller neither "
        "stops nor undoes the rollout."
    )


def _exceeded(run: RolloutHistory) -> Iterator[tuple[WorkloadRef, Instant | None]]:
    """Yield (Deployment, time at which it exceeds its progress deadline) for each new rollout.

    The time is None if the rollout never exceeds the deadline.
    """
    for ref, revision in sorted(_begun(run).items()):
        stored = run.store.find(DEPLOYMENT, ref.namespace, ref.name)
        deployment = None if stored is None else decode_as(Deployment, stored)
        if deployment is None or deployment.spec.paused or not has_deadline(deployment):
            continue
        yield ref, _time_of_excess(run, ref, revision, deployment)


def _begun(run: RolloutHistory) -> dict[WorkloadRef, str]:
    """Return the newest revision of each Deployment whose rollout begins in `run`."""
    begun = [one for one in _created(run) if not _initial_pods(run, *one)[0]]
    deployments = {ref for ref, _ in begun}
    known = dict(_initial_revisions(run.initial, deployments)) if begun else {}
    return {ref: revision for ref, revision in begun if known.get(ref) != revision}


def _created(run: RolloutHistory) -> Iterator[tuple[WorkloadRef, str]]:
    """Yield the revisions whose first pod is created in `run`, or whose pods are refused.

    The revisions of a Deployment are in order of time. This function does not know the pods from
    before the run. So an old revision is yielded, too, if one of its pods is created in `run`, for
    example to replace an evicted pod.
    """
    for ref, transitions in run.transitions.items():
        first: dict[str, Instant] = {}
        for one in transitions:
            if one.step is _CREATED:
                first.setdefault(one.revision, one.at)
        yield from ((ref, revision) for revision, at in first.items() if at >= run.since)
    for error in run.errors:
        owner = error.workload
        is_deployment = owner is not None and owner.kind == DEPLOYMENT.kind
        if owner is not None and is_deployment and error.missing and error.revision:
            yield owner, error.revision


def _initial_pods(run: RolloutHistory, ref: WorkloadRef, revision: str) -> tuple[int, int]:
    """Return how many pods of `revision`, and how many of other revisions, existed at the start."""
    counts = Counter[bool]()
    for other, number in run.live.get(ref, {}).items():
        counts[other == revision] += number
    for one in run.transitions.get(ref, ()):
        created, left = one.step is _CREATED, one.step is _LEFT
        counts[one.revision == revision] += left - created
    return counts[True], counts[False]


def _initial_revisions(
    initial: Iterable[Manifest], deployments: Collection[WorkloadRef]
) -> Iterator[tuple[WorkloadRef, str]]:
    """Yield the newest revision of each of `deployments` among the ReplicaSets in `initial`."""
    newest: dict[WorkloadRef, tuple[int, str]] = {}
    for one in samples(initial):
        if one.kind is not REPLICA_SET or one.controller is None:
            continue
        ref = WorkloadRef(DEPLOYMENT.kind, one.ref.namespace, one.controller.name)
        if ref in deployments:
            meta = one.value["metadata"]
            rank = parse_int64(str((meta.get("annotations") or {}).get(REVISION, ""))) or 0
            found = rank, revision_in(meta.get("labels") or {})
            newest[ref] = max(newest.get(ref, found), found)
    yield from ((ref, revision) for ref, (_, revision) in newest.items())


class _Replay(Struct):
    """The numbers of pods of a Deployment during the rollout of a revision.

    `new` is the number of pods of this revision. `ready` is the number of these pods that are
    ready. `old` is the number of pods of other revisions.
    """

    old: int
    new: int = 0
    ready: int = 0

    @property
    def has_only_ready(self) -> bool:
        """Whether all pods are of the new revision and ready."""
        return not self.old and self.new == self.ready

    def add(self, one: PodTransition, revision: str) -> bool:
        """Add a transition; return whether the rollout makes progress."""
        is_new = one.revision == revision
        change = (one.step is _CREATED) - (one.step is _LEFT)
        self.new += change * is_new
        self.old += change * (not is_new)
        self.ready += ((one.step is Step.READY) - (one.step is Step.UNREADY)) * is_new
        return one.step is Step.READY or change == (1 if is_new else -1)


def _time_of_excess(
    run: RolloutHistory, ref: WorkloadRef, revision: str, deployment: Deployment
) -> Instant | None:
    """Return when the rollout exceeds its progress deadline; None if this never happens.

    A rollout is complete if at the end of an instant all pods are of the new revision and ready.
    The number of pods is not compared with the replicas at the end of the run, because an
    autoscaler or a user may change the replicas before the end. The comparison is not needed,
    because the controllers create all missing pods at once. At the end of an instant, only refused
    pods are missing.
    """
    spec, wanted = deployment.spec, deployment.spec.replicas
    has_all = not any(one.workload == ref and one.missing for one in run.errors)
    late, available_after = seconds(spec.progress_deadline_seconds), seconds(spec.min_ready_seconds)
    replay = _Replay(_initial_pods(run, ref, revision)[1])
    last: Instant | None = None
    before = run.since
    for one in run.transitions.get(ref, ()):
        if has_all and one.at > before and replay.has_only_ready:
            return None
        before = one.at
        makes_progress = replay.add(one, revision)
        if last is None:
            if one.step is not _CREATED or one.revision != revision:
                continue
            last = one.at
        if one.at - last > late:
            return last + late
        if makes_progress:
            last = max(last, one.at + available_after * (one.step is Step.READY))
        if replay.has_only_ready and replay.new == wanted:
            return None
    if has_all and replay.has_only_ready:
        return None
    last = run.since if last is None else last
    return last + late if run.settled or run.until - last > late else None
