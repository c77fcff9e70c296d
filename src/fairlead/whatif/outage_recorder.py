"""OutageRecorder: follows nodes that go quiet, and the pods that were on them.

It hears what a recorder hears, and keeps an eye on a pod from when its node is out of service. Work
follows what changes: nobody looks at pods whose nodes are well.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from fairlead.api.kubelet_behaviour import KUBELET, Mode, parse_kubelet_behaviour
from fairlead.api.objects import ApiObject, Node, Pod
from fairlead.api.pods.facts import is_terminal, is_terminating
from fairlead.api.taint import NO_EXECUTE
from fairlead.engine.core.instant import Instant, seconds
from fairlead.engine.core.reporter import (
    EvictionCancelled,
    EvictionTimed,
    NodeTainted,
    PodEvicted,
    Record,
    ZoneAssessed,
)
from fairlead.engine.core.stimulus import ObjectChanged, ObjectDeleted, ObjectsLoaded, Stimulus
from fairlead.engine.nodelifecycle.config import NodeLifecycleConfig
from fairlead.engine.nodelifecycle.well_known import NOT_READY, TRUE, UNREACHABLE, ready_status
from fairlead.engine.nodelifecycle.zones.zone_state import zone_key
from fairlead.engine.workloads.annotation import original_name
from fairlead.engine.workloads.drain.controller import WHY as DRAINED
from fairlead.whatif.outage_outcome import (
    NodeSample,
    NodeState,
    PodSample,
    PodState,
    Turn,
    ZoneChange,
)

_QUIET_TAINTS = (NOT_READY, UNREACHABLE)


@dataclass(slots=True)
class Trouble:
    """A node out of service, or one that was; see `NodeStory`."""

    quiet_at: Instant
    unready_at: Instant | None = None
    tainted_at: Instant | None = None
    evictions: list[Instant] = field(default_factory=list)
    back_at: Instant | None = None
    pods: dict[str, None] = field(default_factory=dict)  # original keys


@dataclass(slots=True)
class Hit:
    """A pod that was concerned, by its original's key; `pod` is the one that was on `node`."""

    pod: Pod
    node: str
    state: PodState = PodState.DOWN
    evicted_at: Instant | None = None
    is_replaced: bool = False


@dataclass(slots=True)
class OutageRecorder:
    """Hears and keeps; `config` says what a zone is."""

    config: NodeLifecycleConfig = field(default_factory=NodeLifecycleConfig)
    now: Instant = 0
    nodes: dict[str, Node] = field(default_factory=dict)
    pods: dict[str, Pod] = field(default_factory=dict)  # those there are, by uid
    troubles: dict[str, Trouble] = field(default_factory=dict)  # by node
    hits: dict[str, Hit] = field(default_factory=dict)  # by original key
    timers: dict[str, EvictionTimed] = field(default_factory=dict)  # by uid
    turns: list[Turn] = field(default_factory=list)
    zones: list[ZoneChange] = field(default_factory=list)
    node_samples: list[NodeSample] = field(default_factory=list)
    pod_samples: list[PodSample] = field(default_factory=list)
    first_back_at: Instant | None = None
    last_back_at: Instant | None = None
    _rates: dict[str, float] = field(default_factory=dict)  # nodes a second, by zone
    _states: dict[str, NodeState] = field(default_factory=dict)
    _answers: dict[str, bool] = field(default_factory=dict)  # whether the node's kubelet is well
    _zone_of: dict[str, str] = field(default_factory=dict)
    _counts: dict[str, dict[NodeState, int]] = field(default_factory=dict)
    _on_node: dict[str, dict[str, None]] = field(default_factory=lambda: defaultdict(dict))
    _keys: dict[str, str] = field(default_factory=dict)  # original keys by uid; of all there were
    _by_key: dict[str, dict[str, None]] = field(default_factory=lambda: defaultdict(dict))
    _tally: dict[PodState, int] = field(default_factory=lambda: dict.fromkeys(PodState, 0))
    _evicted: int = 0

    # --- what was decided ------------------------------------------------------------------

    def report(self, record: Record) -> None:
        """Take note of a decision about a quiet node, or a pod on it."""
        match record:
            case ZoneAssessed(zone, state, size, unready, rate, at):
                self.zones.append(ZoneChange(at, zone, state, size, unready, rate))
                self._rates[zone] = rate
            case NodeTainted(node, zone, _, is_turn, at):
                if is_turn:
                    self.turns.append(Turn(at, zone, node))
            case EvictionTimed(pod=ref):
                self.timers[ref.uid] = record
            case EvictionCancelled(pod=ref):
                self.timers.pop(ref.uid, None)
            case PodEvicted(pod=ref, why=why):
                self.timers.pop(ref.uid, None)
                if why != DRAINED:
                    self._see_eviction(record)

    def is_waiting(self) -> bool:
        """Whether a toleration will end, or a quiet node's turn will come, if only time passes."""
        return bool(self.timers) or any(self._will_have_turns(zone) for zone in self._counts)

    def _will_have_turns(self, zone: str) -> bool:
        unready = self._counts[zone][NodeState.UNREADY]
        rate = self._rates.get(zone, 0.0)
        if not unready or not rate:
            return False
        if self.config.taint_based_evictions:
            return True
        latest = max((one.unready_at or 0 for one in self.troubles.values()), default=0)
        return self.now < latest + self.config.pod_eviction_timeout + seconds(unready / rate)

    def _see_eviction(self, record: PodEvicted) -> None:
        hit = self.hits.get(self._keys.get(record.pod.uid, ""))
        if hit is None or record.node not in self.troubles:
            return
        self.troubles[record.node].evictions.append(record.at)
        if hit.evicted_at is None:
            self._evicted += 1
        hit.evicted_at = record.at
        self._sample_pods()

    # --- what happened ---------------------------------------------------------------------

    def hear(self, stimulus: Stimulus, now: Instant) -> None:
        """Take note of what the controllers are about to be told."""
        self.now = now
        match stimulus:
            case ObjectsLoaded(objects):
                for loaded in objects:
                    self._see(loaded)
            case ObjectChanged(changed):
                self._see(changed)
            case ObjectDeleted(gone):
                self._forget(gone)

    def _see(self, changed: ApiObject) -> None:
        match changed:
            case Node():
                self._see_node(changed)
            case Pod():
                self._see_pod(changed)

    def _forget(self, gone: ApiObject) -> None:
        match gone:
            case Node():
                self.nodes.pop(gone.metadata.name, None)
                self._answers.pop(gone.metadata.name, None)
                self._move(gone.metadata.name, "", None)
            case Pod():
                self._drop(gone)
                self._judge(_key(gone))

    # --- nodes -----------------------------------------------------------------------------

    def _see_node(self, node: Node) -> None:
        name, state = node.metadata.name, state_of(node)
        self.nodes[name] = node
        before = self._states.get(name)
        answered, self._answers[name] = self._answers.get(name), _is_answering(node)
        self._move(name, zone_key(node, self.config), state)
        if state is before and answered == self._answers[name]:
            return
        if not state.is_in_service:
            self._trouble(name, state)
        elif before is not None and not before.is_in_service:
            self.troubles[name].back_at = self.now
        for key in self._keys_on(name):
            self._judge(key)

    def state(self, node: str) -> NodeState | None:
        """How far the node's trouble has come; None where it is gone."""
        return self._states.get(node)

    def zone(self, node: str) -> str:
        """The key of the node's zone; "" where it is gone."""
        return self._zone_of.get(node, "")

    def mates(self, key: str) -> list[Pod]:
        """Those there are of the original's name, in the order in which they came."""
        return [self.pods[uid] for uid in self._by_key.get(key, ())]

    def _trouble(self, name: str, state: NodeState) -> None:
        trouble = self.troubles.setdefault(name, Trouble(self.now))
        trouble.back_at = None
        if state in (NodeState.UNREADY, NodeState.TAINTED) and trouble.unready_at is None:
            trouble.unready_at = self.now
        if state is NodeState.TAINTED and trouble.tainted_at is None:
            trouble.tainted_at = self.now
        for uid in self._on_node.get(name, ()):
            self._hit(self.pods[uid])

    def _move(self, name: str, zone: str, state: NodeState | None) -> None:
        """Count the node in its new place; None where it is gone."""
        place = (self._zone_of.get(name), self._states.get(name))
        if place == (zone, state):
            return
        if place[0] is not None and place[1] is not None:
            self._counts[place[0]][place[1]] -= 1
            self._sample_nodes(place[0])
        if state is None:
            self._states.pop(name, None)
            self._zone_of.pop(name, None)
            return
        self._states[name], self._zone_of[name] = state, zone
        counts = self._counts.setdefault(zone, dict.fromkeys(NodeState, 0))
        counts[state] += 1
        self._sample_nodes(zone)

    def _sample_nodes(self, zone: str) -> None:
        sample = NodeSample(self.now, zone, dict(self._counts[zone]))
        last = self.node_samples[-1] if self.node_samples else None
        if last is not None and (last.at, last.zone) == (sample.at, zone):
            self.node_samples[-1] = sample
        else:
            self.node_samples.append(sample)

    # --- pods ------------------------------------------------------------------------------

    def _see_pod(self, pod: Pod) -> None:
        uid, node = pod.metadata.uid, pod.spec.node_name
        before = self.pods.get(uid)
        if before is None or before.spec.node_name != node:
            self._keys[uid] = _key(pod)
            self._by_key[_key(pod)][uid] = None
            if node:
                self._on_node[node][uid] = None
        self.pods[uid] = pod
        if before is not None and _looks(before) == _looks(pod):
            return
        if node and not self._answers.get(node, True):
            self._hit(pod)
        self._judge(_key(pod))

    def _drop(self, pod: Pod) -> None:
        uid = pod.metadata.uid
        self.pods.pop(uid, None)
        self._on_node.get(pod.spec.node_name, {}).pop(uid, None)
        mates = self._by_key.get(_key(pod), {})
        mates.pop(uid, None)
        if not mates:
            self._by_key.pop(_key(pod), None)

    def _hit(self, pod: Pod) -> None:
        """`pod` is concerned, unless it is over already."""
        if is_terminal(pod):
            return
        key, node = _key(pod), pod.spec.node_name
        self.troubles.setdefault(node, Trouble(self.now)).pods[key] = None
        hit = self.hits.get(key)
        if hit is None:
            hit = self.hits[key] = Hit(pod, node)
            self._tally[PodState.DOWN] += 1
        elif hit.state is not PodState.UP or self._state(key)[0] is not PodState.UP:
            hit.pod, hit.node = pod, node
            self._turn(hit, PodState.DOWN)
        self._sample_pods()

    def _judge(self, key: str) -> None:
        """Say how the pod called `key` is now, if it is one of those concerned.

        One that is back is no longer: what befalls it from there on has other causes.
        """
        hit = self.hits.get(key)
        if hit is None or hit.state is PodState.UP:
            return
        state, running = self._state(key)
        if state is hit.state:
            return
        self._turn(hit, state)
        if state is PodState.UP:
            self.last_back_at = self.now
            if self.first_back_at is None:
                self.first_back_at = self.now
            hit.is_replaced = hit.pod.metadata.uid != running
        self._sample_pods()

    def _turn(self, hit: Hit, state: PodState) -> None:
        self._tally[hit.state] -= 1
        self._tally[state] += 1
        hit.state = state

    def _state(self, key: str) -> tuple[PodState, str]:
        """Of those that bear the name, the best off one counts; its uid if it is up."""
        best = PodState.DOWN
        for pod in self.mates(key):
            if pod.status.phase == "Succeeded":
                return PodState.UP, pod.metadata.uid
            if is_terminating(pod) or is_terminal(pod):
                continue
            node = pod.spec.node_name
            if node and self._answers.get(node, False) and pod.status.phase == "Running":
                return PodState.UP, pod.metadata.uid
            if not node or self._answers.get(node, False):
                best = PodState.WAITING
        return best, ""

    def _keys_on(self, node: str) -> Iterator[str]:
        yield from dict.fromkeys(_key(self.pods[uid]) for uid in self._on_node.get(node, ()))

    def _sample_pods(self) -> None:
        tally = self._tally
        sample = PodSample(
            self.now,
            tally[PodState.DOWN],
            tally[PodState.WAITING],
            tally[PodState.UP],
            self._evicted,
        )
        if self.pod_samples and self.pod_samples[-1].at == self.now:
            self.pod_samples[-1] = sample
        else:
            self.pod_samples.append(sample)


def state_of(node: Node) -> NodeState:
    """How far the trouble of `node` has come, by what its object says."""
    if any(t.key in _QUIET_TAINTS and t.effect == NO_EXECUTE for t in node.spec.taints):
        return NodeState.TAINTED
    if ready_status(node) not in (TRUE, ""):
        return NodeState.UNREADY
    if _is_dark(node):
        return NodeState.UNNOTICED
    return NodeState.CORDONED if node.spec.unschedulable else NodeState.READY


def _is_answering(node: Node) -> bool:
    return not _is_dark(node) and ready_status(node) in (TRUE, "")


def _is_dark(node: Node) -> bool:
    try:
        behaviour = parse_kubelet_behaviour(node.metadata.annotations.get(KUBELET, ""))
    except ValueError:
        return False
    return behaviour.mode in (Mode.STOPPED, Mode.PAUSED)


def _key(pod: Pod) -> str:
    return f"{pod.metadata.namespace}/{original_name(pod)}"


def _looks(pod: Pod) -> tuple[str, str, bool]:
    """What a pod's state depends on."""
    return (pod.spec.node_name, pod.status.phase, is_terminating(pod))
