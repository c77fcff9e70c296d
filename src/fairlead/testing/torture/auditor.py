"""Auditor: sits between the world and the engine, and checks every command and every record.

The properties that it checks are the laws (`Law`). The Auditor has its own model of the cluster.
This model is built only from the stimuli that the engine received, and from the commands and
records that the engine returned. A cut watch withholds changes from both the engine and this model.
So a decision that is wrong because of a cut watch breaks no law. A decision that is wrong because
of a defect in the engine's state breaks a law.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from fairlead.api.objects import ApiObject, Node, Pod, PodGroup
from fairlead.api.pods.facts import is_terminal, is_terminating, pod_priority
from fairlead.api.pods.requests import pod_requests
from fairlead.api.quantity import whole_value
from fairlead.api.timestamp import parse_timestamp
from fairlead.engine.batch.info.group import GROUP_NAME_ANNOTATION
from fairlead.engine.core.command import (
    Bind,
    CreateObject,
    DeleteObject,
    IssuedCommand,
    ObjectRef,
    PatchObject,
    RecordEvent,
)
from fairlead.engine.core.instant import Instant, seconds
from fairlead.engine.core.reporter import (
    NodeTainted,
    PodPlaced,
    PodPreempting,
    PodUnschedulable,
    Record,
    ZoneAssessed,
)
from fairlead.engine.core.stimulus import (
    CommandFailed,
    CommandSucceeded,
    FailureReason,
    ObjectChanged,
    ObjectDeleted,
    ObjectsLoaded,
    Stimulus,
)
from fairlead.engine.engine import Engine
from fairlead.engine.nodelifecycle.eviction.taint_eviction import TRIES_MAX
from fairlead.engine.state.resource_columns import allocatable_amount
from fairlead.testing.torture.fault.unreliable_plugin import UnreliablePlugin
from fairlead.testing.torture.karpenter_auditor import KarpenterAuditor
from fairlead.testing.torture.law import Law, LawBrokenError

OUTAGE_TAINTS: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
VALIDATE_EVERY: Final = 400  # in deadlines
_REFUSAL: Final = re.compile(
    r"(?s)0/\d+ nodes are available: .+|no nodes available to schedule pods"
)
_PLUGIN_ERROR: Final = re.compile(r"plugin '(\w+)' failed: .+")
_RATE_TOLERANCE: Final = seconds(0.1)  # the period of the tainting passes
# If the previous write of a node's taints is observed only after this time, the time of the next
# write's token is unknown. A tainting pass chooses a node and takes a token of the zone's rate
# limiter. The taint is written only after the previous write (of another taint of the node) has
# been observed. So a late observation delays the write, but not the token. Example: tokens taken at
# 2271.24 s and 2281.29 s, writes at 2271.94 s and 2281.29 s. A delay within the tolerance of rates
# does not matter. upstream: pkg/controller/nodelifecycle/scheduler/rate_limited_queue.go:
# RateLimitedTimedQueue.Try
_OBSERVATION_DELAY_MAX: Final = _RATE_TOLERANCE


class Auditor:
    """Wraps an engine, and checks each command and each record of the engine.

    Raises LawBrokenError if a check fails. `checked` counts the checks of each `Law`, by its name.
    `unexpected_jobs` contains (namespace, name) of each Job that a CronJob reported as unexpected.
    `now` is the time of the engine's last step. `suspended_until` is the time until which the
    engine's process is suspended.
    """

    def __init__(
        self, checked: Counter[str], on_command: Callable[[IssuedCommand, Instant], None]
    ) -> None:
        """Start with an empty model; `on_command` is called with every command and the time."""
        self._checked = checked
        self._on_command = on_command
        self._pods: dict[str, Pod] = {}
        self._seen_on_node: dict[str, Instant] = {}  # by uid, when the engine received a bound pod
        self._by_node: dict[str, dict[str, None]] = {}
        self._by_group: dict[str, dict[str, None]] = {}
        self._groups: dict[str, PodGroup] = {}
        self._nodes: dict[str, Node] = {}
        self._changed_at: dict[str, Instant] = {}  # by node, when its capacity changed
        self._arrived: dict[str, Instant] = {}  # by uid, when a pod got its node
        self._taints: dict[str, list[tuple[str, Instant]]] = {}
        self._retries_left: dict[str, int] = {}  # by uid, after an eviction that a taint allowed
        self._placed: dict[str, str] = {}  # the nodes of assumed pods, by uid
        self._binding: dict[str, str] = {}  # by uid; the Bind has no outcome yet
        self._taint_sent: dict[str, list[Instant]] = {}  # by node
        self._unseen_writes: dict[str, Instant] = {}  # by node, not observed yet
        self._pending_writes: dict[str, Instant] = {}  # by node, the first write without an outcome
        self._delayed: dict[str, Instant] = {}  # by node, when a write was observed late
        self._last_taint_sent: dict[str, Instant] = {}
        self._rates: dict[str, float] = {}
        self._karpenter = KarpenterAuditor(checked, self._nodes, self._pods, self._pods_on)
        self._deadlines = 0
        self.unexpected_jobs: set[tuple[str, str]] = set()
        self.suspended_until: Instant = 0
        self.now: Instant = 0

    def attach(self, engine: Engine) -> None:
        """Start to check `engine`."""
        self.engine = engine

    # --- CommandSource ----------------------------------------------------------------------

    def handle(self, stimulus: Stimulus, now: Instant) -> Sequence[IssuedCommand]:
        """Pass `stimulus` to the engine, and check the commands that the engine returns."""
        self.now = now
        self._learn(stimulus)
        return self._audited(self.engine.handle(stimulus, now))

    def next_deadline(self) -> Instant | None:
        """Return the engine's next deadline; None if there is no deadline.

        The result is never before `suspended_until`.
        """
        due = self.engine.next_deadline()
        return None if due is None else max(due, self.suspended_until)

    def handle_deadline(self, now: Instant) -> Sequence[IssuedCommand]:
        """Let the engine handle its deadline, and check the commands that it returns."""
        self.now = now
        self._deadlines += 1
        issued = self._audited(self.engine.handle_deadline(now))
        if self._deadlines % VALIDATE_EVERY == 0:
            self.validate()
        return issued

    def _audited(self, issued: Sequence[IssuedCommand]) -> Sequence[IssuedCommand]:
        bound: dict[str, int] = {}
        for one in issued:
            self._on_command(one, self.now)
            match one.command:
                case Bind() as bind:
                    self._check_bind(bind)
                    group = self._group_of(bind.pod.uid)
                    if group:
                        bound[group] = bound.get(group, 0) + 1
                case DeleteObject(why=why) as deletion if why.startswith("taint"):
                    self._check_taint_eviction(deletion)
                case PatchObject(ObjectRef(kind="Node", name=name), patch):
                    adds = self._adds_outage(name, patch.get("spec", {}).get("taints") or ())
                    if adds and self._delayed.get(name) != self.now:
                        self._taint_sent.setdefault(name, []).append(self.now)
                    self._unseen_writes.setdefault(name, self.now)
                    self._pending_writes.setdefault(name, self.now)
                case RecordEvent(regarding=cron_job, reason="UnexpectedJob", note=note):
                    self.unexpected_jobs.add((cron_job.namespace, note.rpartition(": ")[2]))
                case _:
                    pass
        for group in bound:
            self._check_gang(group)
        self._karpenter.check(issued)
        return issued

    def _adds_outage(self, node: str, taints: Sequence[Mapping[str, Any]]) -> bool:
        """Return whether `taints` contains an outage taint that the observed node does not have.

        An outage taint makes the node lifecycle controller evict pods (`_is_of_outage`). `taints`
        contains all taints that the node has after the write. Only a write that adds an outage
        taint counts for the eviction rate.
        """
        known = self._nodes.get(node)
        keys = {one.key for one in known.spec.taints if one.effect == "NoExecute"} if known else ()
        return any(_is_of_outage(one) and one["key"] not in keys for one in taints)

    # --- Reporter ---------------------------------------------------------------------------

    def report(self, record: Record) -> None:
        """Check `record`, and update the auditor's model of the cluster with it."""
        match record:
            case PodPlaced(pod, node):
                self._placed[pod.uid] = node
                self._arrived.setdefault(pod.uid, self.now)
                self._check_room(pod, node, record.started)
            case PodUnschedulable():
                self._placed.pop(record.pod.uid, None)
                self._check_refusal(record)
            case PodPreempting():
                self._check_victims(record)
            case ZoneAssessed(zone, state):
                self._rates[zone] = max(record.eviction_rate, self._rates.get(zone, 0.0))
                if state in ("", "Initial"):
                    self._last_taint_sent.pop(zone, None)
            case NodeTainted(node, zone, _, True):
                # The record comes with the outcome, which may be late. The token was taken when the
                # write was sent. If conflicts caused several writes, it was taken when the first
                # was sent. If a write had to wait until an earlier write was observed, the time of
                # its token is unknown.
                sent = self._taint_sent.pop(node, [])
                if sent:
                    self._check_rate(zone, sent)
            case _:
                pass

    # --- what the engine received -------------------------------------------------------------

    def _learn(self, stimulus: Stimulus) -> None:
        match stimulus:
            case ObjectChanged(view):
                self._observe(view, self.now)
            case ObjectDeleted(view):
                self._forget(view)
            case ObjectsLoaded(views):
                for view in views:
                    self._observe(view, _since(view, self.now))
            case CommandFailed() | CommandSucceeded():
                self._record_outcome(stimulus)
            case _:
                pass

    def _record_outcome(self, outcome: CommandFailed | CommandSucceeded) -> None:
        match outcome:
            case CommandFailed(CreateObject() as command, reason):
                if reason is not FailureReason.ALREADY_EXISTS:
                    self._karpenter.drop_claim(command.target.name)
            case CommandFailed(Bind(pod=pod)):
                self._binding.pop(pod.uid, None)
                self._placed.pop(pod.uid, None)
            case CommandSucceeded(Bind(pod=pod)):
                self._binding.pop(pod.uid, None)
            case CommandSucceeded(PatchObject(ObjectRef(kind="Node", name=name))):
                if self.now - self._pending_writes.pop(name, self.now) >= _OBSERVATION_DELAY_MAX:
                    self._delayed[name] = self.now
            case _:
                pass

    def _observe(self, view: ApiObject, since: Instant) -> None:
        match view:
            case Pod():
                self._observe_pod(view, since)
            case Node():
                before = self._nodes.get(view.metadata.name)
                if before is None or before.status.allocatable != view.status.allocatable:
                    self._changed_at[view.metadata.name] = since
                self._nodes[view.metadata.name] = view
                written = self._unseen_writes.pop(view.metadata.name, self.now)
                if self.now - written >= _OBSERVATION_DELAY_MAX:
                    self._delayed[view.metadata.name] = self.now
                self._observe_taints(view, since)
            case PodGroup():
                self._groups[view.key] = view
            case _:
                self._karpenter.observe(view)

    def _observe_pod(self, pod: Pod, since: Instant) -> None:
        uid, node = pod.metadata.uid, pod.spec.node_name
        self._pods[uid] = pod
        group = pod.metadata.annotations.get(GROUP_NAME_ANNOTATION)
        if group:
            self._by_group.setdefault(f"{pod.metadata.namespace}/{group}", {})[uid] = None
        if node:
            self._placed.pop(uid, None)
            self._seen_on_node.setdefault(uid, since)
            self._arrived.setdefault(uid, since)
            self._by_node.setdefault(node, {})[uid] = None

    def _observe_taints(self, node: Node, since: Instant) -> None:
        """Record the NoExecute taints of `node` with the time of each taint.

        The time of a taint without timeAdded is `since`. Removed taints stay recorded until the
        node has no NoExecute taint.
        """
        current = [one for one in node.spec.taints if one.effect == "NoExecute"]
        stretch = self._taints.setdefault(node.metadata.name, [])
        if not current:
            stretch.clear()
        known = {key for key, _ in stretch}
        for one in current:
            if one.key not in known:
                added = parse_timestamp(one.time_added) if one.time_added else since
                stretch.append((one.key, min(added, self.now)))

    def _forget(self, view: ApiObject) -> None:
        self._karpenter.forget(view)
        match view:
            case Pod():
                uid = view.metadata.uid
                self._pods.pop(uid, None)
                self._placed.pop(uid, None)
                self._seen_on_node.pop(uid, None)
                self._arrived.pop(uid, None)
                for index in (self._by_node, self._by_group):
                    for members in index.values():
                        members.pop(uid, None)
            case Node():
                # Its taints stay recorded: the timers of its pods are not cancelled (upstream:
                # taint_eviction.go: handleNodeUpdate).
                self._nodes.pop(view.metadata.name, None)
            case PodGroup():
                self._groups.pop(view.key, None)
            case _:
                pass

    def _group_of(self, uid: str) -> str:
        pod = self._pods.get(uid)
        name = pod.metadata.annotations.get(GROUP_NAME_ANNOTATION) if pod is not None else None
        return f"{pod.metadata.namespace}/{name}" if pod is not None and name else ""

    # --- laws -------------------------------------------------------------------------------

    def _require(self, holds: bool, law: Law, message: str) -> None:  # noqa: FBT001
        self._checked[law.name] += 1
        if not holds:
            raise LawBrokenError(law, message)

    def _check_bind(self, bind: Bind) -> None:
        uid, pod = bind.pod.uid, self._pods.get(bind.pod.uid)
        where = f"Bind of {bind.pod.key} to {bind.node}"
        self._require(uid not in self._binding, Law.BOUND_ONCE, f"{where}: another one is pending")
        node = "" if pod is None else pod.spec.node_name
        self._require(not node, Law.BOUND_ONCE, f"{where}: it is on {node}")
        is_new = uid not in self._placed
        self._binding[uid] = self._placed[uid] = bind.node
        self._arrived.setdefault(uid, self.now)
        if is_new:
            self._check_room(bind.pod, bind.node, self.now)

    def _check_room(self, ref: ObjectRef, name: str, began: Instant) -> None:
        """Check that the node `name` has room for the pod `ref`.

        Neither the requests nor the number of pods may exceed the node's allocatable amounts.
        `began` is the time at which the pod's scheduling cycle began. If an extender took time to
        answer, `began` is before now. In this case, other pods that got the node at `began` or
        later are not counted. If the node's capacity changed after `began`, nothing is checked.
        """
        node, newcomer = self._nodes.get(name), self._pods.get(ref.uid)
        if node is None or newcomer is None or self._changed_at[name] > began:
            return
        offered = node.status.allocatable
        pods = [
            pod
            for pod in self._pods_on(name)
            if began == self.now or pod is newcomer or self._arrived[pod.metadata.uid] < began
        ]
        limit = whole_value(offered.get("pods", 0))
        where = f"{ref.key} on {name}"
        self._require(len(pods) <= limit, Law.ROOM, f"{where}: {len(pods)} pods of {limit}")
        used: Counter[str] = Counter()
        for pod in pods:
            used.update(pod_requests(pod, existing=pod is not newcomer))
        for resource, amount in pod_requests(newcomer).items():
            if not amount or resource == "pods":
                continue
            room = allocatable_amount(resource, offered)
            self._require(
                used[resource] <= room, Law.ROOM, f"{where}: {resource} {used[resource]} of {room}"
            )

    def _pods_on(self, node: str) -> Iterator[Pod]:
        """Yield the pods that are bound to `node` or assumed on it; terminal pods are left out."""
        here = self._by_node.get(node, {})
        coming = [uid for uid, there in self._placed.items() if there == node and uid not in here]
        for uid in (*here, *coming):
            pod = self._pods.get(uid)
            if pod is not None and not is_terminal(pod):
                yield pod

    def _check_gang(self, key: str) -> None:
        group = self._groups.get(key)
        if group is None:
            return
        members = [uid for uid in self._by_group.get(key, {}) if self._has_place(uid)]
        minimum = group.spec.min_member
        self._require(
            len(members) >= minimum, Law.WHOLE_GANG, f"{key}: {len(members)} of {minimum} members"
        )

    def _has_place(self, uid: str) -> bool:
        """Return whether a pod is bound to a node, or assumed on a node.

        The result is False for terminating and failed pods.
        """
        pod = self._pods.get(uid)
        if pod is None or is_terminating(pod) or pod.status.phase == "Failed":
            return False
        return bool(pod.spec.node_name) or uid in self._placed

    def _check_victims(self, record: PodPreempting) -> None:
        preemptor = self._pods.get(record.pod.uid)
        for ref in record.victims:
            victim = self._pods.get(ref.uid)
            if victim is None or preemptor is None:
                continue
            lower = pod_priority(victim) < pod_priority(preemptor)
            self._require(lower, Law.LOWER_VICTIM, f"{record.pod.key} preempts {ref.key}")

    def _check_refusal(self, record: PodUnschedulable) -> None:
        in_own_words = record.is_error or record.is_binding or self._group_of(record.pod.uid)
        has_reason = bool(record.message if in_own_words else _REFUSAL.match(record.message))
        self._require(has_reason, Law.REASON, f"{record.pod.key}: {record.message!r}")
        # A scheduler catches exceptions of its plugins. The reason that it reports contains the
        # name of the plugin. Only UnreliablePlugin may raise exceptions.
        error = _PLUGIN_ERROR.search(f"{record.message} {record.post_filter or ''}")
        is_meant = error is None or error[1] == UnreliablePlugin.name
        self._require(is_meant, Law.NO_CRASH, f"{record.pod.key}: {record.message!r}")

    def _check_rate(self, zone: str, sent: Sequence[Instant]) -> None:
        """Check that a taint write respects the eviction rate of `zone`.

        `sent` contains the possible times of the write. At least one of these times must be far
        enough from the time of the previous taint write in the zone.
        """
        rate, last = self._rates.get(zone, 0.0), self._last_taint_sent.get(zone)
        self._last_taint_sent[zone] = sent[0]
        if last is None or not rate:
            return
        gap = seconds(1 / rate) - _RATE_TOLERANCE
        apart = max(abs(at - last) for at in sent)  # outcomes may arrive in another order
        self._require(apart >= gap, Law.ZONE_RATE, f"zone {zone}: {apart / 1e9:.1f} s")

    def _check_taint_eviction(self, deletion: DeleteObject) -> None:
        pod = self._pods.get(deletion.target.uid)
        if pod is None:
            return
        placed = self._seen_on_node.get(pod.metadata.uid, self.now)
        stretch = self._taints.get(pod.spec.node_name, [])
        may = any(
            (limit := _tolerated_s(pod, key)) is not None
            and max(since, placed) + seconds(limit) <= self.now
            for key, since in stretch
        )
        # Upstream repeats a refused deletion without checking the taints again.
        uid = deletion.target.uid
        left = TRIES_MAX if may else self._retries_left.get(uid, 0)
        self._retries_left[uid] = left - 1
        may = left > 0
        self._require(may, Law.TOLERATION, f"{deletion.target.key}: {deletion.why}, {stretch}")

    def validate(self) -> None:
        """Check the pods of each node in the engine's state, and the sums over these pods.

        The sums, such as the requested CPU, must match the pods. The pods must be the pods that the
        auditor's model has on the node. Raises LawBrokenError if there is a difference.
        """
        self._checked[Law.STATE.name] += 1
        table = self.engine.cluster.table
        try:
            table.validate()
        except AssertionError as cause:
            raise LawBrokenError(Law.STATE, f"node {cause}") from cause
        for info in table.nodes():
            known = {pod.metadata.uid for pod in self._pods_on(info.name)}
            # A pod that is deleted during the call of an extender stays assumed until its Bind is
            # refused. upstream: schedule_one.go: schedulingCycle does not look up the pod again.
            known |= {
                uid
                for uid, node in self._placed.items()
                if node == info.name and uid not in self._pods
            }
            held = {pod.uid for pod in info.pods.values()}
            if known != held:
                message = f"{info.name}: {len(held)} pods in place of {len(known)}"
                odd = sorted(self._name(uid) for uid in known ^ held)
                raise LawBrokenError(Law.STATE, f"{message}: {', '.join(odd)}")

    def _name(self, uid: str) -> str:
        pod = self._pods.get(uid)
        return uid if pod is None else pod.key


def _since(view: ApiObject, now: Instant) -> Instant:
    """Return the creation time of a loaded object, or `now` if the object has no creation time."""
    created = view.metadata.creation_timestamp
    return min(now, parse_timestamp(created)) if created else now


def _is_of_outage(taint: Mapping[str, Any]) -> bool:
    """Return whether `taint` makes the node lifecycle controller evict pods."""
    return taint.get("effect") == "NoExecute" and taint.get("key") in OUTAGE_TAINTS


def _tolerated_s(pod: Pod, key: str) -> int | None:
    """Return how many seconds a pod tolerates a NoExecute taint with `key`.

    Returns 0 if no toleration matches the taint, and None if the pod tolerates it forever.
    """
    found = [one for one in pod.spec.tolerations if one.key in ("", key)]
    found = [one for one in found if one.effect in ("", "NoExecute")]
    if not found:
        return 0
    limits = [one.toleration_seconds for one in found]
    return min((max(0, one) for one in limits if one is not None), default=None)
