"""Recorder: collects the outcome of a run while it happens.

The Recorder uses the controllers' reports (placements, preemptions and evictions, with reasons) and
the stimuli that the controllers receive (changes of objects).

    a pod in the counts:   pending (no node) -> running (has a node) -> over (ended or deleted)

A running pod counts as down while its node does not work. A terminating pod counts as over, because
its replacement is already counted.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from msgspec import Struct, field

from fairlead.api.lazy_dict import LazyDict
from fairlead.api.nodes.autoscaler_taint import DISRUPTED_TAINT
from fairlead.api.objects import (
    ApiObject,
    DaemonSet,
    Deployment,
    Job,
    Node,
    PersistentVolumeClaim,
    Pod,
    PodDisruptionBudget,
    PriorityClass,
    StatefulSet,
)
from fairlead.api.pods.facts import (
    condition,
    foreign_finalizers,
    is_daemon_pod,
    is_static,
    is_terminal,
    is_terminating,
    pod_priority,
)
from fairlead.api.pods.original import original_key
from fairlead.api.pods.replicas import Replicas
from fairlead.api.pods.requests import pod_requests
from fairlead.api.timestamp import parse_timestamp
from fairlead.engine.batch.info.group import group_name
from fairlead.engine.core.command import EvictPod, ObjectRef, RecordEvent
from fairlead.engine.core.instant import Instant, seconds
from fairlead.engine.core.reporter import (
    DisplacementCycle,
    EvictionCancelled,
    EvictionTimed,
    ExtenderIgnored,
    KubeletFlapped,
    NominationsWasted,
    PluginFailed,
    PodCollected,
    PodEvicted,
    PodPlaced,
    PodPreempting,
    PodUnschedulable,
    Record,
    WorkloadStarving,
)
from fairlead.engine.core.stimulus import (
    CommandFailed,
    ObjectChanged,
    ObjectDeleted,
    ObjectsLoaded,
    ReadinessChanged,
    Stimulus,
)
from fairlead.engine.loop_detector import cycle_text
from fairlead.engine.plugins.dynamic_resources.claims_of_pod import NOT_CREATED
from fairlead.engine.workloads.devices.resource_claims import CLAIM_REFUSED
from fairlead.engine.workloads.drain.protected_pod import (
    is_drained_by_karpenter,
    protects_from_karpenter,
)
from fairlead.engine.workloads.node_annotation import is_drain_requested
from fairlead.whatif.outcome.autoscaling.waiting_time import PodWait
from fairlead.whatif.outcome.eviction import EVICTION_API_REASONS, NODE_REMOVAL_REASONS
from fairlead.whatif.outcome.run_outcome import (
    PROTECTED_BY,
    STARVING,
    UNSTOPPED,
    WASTED,
    ClusterHistory,
    DeletedPod,
    Evicted,
    PodEnd,
    Preempted,
    Recurrence,
    Undrained,
    UndrainedCause,
)
from fairlead.whatif.outcome.workload import WorkloadRef, workload_of
from fairlead.whatif.run.pod_timing.stuck_pod import stuck_words
from fairlead.whatif.run.recorders.budget_recorder import BudgetRecorder
from fairlead.whatif.run.recorders.claim_recorder import ClaimRecorder
from fairlead.whatif.run.recorders.cluster_history_recorder import ClusterHistoryRecorder
from fairlead.whatif.run.recorders.drain_recorder import DrainRecorder
from fairlead.whatif.run.recorders.kept_ends import KeptEnds, listed
from fairlead.whatif.run.recorders.loaded_tracks import LoadedTracks
from fairlead.whatif.run.recorders.outage_recorder import OutageRecorder
from fairlead.whatif.run.recorders.pause_recorder import PauseRecorder
from fairlead.whatif.run.recorders.pod_count_recorder import PENDING, RUNNING, PodCountRecorder
from fairlead.whatif.run.recorders.pod_track import (
    OVER,
    OwnerFacts,
    PodTrack,
    is_disrupted,
    is_in_same_state,
    state_of,
)
from fairlead.whatif.run.recorders.rejection_recorder import RejectionRecorder
from fairlead.whatif.run.recorders.workload_recorder import WorkloadRecorder

# upstream: pkg/controller/volume/attachdetach/reconciler/reconciler.go: reportMultiAttachError
MULTI_ATTACH = "Multi-Attach error: volume is already used by pod(s) {} on {}"
_CREATE_FAILURE_REASONS = ("FailedCreate", "ReplicaSetCreateError")


def requests_of_pod(pod: Pod) -> Mapping[str, int]:
    """Return the requests of `pod`; an in-place resize is considered only if the pod has a node."""
    return pod_requests(pod, existing=bool(pod.spec.node_name))


def _unknown(replicas: Replicas, index: int) -> PodTrack:
    raise LookupError(replicas.keys[index])


def _is_drained_by_karpenter(node: Node) -> bool:
    """Return whether Karpenter drains `node`.

    A simulated Karpenter deletes the Node only after the drain. During the drain, the Node has the
    disruption taint.
    """
    return is_drained_by_karpenter(node) or any(
        taint.key == DISRUPTED_TAINT for taint in node.spec.taints
    )


class Recorder(Struct):
    """A Reporter that also observes stimuli; `now` is the time of the last stimulus or deadline."""

    now: Instant
    preempted: list[Preempted] = field(default_factory=list)
    evicted: list[Evicted] = field(default_factory=list)
    choices: int = 0
    errors: dict[str, str] = field(default_factory=dict)  # {object: message}
    # {URL of an extender: (first message, number) of the failed calls that were ignored}
    ignored_calls: dict[str, tuple[str, int]] = field(default_factory=dict)
    recurrences: list[Recurrence] = field(default_factory=list)
    rejections: RejectionRecorder = field(default_factory=RejectionRecorder)
    outage: OutageRecorder = field(default_factory=OutageRecorder)
    drains: DrainRecorder = field(default_factory=DrainRecorder)
    pauses: PauseRecorder = field(default_factory=PauseRecorder)
    workloads: WorkloadRecorder = field(default_factory=WorkloadRecorder)
    history: ClusterHistoryRecorder = field(default_factory=ClusterHistoryRecorder)
    touched: set[str] = field(default_factory=set)  # keys of the pods that changed after loading
    # {key: pod that was on a node when the node was deleted}
    on_deleted_nodes: dict[str, PodEnd] = field(default_factory=dict)
    priority_names: dict[int, str] = field(default_factory=dict)
    requests_of: Callable[[Pod], Mapping[str, int]] = field(default=requests_of_pod)
    # (pod, instant from which it waited, instant of its binding)
    _bound: list[tuple[Pod, Instant, Instant]] = field(default_factory=list)
    _tracks: LazyDict[PodTrack] = field(
        default_factory=lambda: LazyDict(_unknown)
    )  # {key: track of an existing pod}
    _known: LazyDict[PodTrack] = field(
        default_factory=lambda: LazyDict(_unknown)
    )  # {uid: track of a pod that exists or existed}
    _first_starts: dict[str, Instant] = field(default_factory=dict)  # by original key
    _loaded: dict[int, LoadedTracks] = field(default_factory=dict)  # by id of the replicas
    # (instant of the deletion, end) of each pod that was deleted after it had completed
    _completed: list[tuple[Instant, PodEnd]] = field(default_factory=list)
    # Pods that were deleted before they completed, and that no node could take for a time
    _deleted_after_wait: list[DeletedPod] = field(default_factory=list)
    # (instant of the failure, Job, message) of each Job that was deleted after it had failed
    _failed_jobs: list[tuple[Instant, str, str]] = field(default_factory=list)
    _leaving: set[str] = field(default_factory=set)  # uids of displaced pods; never iterated
    # {key: track of the last pod with this key whose eviction was refused}
    _refused: dict[str, PodTrack] = field(default_factory=dict)
    counts: PodCountRecorder = field(default_factory=PodCountRecorder)
    _kept: KeptEnds | None = None
    _like: OwnerFacts | None = None  # of the last pod whose PodEnd was made
    # Keys of the pods that were created, changed or deleted since `keep_ends`. The order of an
    # iteration never matters.
    _changed: set[str] = field(default_factory=set)
    budgets: BudgetRecorder = field(default_factory=BudgetRecorder)
    claims: ClaimRecorder = field(default_factory=ClaimRecorder)

    def __post_init__(self) -> None:
        """Set the function that creates the PodTrack of a loaded pod when it is first read."""
        self._tracks.make = self._known.make = self._loaded_track

    # --- reports ------------------------------------------------------------------

    def report(self, record: Record) -> None:
        """Add the content of `record` to the outcome of the run."""
        # The most frequent records come first.
        if type(record) is PodUnschedulable:
            self._on_unschedulable(record)
            return
        if type(record) is PodPlaced:
            self.choices += record.equals > 1
            return
        if type(record) is KubeletFlapped:
            self._on_flapped(record)
            return
        timer = self.outage.timers.get(record.pod.uid) if type(record) is PodEvicted else None
        self.outage.report(record)
        if type(record) is PodEvicted:
            # A drain can evict the pod before the toleration expires.
            is_expired = timer is not None and timer.due <= record.at
            tolerated_s = timer.tolerated_s if timer is not None and is_expired else None
            self._on_evicted(
                record, tolerated_s, respects_budgets=record.why in EVICTION_API_REASONS
            )
        elif type(record) is not EvictionTimed and type(record) is not EvictionCancelled:
            self._on_rare(record)

    def _on_rare(self, record: Record) -> None:
        match record:
            case PodPreempting():
                self._on_preempting(record)
            case PodCollected():
                self._on_collected(record)
            case DisplacementCycle() | WorkloadStarving() | NominationsWasted():
                self.recurrences.append(self._recurrence(record))
            case PluginFailed(plugin=plugin, point=point, message=message):
                self.errors.setdefault(f"plugin {plugin} ({point})", message)
            case ExtenderIgnored(url=url, message=message):
                first, times = self.ignored_calls.get(url, (message, 0))
                self.ignored_calls[url] = (first, times + 1)

    def _on_unschedulable(self, record: PodUnschedulable) -> None:
        # A starting node refuses pods for a microsecond. That is not why the pods wait.
        key = record.pod.key
        track = self._tracks.get(key)
        if track and not (track.reason and self.outage.starting):
            track.reason, track.end = record.message, None
            self._changed.add(key)

    def _on_flapped(self, record: KubeletFlapped) -> None:
        """Record the readiness of pods whose machine stopped, or runs again."""
        name, self.now = record.node, record.at
        before = self.outage.is_serving(name)
        self.outage.report(record)
        self._observe_serving(name, before=before)
        if node := self.outage.nodes.get(name):
            is_serving = self.outage.is_serving(name)
            self.history.update_node(node, self.now, is_serving=is_serving)

    def _observe_serving(self, node: str, *, before: bool) -> None:
        """Record the readiness of the pods of `node` if it started or stopped working.

        `before` tells whether the node worked before.
        """
        after = self.outage.is_serving(node)
        if before != after:
            self._record_serving(self.outage.pods_on(node), is_serving=after)

    def _record_serving(self, pods: Collection[Pod], *, is_serving: bool) -> None:
        """Record that the node of `pods` stopped or started working."""
        self.workloads.node_changed(pods, self.now, is_serving=is_serving)
        running = [pod for pod in pods if state_of(pod) == RUNNING]
        self.counts.node_changed(running, self.now, is_serving=is_serving)

    def _recurrence(
        self, record: DisplacementCycle | WorkloadStarving | NominationsWasted
    ) -> Recurrence:
        if isinstance(record, DisplacementCycle):
            workloads = tuple(sorted(record.workloads))
            return Recurrence("cycle", cycle_text(record), record.at, cycle=workloads)
        track = self._tracks.get(record.pod.key)
        workload = None if track is None else workload_of(track.pod)
        if isinstance(record, NominationsWasted):
            message = (
                f"preemption made room for pod {record.pod.key} {record.times:,} times in a row, "
                "but the pod did not get this room: other pods took it, or another node had room "
                "sooner"
            )
            return Recurrence(WASTED, message, record.at, workload)
        message = f"pods of {workload or record.workload} have been displaced {record.times} times"
        return Recurrence(STARVING, message, record.at, workload, record.times)

    def explain_waiting(self, why: Callable[[Pod], str]) -> None:
        """For each pending pod without a recorded reason, record the reason that `why` returns.

        A later call replaces a reason that came from `why`, because the pod's status may have
        changed.
        """
        if not self.counts.has_pending():
            return
        for _, track in self._tracks.made():  # a loaded pod without a track runs
            if track.state != PENDING or track.reason:
                continue
            explanation = why(track.pod)
            if explanation != track.explanation:
                track.explanation = explanation
                self._outdate(track)

    def hold_up(self, holders: Mapping[str, str]) -> None:
        """Mark the pods that wait for volumes.

        `holders` maps the key of each waiting pod to the key of the pod that holds its volume.
        """
        for key, holder in sorted(holders.items()):
            track, other = self._tracks.get(key), self._tracks.get(holder)
            if track is not None and other is not None:
                track.awaits_volume_detachment = True
                track.reason = MULTI_ATTACH.format(holder, other.pod.spec.node_name)
                self._outdate(track)

    def _on_preempting(self, record: PodPreempting) -> None:
        """Record the victims; victims that were already terminating are not counted again."""
        self.choices += record.equals > 1
        by = self._end(record.pod)
        victims = [ref for ref in record.victims if ref.uid not in self._leaving]
        self._leaving.update(ref.uid for ref in victims)
        for ref in victims:
            victim = self._end(ref)
            self.preempted.append(
                Preempted(
                    pod=victim,
                    node=victim.node or record.node,  # a plugin may choose victims on other nodes
                    at=record.at,
                    by=by.key,
                    by_priority=by.priority,
                    rule=record.rule,
                    candidates=record.candidates,
                    by_workload=by.workload,
                )
            )
            self._leave_budgets(ref)
            self.counts.preempted(victim.priority, self.now)
        pods = [self._known[ref.uid].pod for ref in victims if ref.uid in self._known]
        if record.pdb_violations is None:
            for pod in pods:
                self.budgets.evicted(pod, by.key, record.at)
        else:  # even without violations: the scheduler ignores budgets with an empty selector
            self.budgets.preempted(pods, by.key, record.at)

    def _leave_budgets(self, ref: ObjectRef) -> None:
        if track := self._known.get(ref.uid):
            self.budgets.displaced(track.pod, self.now)

    def evicted_within_budgets(self, record: PodEvicted) -> None:
        """Record an eviction that a step made and that the budgets allowed."""
        self._on_evicted(record, None, respects_budgets=True)

    def _on_evicted(
        self, record: PodEvicted, tolerated_s: int | None, *, respects_budgets: bool
    ) -> None:
        """Record an eviction, unless the pod has completed.

        `respects_budgets` states whether the eviction respected the budgets. The eviction of a
        DaemonSet pod is not recorded if its reason is one of NODE_REMOVAL_REASONS.
        """
        track = self._known.get(record.pod.uid)
        if track is not None and is_terminal(track.pod):
            return
        if track is not None and record.why in NODE_REMOVAL_REASONS and is_daemon_pod(track.pod):
            return
        self._leaving.add(record.pod.uid)
        pod = self._end(record.pod)
        self.evicted.append(
            Evicted(
                pod=pod,
                node=record.node,
                at=record.at,
                why=record.why,
                tolerated_s=tolerated_s,
            )
        )
        if track is not None and not respects_budgets:
            self.budgets.evicted(track.pod, record.why, record.at)
        self._leave_budgets(record.pod)
        self.counts.evicted(pod.priority, self.now)

    def _on_collected(self, record: PodCollected) -> None:
        """Record that pod garbage collection deletes a pod.

        Pods of DaemonSets, completed pods and terminating pods are ignored.
        """
        track = self._known.get(record.pod.uid)
        if track is None or state_of(track.pod) == OVER or is_daemon_pod(track.pod):
            return
        self.budgets.collected(track.pod, record.at)
        self._leave_budgets(record.pod)

    def observe_event(self, event: RecordEvent) -> None:
        """Record `event` if it reports the failure of a controller.

        Only the last failure of an object is kept. If the creation of a pod's ResourceClaim is
        refused, the refusal is recorded as the reason why the pod is pending.
        """
        if event.reason in _CREATE_FAILURE_REASONS:
            self.errors[f"{event.regarding.kind} {event.regarding.key}"] = event.note
        elif event.reason == CLAIM_REFUSED and (track := self._tracks.get(event.regarding.key)):
            why = event.note.partition(" is forbidden: ")[2] or event.note
            track.reason = f"{NOT_CREATED}: {why}"
            self._outdate(track)

    # --- stimuli ---------------------------------------------------------------------

    def begin(self, now: Instant) -> None:
        """Set the time for the next calls of `report`.

        This method is called instead of `observe` for a stimulus that contains nothing to record.
        """
        self.now = self.outage.now = now

    def observe(self, stimulus: Stimulus, now: Instant) -> None:
        """Record a stimulus before the controllers handle it."""
        self.now = self.outage.now = now
        if type(stimulus) is ObjectChanged or type(stimulus) is ReadinessChanged:
            changed = stimulus.object
            if type(changed) is Pod:
                self._observe_pod(stimulus, changed)
            elif type(changed) is Node:
                self._observe_node(stimulus, changed)
            else:
                self._record(changed)
            return
        match stimulus:
            case ObjectDeleted(gone):
                self._observe_deleted(stimulus, gone)
            case ObjectsLoaded():
                self.outage.observe(stimulus, now)
                self._load(stimulus)
            case CommandFailed(EvictPod(pod=ref), _, message):
                if track := self._known.get(ref.uid):
                    track.refusal = message
                    self._refused[track.pod.key] = track
                    self.budgets.refused(track.pod, now)

    def _observe_pod(self, changed: ObjectChanged, pod: Pod) -> None:
        self.touched.add(original_key(pod))
        if type(changed) is ReadinessChanged:
            before = self.outage.pods.get(pod.metadata.uid)
            if before is not None:
                self._observe_readiness(before, pod)
                return
        key = pod.key
        known = self._tracks.get(key)
        if known is not None and is_in_same_state(known.pod, pod):
            self._observe_conditions(pod, key, known)
            return
        # The transitions depend on the previous version of the pod, which `_record_pod` replaces.
        is_same = known is not None and known.pod.metadata.uid == pod.metadata.uid
        before = known.pod if known is not None and is_same else None
        is_serving = self.outage.is_serving(pod.spec.node_name)
        self.workloads.pod_changed(before, pod, self.now, is_serving=is_serving)
        self.outage.observe(changed, self.now)
        self._record_pod(pod, key, known)

    def _observe_node(self, changed: ObjectChanged, node: Node) -> None:
        """Record a changed node, and the readiness of its pods if it starts or stops working."""
        name = node.metadata.name
        before = name in self.outage.nodes and self.outage.is_serving(name)
        self.outage.observe(changed, self.now)
        self._observe_serving(name, before=before)
        self._record_node(node)

    def _observe_deleted(self, deleted: ObjectDeleted, gone: ApiObject) -> None:
        match gone:
            case Pod():
                self.touched.add(original_key(gone))
                self.workloads.pod_changed(gone, None, self.now, is_serving=False)
            case Node():
                pods = self.outage.pods_on(gone.metadata.name)
                self.touched.update(map(original_key, pods))
                ends = self.pods_on((gone.metadata.name,))
                self.on_deleted_nodes.update((end.key, end) for end in ends)
                self._record_serving(pods, is_serving=False)
        self.outage.observe(deleted, self.now)
        self._forget(gone)

    def _observe_readiness(self, before: Pod, pod: Pod) -> None:
        """Record `pod`, a new version of `before` with the same node and state."""
        is_serving = self.outage.is_serving(pod.spec.node_name)
        self.workloads.readiness_changed(before, pod, self.now, is_serving=is_serving)
        self.outage.replace_pod(before, pod)

    def _observe_conditions(self, one: Pod, key: str, track: PodTrack) -> None:
        """Record that the status of `one`, whose key is `key`, has changed, but not its phase.

        `track` is the PodTrack of the pod.
        """
        # The readiness in `track.pod` may be out of date, because `_observe_readiness` keeps it.
        self._observe_readiness(self.outage.pods[one.metadata.uid], one)
        track.pod, track.end = one, None
        self._changed.add(key)
        occupied = "" if is_terminal(one) else one.spec.node_name
        self.history.place(one.metadata.uid, occupied, self.now)

    def _load(self, loaded: ObjectsLoaded) -> None:
        """Record the objects of a snapshot, and sample the pod counts of each priority once."""
        self.counts.begin_load()
        self.history.is_loading = True
        down = self.outage.nodes_down()
        for some in loaded.grouped:
            if isinstance(some, Replicas):
                self._load_replicas(some, down)
            else:
                self._record(some)
                self.claims.load(some)
        self.history.is_loading = False
        # The pods of a group have the same labels, so one of them is enough.
        groups = (one[0] if isinstance(one, Replicas) else one for one in loaded.grouped)
        self.budgets.load(one for one in groups if isinstance(one, Pod))
        self.counts.end_load(self.now)

    def _record(self, changed: ApiObject) -> None:
        kind = type(changed)  # the most frequent classes come first
        if type(changed) is PodDisruptionBudget:
            self.budgets.observe(changed, self.now)
        elif type(changed) is Pod:
            self._record_pod(changed, changed.key, self._tracks.get(changed.key))
        elif type(changed) is Node:
            self._record_node(changed)
        elif kind is Deployment or kind is StatefulSet or kind is DaemonSet:
            self.pauses.observe(changed)
        elif type(changed) is PersistentVolumeClaim:
            if not self.history.is_loading:
                self.claims.observe(changed, self.now)
        elif type(changed) is PriorityClass:
            self.priority_names.setdefault(changed.value, changed.metadata.name)

    def _record_node(self, node: Node) -> None:
        self.drains.observe(node, self.now)
        self.pauses.observe(node)
        is_serving = self.outage.is_serving(node.metadata.name)
        self.history.update_node(node, self.now, is_serving=is_serving)

    def _forget(self, gone: ApiObject) -> None:
        if type(gone) is Pod:
            self._forget_pod(gone)
            return
        match gone:
            case Node():
                self.history.delete_node(gone, self.now)
            case PodDisruptionBudget():
                self.budgets.forget(gone)
            case PersistentVolumeClaim():
                self.claims.forget(gone, self.now)
            case Job():
                self._forget_job(gone)

    def _forget_job(self, job: Job) -> None:
        """Add the deleted `job` to `_failed_jobs` if it had failed during this run.

        A CronJob deletes its oldest Jobs if there are more Jobs than its history limit allows.
        """
        failed = condition(job, "Failed")
        # A condition without a time is not from this run.
        if failed is not None and failed.status == "True" and failed.last_transition_time:
            at = parse_timestamp(failed.last_transition_time)
            self._failed_jobs.append((at, f"Job {job.key}", f"{failed.message} ({failed.reason})"))

    def _record_pod(self, pod: Pod, key: str, known: PodTrack | None) -> None:
        """Record the changed `pod`, whose key is `key`.

        `known` is the PodTrack that is stored under this key, None if there is none.
        """
        if known is not None and known.pod.metadata.uid == pod.metadata.uid:
            track = known
            track.pod, track.end = pod, None
            self._changed.add(key)
        else:
            self._leave(known)
            if known is not None:
                self.history.place(known.pod.metadata.uid, "", self.now)
            track = self._tracks[key] = PodTrack(
                pod, pending_since=self._created(pod), is_initial=self.history.is_loading
            )
            self._known[pod.metadata.uid] = track
            self._changed.add(key)
        self._enter(track, state_of(pod))
        has_ended = is_terminal(pod)
        occupied = "" if has_ended else pod.spec.node_name
        self.history.place(pod.metadata.uid, occupied, self.now)
        if track.started_at is None and pod.status.phase == "Running":
            track.started_at = self.now
            # A replacement has the same original key, so it keeps the first start of the chain.
            track.first_started_at = self._first_starts.setdefault(original_key(pod), self.now)
        if self.history.is_loading:
            track.ended_before = has_ended
        elif has_ended and track.ended_at is None and not track.ended_before:
            track.ended_at = self.now
            self.rejections.observe_failed(pod, self.now)
            track.is_stopped = is_terminating(pod) and pod.status.phase == "Failed"

    def _load_replicas(self, replicas: Replicas, nodes_down: Collection[str]) -> None:
        """Record pods of a snapshot, with the same result as `_record_pod` for each pod.

        `nodes_down` are the nodes that are out of service.

        The pods have one owner and differ only in name, node and creation time. If the pods are
        running, a PodTrack is usually made only when it is needed (`_loaded_track`).
        """
        first, uids = replicas[0], replicas.uids
        facts = OwnerFacts(first)
        is_usual = state_of(first) == RUNNING and facts.has_owner_of(first)
        are_new = (
            self._tracks.keys().isdisjoint(replicas.keys)
            and self._known.keys().isdisjoint(uids)
            and replicas.have_own_keys
        )
        if not is_usual or not are_new:
            for key, pod in zip(replicas.keys, replicas, strict=True):
                self._record_pod(pod, key, self._tracks.get(key))
            return
        loaded = LoadedTracks(replicas, facts, requests_of_pod(first), self.now)
        self._loaded[id(replicas)] = loaded
        self._tracks.load(replicas.rows_by_key)
        self._known.load(replicas.rows_by_uid)
        self.history.load(uids, replicas.nodes)
        self.counts.shift(pod_priority(first), RUNNING, len(replicas), self.now)
        down = [replicas[at] for at, node in enumerate(replicas.nodes) if node in nodes_down]
        self.counts.node_changed(down, self.now, is_serving=False)

    def _loaded_track(self, replicas: Replicas, index: int) -> PodTrack:
        """Make the PodTrack of a loaded pod; store it under the pod's key and uid; return it."""
        track, row = self._loaded[id(replicas)].track(index), replicas.rows[index]
        self._tracks.replace_row(replicas.keys[index], row, track)
        self._known.replace_row(replicas.uids[index], row, track)
        return track

    def _forget_pod(self, pod: Pod) -> None:
        track = self._tracks.get(pod.key)
        if track is not None and track.pod.metadata.uid == pod.metadata.uid:
            self._leave(track)
            is_cut_short = track.is_stopped or is_disrupted(track.pod)
            if is_terminal(track.pod) and not is_cut_short:
                self._completed.append((self.now, self._end_of(track)))
            elif track.reason:
                self._deleted_after_wait.append(DeletedPod(self._end_of(track), self.now))
            self.history.place(pod.metadata.uid, "", self.now)
            del self._tracks[pod.key]
            self._changed.add(pod.key)

    # --- result ---------------------------------------------------------------------------

    def ends(self) -> Mapping[str, PodEnd]:
        """Return the existing pods, keyed and sorted by original key.

        If a pod was replaced several times, the original key of the last replacement is the key of
        the first pod. If a pod and its replacement both exist, only the pod that is not ending is
        returned. The result must not be changed.
        """
        if self._kept is not None:
            return self._kept.updated(self._tracks, self._changed, self._end_at)
        return listed(self._tracks, sorted(self._tracks), self._end_at)

    def keep_ends(self) -> tuple[Mapping[str, PodEnd], Iterable[PodEnd]]:
        """Return the results of `ends` and `all_pods`, and keep them.

        Later calls of `ends` reuse the kept results for unchanged pods.
        """
        self._kept = KeptEnds(self._tracks, self._ends(), self._end_at)
        self._changed = set()
        return self._kept.listed, self._kept.by_key.values()

    def has_changed(self) -> bool:
        """Return whether a pod was created, changed or deleted since the call of `keep_ends`.

        If `keep_ends` was not called, the result is True.
        """
        return self._kept is None or bool(self._changed)

    def changed_nodes(self) -> set[str]:
        """Return the names of the nodes on which a pod has changed since the call of `keep_ends`.

        For a pod that has moved, the result contains the earlier and the present node. If a pod has
        or had no node, the result contains "". If `keep_ends` was not called, the result is empty.
        """
        if self._kept is None:
            return set()
        tracks = map(self._tracks.get, self._changed)
        now = {track.pod.spec.node_name for track in tracks if track is not None}
        return now | self._kept.nodes_of(self._changed)

    def pods_on(self, nodes: Collection[str]) -> list[PodEnd]:
        """Return all existing pods on `nodes`, sorted by name."""
        keys = {key for node in nodes for key in self.outage.own_pod_keys_on(node)}
        ends = map(self._end_at, sorted(keys & self._tracks.keys()))
        return [end for end in ends if end.node in nodes]

    def _end_at(self, key: str) -> PodEnd:
        row = self._tracks.row(key)
        if row is None:
            return self._end_of(self._tracks[key])
        return self._loaded[id(row[0])].ends[row[1]]

    def _ends(self) -> dict[str, PodEnd]:
        """Return {key: PodEnd} of the existing pods.

        The key of a replacement is its own, not the key of the replaced pod.
        """
        ends: dict[str, PodEnd] = {}
        for loaded in self._loaded.values():
            ends.update(zip(loaded.replicas.keys, loaded.ends, strict=True))
        ends.update((key, self._end_of(track)) for key, track in self._tracks.made())
        if len(ends) > len(self._tracks):  # loaded pods were deleted
            ends = {key: end for key, end in ends.items() if key in self._tracks}
        return ends

    def failed_jobs_since(self, since: Instant) -> Iterator[tuple[str, str]]:
        """Yield (Job, message) of each Job that failed at `since` or later and was then deleted."""
        return ((job, message) for at, job, message in self._failed_jobs if at >= since)

    def completed_since(self, since: Instant) -> Iterator[PodEnd]:
        """Yield the completed pods that were deleted at `since` or later, in order of deletion."""
        return (end for at, end in self._completed if at >= since)

    def deleted_after_wait(self, since: Instant) -> Iterator[DeletedPod]:
        """Yield the pods that no node could take for a time, and that were then deleted.

        Only pods that were deleted at `since` or later, before they completed, are yielded.
        """
        return (one for one in self._deleted_after_wait if one.at >= since)

    def all_pods(self) -> list[PodEnd]:
        """Return all existing pods, including terminating pods, sorted by key."""
        return [end for _, end in sorted(self._ends().items())]

    def existing_pods(self) -> Iterable[Pod]:
        """Yield the existing pods; their readiness may be out of date."""
        for one in self._tracks.raw():
            yield one[0][one[1]] if isinstance(one, tuple) else one.pod

    def pods_of(
        self, workloads: Collection[WorkloadRef]
    ) -> Iterator[tuple[WorkloadRef, str, Pod, str]]:
        """Yield (workload, uid, pod, node) for the existing pods of `workloads`.

        Replicas of one owner that have a node and are unchanged since the dump may share one `pod`
        object. So the caller must use the yielded uid and node, not the uid and node in `pod`. The
        caller must not use the readiness in `pod` either: it may be out of date.
        """
        group: Replicas | None = None  # the replicas of the previous row
        for one in self._tracks.raw() if workloads else ():
            if not isinstance(one, tuple):
                workload = workload_of(one.pod)
                if workload in workloads:
                    yield workload, one.pod.metadata.uid, one.pod, one.pod.spec.node_name
                continue
            replicas, index = one
            if replicas is not group:
                group, owner = replicas, self._loaded[id(replicas)].owner
                first = replicas[0] if owner in workloads else None
            if first is not None:
                node = replicas.nodes[index]
                yield owner, replicas.uids[index], first if node else replicas[index], node

    def samples(self) -> Iterable[Pod]:
        """Yield the existing pods, but only one of similar replicas that have not changed."""
        for loaded in self._loaded.values():
            replicas = loaded.replicas
            if any(self._tracks.row(key) is not None for key in replicas.keys):
                yield replicas[0]
        yield from (track.pod for _, track in self._tracks.made())

    def are_placed(self, keys: Iterable[str]) -> bool:
        """Return whether all pods in `keys` exist, and none of them is pending.

        The key of a pod is its `namespace/name`.
        """
        tracks = map(self._tracks.get, keys)
        return all(one is not None and one.state != PENDING for one in tracks)

    def scheduler_names(self, begin: Instant) -> set[str]:
        """Return the schedulerNames of pods that still wait or were bound at `begin` or later."""
        made = self._tracks.made() if self.counts.has_pending() else ()
        waiting = (one.pod for _, one in made if one.state == PENDING)
        bound = (pod for pod, _, until in self._bound if until >= begin)
        return {pod.spec.scheduler_name for pod in (*bound, *waiting)}

    def waits(self, begin: Instant) -> list[PodWait]:
        """Return the waits of pods that still wait or were bound at `begin` or later.

        A wait that began before `begin` counts from `begin`. Pods of DaemonSets and static pods are
        left out.
        """
        found: list[tuple[Pod, Instant, Instant | None]]
        found = [(pod, since, until) for pod, since, until in self._bound if until >= begin]
        made = self._tracks.made() if self.counts.has_pending() else ()
        pending = sorted(key for key, one in made if one.state == PENDING)
        found += [(self._tracks[key].pod, self._tracks[key].pending_since, None) for key in pending]
        return [
            PodWait(
                pod=original_key(pod),
                workload=workload_of(pod),
                since=max(since, begin),
                until=until,
                group=group_name(pod),
                key=pod.key,
                priority=pod.spec.priority or 0,
            )
            for pod, since, until in found
            if not is_daemon_pod(pod) and not is_static(pod)
        ]

    def undrained(self) -> list[Undrained]:
        """Return the pods that a drain has not removed, sorted by key.

        A pod remains on its node in three cases: its eviction is refused, its annotation
        do-not-disrupt keeps Karpenter from evicting it, or it has not stopped yet. Pods are left
        out if Cluster Autoscaler or the descheduler requested the refused eviction. Cluster
        Autoscaler then keeps the node, and the descheduler does not try again.
        """
        refused = [
            Undrained(
                pod=self._end_of(track), cause=UndrainedCause.REFUSED, why=self._refusal(track)
            )
            for key, track in self._refused.items()
            if self._tracks.get(key) is track
            and not is_terminating(track.pod)
            and not is_terminal(track.pod)
            and self._is_being_drained(track.pod.spec.node_name)
        ]
        return sorted([*refused, *self._unstopped()], key=lambda one: one.pod.key)

    def _is_being_drained(self, name: str) -> bool:
        """Return whether the node is being deleted, or drained by Karpenter or on request."""
        node = self.outage.nodes.get(name)
        if node is None:
            return False
        is_deleted = node.metadata.deletion_timestamp != ""
        return is_deleted or is_drain_requested(node) or _is_drained_by_karpenter(node)

    def _unstopped(self) -> Iterator[Undrained]:
        """Yield the pods that are still on drained nodes, and have no refused eviction.

        There are five causes:

        - The kubelet of the node does not answer.
        - The kubelet cannot stop the pod (`StuckPods`).
        - The grace period of the pod is not over.
        - The pod has ended, but it has a finalizer that no controller of Kubernetes removes.
        - Karpenter does not evict the pod.

        Pods of DaemonSets and static pods are left out. When a simulated Karpenter drains a node,
        no annotation requests the drain. On such a node, only pods that Karpenter does not evict
        are included. Drains by Karpenter do not wait for pods that never stop.
        """
        for name, node in self.outage.nodes.items():
            is_requested, is_of_karpenter = is_drain_requested(node), _is_drained_by_karpenter(node)
            if not (is_requested or is_of_karpenter):
                continue
            is_silent = not self.outage.is_serving(name)
            for pod in self.outage.pods_on(name):
                if is_daemon_pod(pod) or is_static(pod):
                    continue
                if is_terminating(pod):
                    if is_requested:
                        yield from self._remaining(pod, is_silent=is_silent)
                elif is_of_karpenter and protects_from_karpenter(pod):
                    yield self._undrained(pod, UndrainedCause.PROTECTED, PROTECTED_BY)

    def _remaining(self, pod: Pod, *, is_silent: bool) -> Iterator[Undrained]:
        """Yield the terminating `pod` with the reason why it still exists.

        `is_silent` is set if the kubelet of its node does not answer.
        """
        if is_terminal(pod):
            if finalizers := foreign_finalizers(pod):
                why = f"finalizer {finalizers[0]} keeps it after its end, as in the dump"
                yield self._undrained(pod, UndrainedCause.KEPT, why)
            return
        if is_silent:
            yield self._undrained(pod, UndrainedCause.UNSTOPPED, UNSTOPPED)
            return
        until = pod.metadata.deletion_timestamp
        end = parse_timestamp(until)
        if end < self.now:  # `KubeletConfig.never_stops`
            yield self._undrained(pod, UndrainedCause.KEPT, stuck_words(pod))
        else:
            why = f"its grace period ends at {until}"
            yield self._undrained(pod, UndrainedCause.STOPPING, why, end)

    def _undrained(
        self, pod: Pod, cause: UndrainedCause, why: str, stops_at: Instant | None = None
    ) -> Undrained:
        end = self._end_of(self._tracks[pod.key])
        return Undrained(pod=end, cause=cause, why=why, stops_at=stops_at)

    def _refusal(self, track: PodTrack) -> str:
        """Return the reason why an eviction of the pod of the PodTrack `track` was last refused.

        If a budget refused the eviction, the reason names all budgets that cover the pod.
        """
        if not track.refusal.endswith("disruption budget."):
            return track.refusal
        names = ", ".join(pdb.key for pdb in self.budgets.covering(track.pod))
        return f"{track.refusal} ({names})" if names else track.refusal

    def cluster_history(self, since: Instant) -> ClusterHistory | None:
        """Return the history of nodes and their pods after `since`; None if it is too long."""
        return self.history.history(since, lambda uid: self._end_of(self._known[uid]))

    # --- bookkeeping -----------------------------------------------------------------------

    def _created(self, pod: Pod) -> Instant:
        """Return the time at which `pod`, which is observed for the first time, was created.

        A creationTimestamp has whole seconds. If it is in the present second, the result is the
        exact present time.
        """
        text = pod.metadata.creation_timestamp
        created = parse_timestamp(text) if text else self.now
        return created if self.now - created >= seconds(1) else self.now

    def _enter(self, track: PodTrack, state: str) -> None:
        if track.state != state:
            if track.state == PENDING and state == RUNNING:
                self._bound.append((track.pod, track.pending_since, self.now))
            self._leave(track)
            track.state = state
            if state != OVER:
                is_serving = self.outage.is_serving(track.pod.spec.node_name)
                self.counts.add(track.pod, state, self.now, is_serving=is_serving)

    def _leave(self, track: PodTrack | None) -> None:
        if track is not None and track.state != OVER:
            self.counts.remove(track.pod, track.state, self.now)
            track.state = OVER

    def _outdate(self, track: PodTrack) -> None:
        """Record that `track` has changed, so that its PodEnd is computed again."""
        track.end = None
        self._changed.add(track.pod.key)

    def _end_of(self, track: PodTrack) -> PodEnd:
        if track.end is None:
            like = self._like
            if like is None or not like.has_owner_of(track.pod):
                like = self._like = OwnerFacts(track.pod)
            track.end = track.new_end(self.requests_of(track.pod), like)
        return track.end

    def _end(self, ref: ObjectRef) -> PodEnd:
        """Return the pod that `ref` names, in its current or last version."""
        track = self._known.get(ref.uid)
        if track is None:
            return PodEnd(namespace=ref.namespace, name=ref.name)
        return self._end_of(track)
