"""OutageRecorder: follows failed nodes and the pods that were on them.

The recorder observes the stimuli and reports of a run. A pod is tracked from the instant at which
its node is out of service until the pod is up again. A pod and its replacements share one pod key:
the namespace/name of the first of these pods. A zone is named by its key (`zone_key` of
engine.nodelifecycle), as in ZoneChange.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct, field

from fairlead.api.lazy_dict import LazyDict
from fairlead.api.nodes.kubelet_behaviour import KUBELET, Mode, parse_kubelet_behaviour
from fairlead.api.nodes.readiness import is_ready_node, is_starting
from fairlead.api.nodes.taint import NO_EXECUTE
from fairlead.api.objects import ApiObject, Node, Pod
from fairlead.api.pods.facts import (
    container_restarts,
    controller_of,
    is_static,
    is_terminal,
    is_terminating,
)
from fairlead.api.pods.original import original_keys
from fairlead.api.pods.replicas import Replicas, pod_at
from fairlead.api.timestamp import parse_timestamp
from fairlead.engine.core.instant import Instant, seconds
from fairlead.engine.core.reporter import (
    EvictionCancelled,
    EvictionTimed,
    KubeletFlapped,
    NodeTainted,
    PodEvicted,
    Record,
    ZoneAssessed,
)
from fairlead.engine.core.stimulus import (
    ObjectChanged,
    ObjectDeleted,
    ObjectsLoaded,
    ReadinessChanged,
    Stimulus,
)
from fairlead.engine.nodelifecycle.config import NodeLifecycleConfig
from fairlead.engine.nodelifecycle.well_known import NOT_READY, UNREACHABLE
from fairlead.engine.nodelifecycle.zones.zone_state import zone_key
from fairlead.engine.workloads.pod_control.unknown_owner import REPLICA_KINDS, keeps_name
from fairlead.whatif.outcome.eviction import NODE_REMOVAL_REASONS
from fairlead.whatif.outcome.outage import (
    AffectedPodSample,
    AffectedPodState,
    NodeSample,
    NodeState,
    RateLimitedTaint,
    ZoneChange,
)
from fairlead.whatif.run.recorders.replacement import Replacements, StatedReplacements

_FAILURE_TAINTS = (NOT_READY, UNREACHABLE)
# Members that are read often (STYLE.md, rule 19).
_UP: Final = AffectedPodState.UP
_WAITING: Final = AffectedPodState.WAITING
_DOWN: Final = AffectedPodState.DOWN


class FailureTimes(Struct):
    """The times at which one failure of a node reached each stage; see `NodeHistory`."""

    quiet_at: Instant
    unready_at: Instant | None = None
    tainted_at: Instant | None = None


class FailedNode(Struct):
    """A node that is or was out of service; see `NodeHistory`."""

    # The failure that led to the first eviction of a pod from the node. If no pod was evicted, the
    # first failure that the control plane noticed. If the control plane noticed no failure, the
    # node's first failure.
    failure: FailureTimes
    latest: FailureTimes  # the node's latest failure
    zone: str
    # All evictions from the node. Several of these can be evictions of one pod and its
    # replacements, which share a key; `evicted` contains each key once.
    evictions: list[PodEvicted] = field(default_factory=list)
    back_at: Instant | None = None
    returns: int = 0  # how often the node has returned to service
    pods: dict[str, None] = field(default_factory=dict)  # pod keys
    evicted: dict[str, None] = field(default_factory=dict)  # pod keys


class AffectedPod(Struct):
    """A pod that was on a failed `node`."""

    pod: Pod  # may be a replacement of another pod
    node: str
    since: Instant  # the first time at which its node was out of service
    state: AffectedPodState = _DOWN
    evicted_at: Instant | None = None
    is_replaced: bool = False
    # The last time at which the pod came back up, with its containers; None if this never happened.
    back_at: Instant | None = None
    is_late: bool = False  # whether its node returned and failed again before the pod came back up
    was_back: bool = False  # whether the pod came back up before its node failed again
    # The last time at which the pod's containers restarted on their node.
    restarted_at: Instant | None = None
    # The time at which the pod failed or was deleted; None if it or a replacement exists.
    ended_at: Instant | None = None

    def record_another_failure(self, returned_at: Instant) -> None:
        """Record that the node of the pod, which returned at `returned_at`, has failed again."""
        if self.back_at is None or self.back_at < returned_at:
            self.is_late = True
        else:
            self.was_back = True


class OutageRecorder(Struct):
    """Records the failed nodes of one run.

    `config` determines the zones of nodes, and `replacements` determines the keys of pods.
    """

    config: NodeLifecycleConfig = field(default_factory=NodeLifecycleConfig)
    replacements: Replacements = field(default_factory=StatedReplacements)
    now: Instant = 0
    nodes: dict[str, Node] = field(default_factory=dict)
    starting: set[str] = field(default_factory=set)  # names, see `api.nodes.readiness`
    pods: LazyDict[Pod] = field(default_factory=lambda: LazyDict(pod_at))  # {uid: existing pod}
    failed_nodes: dict[str, FailedNode] = field(default_factory=dict)  # by node name
    affected: dict[str, AffectedPod] = field(default_factory=dict)  # by pod key
    timers: dict[str, EvictionTimed] = field(default_factory=dict)  # by uid of the pod
    taints: list[RateLimitedTaint] = field(default_factory=list)
    zones: list[ZoneChange] = field(default_factory=list)
    node_samples: list[NodeSample] = field(default_factory=list)
    pod_samples: list[AffectedPodSample] = field(default_factory=list)
    _backs: Counter[Instant] = field(default_factory=Counter)  # {time: returned pods}
    _rates: dict[str, float] = field(default_factory=dict)  # nodes per second, by zone
    _states: dict[str, NodeState] = field(default_factory=dict)
    # {node: result of `is_serving`}
    _is_serving: dict[str, bool] = field(default_factory=dict)
    _zone_of: dict[str, str] = field(default_factory=dict)
    _counts: dict[str, dict[NodeState, int]] = field(default_factory=dict)
    # {node: {uid: key of the original}} of the pods on it, without those of nodes in `_loaded`; see
    # `_original_keys_on`
    _on_node: dict[str, dict[str, str]] = field(default_factory=lambda: defaultdict(dict))
    _loaded: dict[str, dict[str, Pod]] = field(default_factory=dict)
    # {uid: pod key} of the pods that were deleted before they completed
    _gone: dict[str, str] = field(default_factory=dict)
    # {pod key: uids}, of existing pods; None until a node fails, because most runs never need it
    _by_key: dict[str, dict[str, None]] | None = None
    _tally: dict[AffectedPodState, int] = field(
        default_factory=lambda: dict.fromkeys(AffectedPodState, 0)
    )
    _evicted: int = 0
    _is_sample_due: bool = False
    _loaded_at: Instant = 0
    _has_lost_nodes: bool = False  # whether a node has been deleted during the run
    # {uid: eviction} of pods whose nodes had not failed
    _evicted_before: dict[str, PodEvicted] = field(default_factory=dict)
    _left_out: frozenset[str] = frozenset()  # node names
    _flapped_off: set[str] = field(default_factory=set)  # nodes whose flapping machine is off
    _off: set[str] = field(default_factory=set)  # nodes whose machine is off, flapping or not
    _restarting: set[str] = field(default_factory=set)  # uids of pods, see `_await_restarts`

    @property
    def first_back_at(self) -> Instant | None:
        """The first time at which an affected pod came back up; None if no affected pod did."""
        return min((at for at, pods in self._backs.items() if pods), default=None)

    @property
    def last_back_at(self) -> Instant | None:
        """The last time at which an affected pod came back up; None if no affected pod did."""
        return max((at for at, pods in self._backs.items() if pods), default=None)

    # --- reports ------------------------------------------------------------------

    def report(self, record: Record) -> None:
        """Record a decision about a failed node or one of its pods."""
        if type(record) is EvictionTimed:  # the most frequent records come first
            self.timers[record.pod.uid] = record
            return
        if type(record) is EvictionCancelled:
            self.timers.pop(record.pod.uid, None)
            return
        if type(record) is PodEvicted:
            self.timers.pop(record.pod.uid, None)
            if record.why not in NODE_REMOVAL_REASONS:
                self._record_eviction(record)
            return
        match record:
            case ZoneAssessed(zone, state, size, unready, rate, at):
                self.zones.append(ZoneChange(at, zone, state, size, unready, rate))
                self._rates[zone] = rate
            case NodeTainted(node, zone, _, is_rate_limited, at):
                if is_rate_limited and node not in self._left_out:
                    self.taints.append(RateLimitedTaint(at, zone, node))
            case KubeletFlapped(node, is_running, at):
                self._record_flap(node, at, is_running=is_running)

    def _record_flap(self, name: str, at: Instant, *, is_running: bool) -> None:
        """Record that the machine of a flapping node stopped, or runs again."""
        self.now = at
        (self._flapped_off.discard if is_running else self._flapped_off.add)(name)
        if node := self.nodes.get(name):
            self._record_node(node)

    def leave_out(self, nodes: frozenset[str]) -> None:
        """Forget the failures of `nodes`, and do not record them from now on."""
        self._left_out = nodes
        for name in nodes & self.failed_nodes.keys():
            del self.failed_nodes[name]
        for key in [key for key, one in self.affected.items() if one.node in nodes]:
            forgotten = self.affected.pop(key)
            self._tally[forgotten.state] -= 1
            self._evicted -= forgotten.evicted_at is not None
        self.taints = [one for one in self.taints if one.node not in nodes]
        self._backs.clear()
        self.pod_samples.clear()
        self._is_sample_due = bool(self.affected)
        self._sample_pods()

    def is_waiting(self, now: Instant) -> bool:
        """Return whether a toleration will expire, or an unready node will be tainted or emptied.

        A toleration that should have expired before `now` is ignored, because its pod was already
        terminating then.
        """
        if any(timer.due >= now for timer in self.timers.values()):
            return True
        return any(self._will_process(zone, now) for zone in self._counts)

    def _will_process(self, zone: str, now: Instant) -> bool:
        unready = self._counts[zone][NodeState.UNREADY]
        rate = self._rates.get(zone, 0.0)
        if not unready or not rate:
            return False
        if self.config.evicts_by_taint:
            return True
        latest = max((one.latest.unready_at or 0 for one in self.failed_nodes.values()), default=0)
        return now < latest + self.config.pod_eviction_timeout + seconds(unready / rate)

    def _record_eviction(self, record: PodEvicted) -> None:
        uid = record.pod.uid
        pod = self.pods.get(uid)
        if pod is not None and is_terminal(pod):
            return  # the deletion of a completed pod is no eviction
        key = self._gone.get(uid, "") if pod is None else self.replacements.key_of(pod)
        affected = self.affected.get(key)
        if affected is None or record.node not in self.failed_nodes:
            self._evicted_before[uid] = record
            return
        self._count_eviction(key, affected, record)

    def _count_eviction(self, key: str, affected: AffectedPod, record: PodEvicted) -> None:
        failed = self.failed_nodes[record.node]
        if not failed.evictions:
            failed.failure = failed.latest
        failed.evictions.append(record)
        failed.evicted[key] = None
        if affected.evicted_at is None:
            self._evicted += 1
        affected.evicted_at = record.at
        self._is_sample_due = True
        self._sample_pods()

    # --- stimuli ---------------------------------------------------------------------

    def observe(self, stimulus: Stimulus, now: Instant) -> None:
        """Record a stimulus before the controllers handle it."""
        self.now = now
        if type(stimulus) is ObjectChanged or type(stimulus) is ReadinessChanged:
            changed = stimulus.object
            if type(changed) is Pod and self.affected and changed.metadata.uid not in self.pods:
                # A new pod may replace an affected pod. Pods that exist at the start of the
                # recording are not new: they replace no affected pod.
                self.replacements.match(changed, self._is_unreplaced)
            self._record(changed)
        elif type(stimulus) is ObjectDeleted:
            self._forget(stimulus.object)
        elif type(stimulus) is ObjectsLoaded:
            self._load(stimulus)

    def _load(self, loaded: ObjectsLoaded) -> None:
        """Record all objects, nodes before pods."""
        self._loaded_at = self.now
        for one in loaded.others:
            self._record(one)
        down = self.nodes_down()
        for replicas in loaded.replicas:
            if not self.affected and down.isdisjoint(replicas.nodes):
                # No node of these pods is down. The pods are only indexed. They are read if one of
                # their nodes fails.
                self.pods.load(replicas.rows_by_uid)
                continue
            for pod in replicas:
                if self.affected or pod.spec.node_name in down:
                    self._record_pod(pod)
                else:
                    self.pods[pod.metadata.uid] = pod
        self._loaded = loaded.bound_pods.copy()

    def _record(self, changed: ApiObject) -> None:
        if type(changed) is Pod:
            self._record_pod(changed)
        elif type(changed) is Node:
            self._record_node(changed)

    def _forget(self, gone: ApiObject) -> None:
        if type(gone) is Pod:
            self._drop(gone)
            self._update(self.replacements.key_of(gone))
            self._sample_pods()
        elif type(gone) is Node:
            self._has_lost_nodes = True
            self.nodes.pop(gone.metadata.name, None)
            self.starting.discard(gone.metadata.name)
            self._is_serving.pop(gone.metadata.name, None)
            self._flapped_off.discard(gone.metadata.name)
            self._move(gone.metadata.name, "", None)

    # --- nodes -----------------------------------------------------------------------------

    def _record_node(self, node: Node) -> None:
        name = node.metadata.name
        is_silent = self._is_silent(node)
        if name in self._off and not is_silent:
            self._off.discard(name)
            self._await_restarts(name)
        starts = is_starting(node)
        is_ready = starts or is_ready_node(node)  # a starting node counts as Ready
        state = _state_of(node, is_silent=is_silent, is_ready=is_ready)
        self.nodes[name] = node
        if starts:
            self.starting.add(name)
        else:
            self.starting.discard(name)
        before = self._states.get(name)
        was_serving = self._is_serving.get(name)
        self._is_serving[name] = not is_silent and is_ready
        self._move(name, zone_key(node, self.config), state)
        serves_as_before = was_serving == self._is_serving[name]
        if (state is before and serves_as_before) or name in self._left_out:
            return
        # The state of an affected pod depends only on pods and on the nodes that serve. It is
        # updated when one of these changes, but not when a node is deleted.
        is_current = serves_as_before and not self._has_lost_nodes
        concerned: Iterable[str] = ()
        if not state.is_in_service:
            concerned = self._record_failure(name, state, is_current=is_current)
        else:
            if before is not None and not before.is_in_service:
                returned = self.failed_nodes[name]
                returned.back_at = self.now
                returned.returns += 1
            if not is_current:
                concerned = dict.fromkeys(self._original_keys_on(name).values())
        for key in concerned:
            self._update(key)
        self._sample_pods()

    def _is_silent(self, node: Node) -> bool:
        """Return whether the kubelet of `node` is stopped, is paused, or flaps and is off now.

        Also record that the machine of `node` is off, unless only its kubelet is paused.
        The Node of a flapping machine does not show whether the machine is off; see KubeletFlapped.
        """
        try:
            behaviour = parse_kubelet_behaviour(node.metadata.annotations.get(KUBELET, ""))
        except ValueError:
            return False
        name, mode = node.metadata.name, behaviour.mode
        if mode is Mode.STOPPED or (mode is Mode.FLAP and name in self._flapped_off):
            self._off.add(name)
            return True
        return mode is Mode.PAUSED

    def _await_restarts(self, name: str) -> None:
        """Let the pods of the node `name`, whose machine runs again, wait for their containers.

        The containers start again after the pod's start delay (`pod_workers` of engine.kubelet).
        Until then, the pod is not up, although its phase is Running.
        """
        for uid in self._original_keys_on(name):
            pod = self.pods[uid]
            if pod.status.phase != "Running" or not pod.spec.containers:
                continue
            if pod.spec.restart_policy != "Never" or is_static(pod):
                self._restarting.add(uid)

    def state(self, node: str) -> NodeState | None:
        """Return the current state of `node`; None if it was deleted."""
        return self._states.get(node)

    def is_serving(self, node: str) -> bool:
        """Return whether the kubelet of `node` runs and its condition Ready is True or absent.

        Return True for "" and for an unknown node.
        """
        return self._is_serving.get(node, True)

    def nodes_down(self) -> set[str]:
        """Return the names of the nodes for which `is_serving` returns False."""
        return {node for node, is_serving in self._is_serving.items() if not is_serving}

    def is_flapping(self, node: str) -> bool:
        """Return whether the machine of `node` is off, and will run again by itself."""
        return node in self._flapped_off

    def pods_on(self, node: str) -> list[Pod]:
        """Return the existing pods on `node`, in the order of their binding."""
        return [self.pods[uid] for uid in self._original_keys_on(node)]

    def own_pod_keys_on(self, node: str) -> Iterator[str]:
        """Yield `namespace/name` of each existing pod on `node`.

        The name of a replacement is its own, not the name of the pod that it replaces. The names of
        pods of the dump are found without decoding the pods.
        """
        yield from self._loaded.get(node, ())
        for uid in self._on_node.get(node, ()):
            yield self.pods[uid].key

    def _original_keys_on(self, node: str) -> dict[str, str]:
        """Return {uid: pod key} of the pods on `node`.

        A replacement has the key of the first pod that it replaces, directly or indirectly.
        """
        loaded = self._loaded.pop(node, None)
        if loaded is not None:
            keys = {pod.metadata.uid: self.replacements.key_of(pod) for pod in loaded.values()}
            self._on_node[node] = keys | self._on_node.get(node, {})
        return self._on_node.get(node, {})

    def zone(self, node: str) -> str:
        """Return the key of the zone of `node`; "" if the node was deleted."""
        return self._zone_of.get(node, "")

    def pods_of(self, key: str) -> list[Pod]:
        """Return the existing pods with the key `key`, oldest first."""
        return [self.pods[uid] for uid in self._uids_of(key)]

    def _uids_of(self, key: str) -> Collection[str]:
        """Return the uids of the existing pods with the key `key`, oldest first."""
        if self._by_key is None:
            self._by_key = {}
            for uid, found in self._original_keys():
                self._by_key.setdefault(found, {})[uid] = None
        return self._by_key.get(key, ())

    def _original_keys(self) -> Iterator[tuple[str, str]]:
        """Yield (uid, key) of each existing pod, without making Pod objects of loaded pods."""
        group: Replicas | None = None
        keys: Sequence[str] = ()
        for uid, value in zip(self.pods, self.pods.raw(), strict=True):
            if isinstance(value, Pod):
                yield uid, self.replacements.key_of(value)
                continue
            replicas, index = value
            if replicas is not group:
                group, keys = replicas, original_keys(replicas)
            yield uid, keys[index]

    def _record_failure(self, name: str, state: NodeState, *, is_current: bool) -> dict[str, None]:
        """Record that the node `name` is out of service; `state` is its current state.

        Return the keys of the pods that the caller must update (`_update`). If `is_current` is
        False, the recorded states of affected pods may be outdated; these pods are then included.
        """
        failed = self._failed_node(name)
        returned_at = failed.back_at
        if returned_at is not None:
            failed.back_at, failed.latest = None, FailureTimes(self.now)
        failure = failed.latest
        if state in (NodeState.UNREADY, NodeState.TAINTED) and failure.unready_at is None:
            failure.unready_at = self.now
            if failed.failure.unready_at is None:
                failed.failure = failure
        if state is NodeState.TAINTED and failure.tainted_at is None:
            failure.tainted_at = self.now
        concerned: dict[str, None] = {}
        is_down = not self._is_serving[name] and not self._has_lost_nodes
        for uid, key in self._original_keys_on(name).items():
            pod, affected = self.pods[uid], self.affected.get(key)
            if affected is not None and returned_at is not None:
                affected.record_another_failure(returned_at)
            if affected is None and is_down and len(self._uids_of(key)) == 1:
                # The usual case: this pod is the only one with its key, so the key is DOWN, as
                # `_mark_affected` records. `_update` would change nothing.
                self._mark_affected(key, pod)
            elif not is_current or affected is None or affected.state is _UP:
                concerned[key] = None
                self._mark_affected(key, pod)
            elif not is_terminal(pod):
                failed.pods[key] = None
                affected.pod, affected.node = pod, name
                self._is_sample_due = True
        return concerned

    def _failed_node(self, name: str) -> FailedNode:
        """Return the record of the failed node `name`; make a record if it is the first failure."""
        failed = self.failed_nodes.get(name)
        if failed is None:
            failure = FailureTimes(self.now)
            failed = self.failed_nodes[name] = FailedNode(failure, failure, self.zone(name))
        return failed

    def _move(self, name: str, zone: str, state: NodeState | None) -> None:
        """Update the counts for the node `name`, now in `zone` with `state` (None if deleted)."""
        old_zone, old_state = self._zone_of.get(name), self._states.get(name)
        if (old_zone, old_state) == (zone, state):
            return
        if old_zone is not None and old_state is not None:
            self._counts[old_zone][old_state] -= 1
            if state is None or old_zone != zone:  # else it is sampled below
                self._sample_nodes(old_zone)
        if state is None:
            self._states.pop(name, None)
            self._zone_of.pop(name, None)
            return
        self._states[name], self._zone_of[name] = state, zone
        if zone not in self._counts:
            self._counts[zone] = dict.fromkeys(NodeState, 0)
        self._counts[zone][state] += 1
        self._sample_nodes(zone)

    def _sample_nodes(self, zone: str) -> None:
        sample = NodeSample(self.now, zone, dict(self._counts[zone]))
        last = self.node_samples[-1] if self.node_samples else None
        if last is not None and (last.at, last.zone) == (sample.at, zone):
            self.node_samples[-1] = sample
        else:
            self.node_samples.append(sample)

    # --- pods ------------------------------------------------------------------------------

    def _record_pod(self, pod: Pod) -> None:
        uid, node = pod.metadata.uid, pod.spec.node_name
        before = self.pods.get(uid)
        key = self.replacements.key_of(pod)
        self.pods[uid] = pod
        if before is None or before.spec.node_name != node:
            if self._by_key is not None:
                self._by_key.setdefault(key, {})[uid] = None
            if node:
                self._on_node[node][uid] = key
        elif _is_in_same_phase(before, pod):
            self._record_restart(key, before, pod)
            return
        if node and not self._is_serving.get(node, True):
            self._mark_affected(key, pod)
        if self.affected:
            self._update(key)
        if self._is_sample_due:
            self._sample_pods()

    def _is_unreplaced(self, key: str) -> bool:
        """Return whether the affected pod `key` is lost, and not replaced yet.

        A lost pod is deleted, terminates, or has failed, as in a graceful shutdown of its node.
        """
        return self.affected[key].state is _DOWN and all(
            is_terminating(pod) or is_terminal(pod) for pod in self.pods_of(key)
        )

    def _record_restart(self, key: str, before: Pod, after: Pod) -> None:
        """Record the restart of the containers of an affected pod, whose key is `key`.

        `self.pods` already contains `after`.
        """
        affected = self.affected.get(key)
        if affected is None or container_restarts(before) == container_restarts(after):
            return
        affected.restarted_at = self.now
        self._restarting.discard(after.metadata.uid)
        self._update(key)
        self._sample_pods()

    def replace_pod(self, before: Pod, pod: Pod) -> None:
        """Record `pod`, a new version of `before` with the same node and state."""
        self.pods[pod.metadata.uid] = pod
        if before.status.container_statuses is not pod.status.container_statuses:
            self._record_restart(self.replacements.key_of(pod), before, pod)

    def _drop(self, pod: Pod) -> None:
        uid = pod.metadata.uid
        self.pods.pop(uid, None)
        self._restarting.discard(uid)
        if not is_terminal(pod):
            self._gone[uid] = self.replacements.key_of(pod)
        self._original_keys_on(pod.spec.node_name).pop(uid, None)
        if self._by_key is None:
            return
        uids = self._by_key.get(self.replacements.key_of(pod), {})
        uids.pop(uid, None)
        if not uids:
            self._by_key.pop(self.replacements.key_of(pod), None)

    def _mark_affected(self, key: str, pod: Pod) -> None:
        """Mark `pod`, whose key is `key`, as affected.

        Three kinds of pods are not marked: pods that have ended, pods of nodes that the recorder
        ignores (`leave_out`), and pods that were replaced before the run (`_was_replaced`).
        """
        node = pod.spec.node_name
        if node in self._left_out or is_terminal(pod) or self._was_replaced(pod):
            return
        self._failed_node(node).pods[key] = None
        affected = self.affected.get(key)
        if affected is None:
            affected = self.affected[key] = AffectedPod(pod, node, self.now)
            self.replacements.lose(pod, key)
            self._tally[_DOWN] += 1
            before = self._evicted_before.pop(pod.metadata.uid, None)
            # A taint that came together with the failure has evicted the pod just before.
            if before is not None and before.at == self.now:
                self._count_eviction(key, affected, before)
        elif affected.state is not _UP or self._state(key)[0] is not _UP:
            affected.pod, affected.node = pod, node
            self._set_state(affected, _DOWN)
        self._is_sample_due = True

    def _was_replaced(self, pod: Pod) -> bool:
        """Return whether `pod` was deleted before the run, and no controller waits for its end.

        If this is true and the pod has an owner, the owner created the replacement before the run,
        under another name.
        """
        if not is_terminating(pod):
            return False
        owner = controller_of(pod.metadata)
        if owner is not None and (owner.kind not in REPLICA_KINDS or keeps_name(owner.kind, pod)):
            return False
        grace = seconds(pod.metadata.deletion_grace_period_seconds or 0)
        return parse_timestamp(pod.metadata.deletion_timestamp) - grace < self._loaded_at

    def _update(self, key: str) -> None:
        """Update the state of the affected pod `key`.

        A pod that is already up again is updated only at two instants, at which it may fail again.
        At `back_at`, a pod with restartPolicy Never fails if its node has just returned. At
        `restarted_at`, the restart of the pod's containers may make its Job fail.
        """
        affected = self.affected.get(key)
        if affected is None:
            return
        is_up, back_at = affected.state is _UP, affected.back_at
        if is_up and self.now not in (back_at, affected.restarted_at):
            return
        state, running, exists = self._state(key)
        if exists:
            affected.ended_at = None
        elif affected.ended_at is None:
            affected.ended_at = self.now
        if state is affected.state:
            return
        if is_up and back_at is not None:
            self._backs[back_at] -= 1
        self._set_state(affected, state)
        if state is _UP:
            affected.back_at = self.now
            self._backs[self.now] += 1
            # An evicted pod is back as a new pod, even if the node of the new pod failed as well.
            is_same = affected.pod.metadata.uid == running
            affected.is_replaced = not is_same or affected.evicted_at is not None
        self._is_sample_due = True

    def _set_state(self, affected: AffectedPod, state: AffectedPodState) -> None:
        if affected.state is state:
            return
        self._tally[affected.state] -= 1
        self._tally[state] += 1
        affected.state = state

    def _state(self, key: str) -> tuple[AffectedPodState, str, bool]:
        """Return (state, uid, exists) for the pods with the key `key`.

        `state` is the best state of these pods. UP is better than WAITING, and WAITING is better
        than DOWN. `uid` is the uid of a pod that is up, or "" if no pod is up. `exists` is True if
        at least one of the pods has not failed.
        """
        best, exists = _DOWN, False
        pods, serving = self.pods, self._is_serving
        for uid in self._uids_of(key):
            pod = pods[uid]
            phase, node = pod.status.phase, pod.spec.node_name
            if phase == "Succeeded":
                return _UP, uid, True
            if phase == "Failed":
                continue
            exists = True
            if is_terminating(pod):
                continue
            is_on_working_node = bool(node) and serving.get(node, False)
            if is_on_working_node and phase == "Running" and uid not in self._restarting:
                return _UP, uid, True
            if is_on_working_node or not node:
                best = _WAITING
        return best, "", exists

    def _sample_pods(self) -> None:
        """Add a sample if the state of any affected pod has changed.

        An earlier sample of the same instant is replaced.
        """
        if not self._is_sample_due:
            return
        self._is_sample_due = False
        tally = self._tally
        sample = AffectedPodSample(
            self.now,
            tally[_DOWN],
            tally[_WAITING],
            tally[_UP],
            self._evicted,
        )
        if self.pod_samples and self.pod_samples[-1].at == self.now:
            self.pod_samples[-1] = sample
        else:
            self.pod_samples.append(sample)


def _state_of(node: Node, *, is_silent: bool, is_ready: bool) -> NodeState:
    """Return the state of `node` according to its taints and conditions.

    `is_silent` means that the node's kubelet does not report. `is_ready` means that the node is
    Ready or is starting.
    """
    if any(t.key in _FAILURE_TAINTS and t.effect == NO_EXECUTE for t in node.spec.taints):
        return NodeState.TAINTED
    if not is_ready:
        return NodeState.UNREADY
    if is_silent:
        return NodeState.UNNOTICED
    return NodeState.CORDONED if node.spec.unschedulable else NodeState.READY


def _is_in_same_phase(before: Pod, after: Pod) -> bool:
    """Return whether two versions of a pod agree in their phase and in whether they terminate."""
    is_same = before.status.phase == after.status.phase
    return is_same and is_terminating(before) == is_terminating(after)
