"""Heartbeats: the Lease of every node, and the conditions that its kubelet posts.

                annotation says run, or flapping node comes up: renew now, post
      stopped ──────────────────────────────────────────────────────────────▶ reporting
         ▲                                                                        │
         └────────────────────────────────────────────────────────────────────────┘
           annotation says stop or pause, or flapping node goes down:
           write the time of the last renewal to the Lease

The annotation is `fairlead.dev/kubelet` on the Node. "Post" means writing the node's conditions.

A reporting kubelet posts its conditions when they change. If another client overwrites them, the
kubelet corrects them at its next renewal. A slow kubelet posts only at renewals. If a new node has
no annotation and its Ready condition is Unknown, its kubelet counts as stopped. The kubelet counts
as stopped until the node gets an annotation, or another client posts a different Ready status. A
node that is starting (`api.nodes.readiness`) becomes Ready after `READY_AFTER`.

If the renewal of a lease is refused, the next renewal repeats it. If the creation of a lease is
refused, the kubelet repeats it after 0.2 s, 0.4 s and so on, up to 7 s.

If `annotates_renewals` is set, an annotation of the Lease states the interval of the renewals
(`api/lease.py`), and the kubelet does not write each renewal. The kubelet writes the Lease only
when the renewals begin or end, or when their interval changes. Nodes renew at different times: a
hash of a node's name determines the offset of its renewals within the renewal interval.

upstream: pkg/kubelet/kubelet.go (nodeLeaseController: leases last 40 s, renewed every 10 s),
staging/src/k8s.io/component-helpers/apimachinery/lease/controller.go: sync, backoffEnsureLease
"""

from __future__ import annotations

from typing import Any, Final
from zlib import crc32

from msgspec import Struct, field

from fairlead.api.lease import NODE_LEASES, RENEWED_EVERY, Renewals, renewals_of
from fairlead.api.nodes.kubelet_behaviour import KUBELET, RUNNING, KubeletBehaviour, Mode, Report
from fairlead.api.nodes.readiness import READY_AFTER, UNKNOWN, is_starting, ready_status
from fairlead.api.objects import Lease, Node
from fairlead.api.timestamp import NANOSECONDS_PER_MICROSECOND, format_duration, format_micro_time
from fairlead.engine.core.command import Command, CreateObject, ObjectRef, PatchObject, PatchStatus
from fairlead.engine.core.instant import DurationNs, Instant, seconds
from fairlead.engine.core.reporter import KubeletFlapped, Reporter, SilentReporter
from fairlead.engine.core.timer_queue import TimerQueue
from fairlead.engine.kubelet.node_status.kubelet_state import KubeletState, read_behaviour
from fairlead.engine.kubelet.node_status.node_condition import (
    HEALTHY,
    found_conditions,
    needs_post,
    post,
)

# upstream: lease/controller.go: backoffEnsureLease, maxBackoff
CREATION_RETRY_INITIAL: Final = seconds(0.2)
CREATION_RETRY_MAX: Final = seconds(7)
REPORTING: Final = (Mode.RUNNING, Mode.SLOW)
LEASE_DURATION_S: Final = 40


class Resumption(Struct, frozen=True):
    """A kubelet that has resumed.

    `was_down` is True if the machine was off, and False if the kubelet was only paused.
    """

    node: str
    was_down: bool


class Heartbeats(Struct):
    """The heartbeats of all nodes; each kubelet renews its node's lease every `period` ns.

    See KubeletConfig for `annotates_renewals` and `renews_leases`. `resumed` lists the kubelets
    that have resumed; the caller clears it. `reporter` gets a record when a flapping kubelet stops
    or resumes.
    """

    period: DurationNs
    annotates_renewals: bool = True
    renews_leases: bool = True
    resumed: list[Resumption] = field(default_factory=list)
    reporter: Reporter = field(default_factory=SilentReporter)
    _kubelets: dict[str, KubeletState] = field(default_factory=dict)
    _leases: dict[str, Lease] = field(default_factory=dict)
    _timers: TimerQueue[KubeletState] = field(default_factory=TimerQueue)

    def is_reporting(self, name: str) -> bool:
        """Return whether the node `name` exists and its kubelet works."""
        kubelet = self._kubelets.get(name)
        return kubelet is not None and kubelet.is_reporting

    def find(self, name: str) -> Node | None:
        """Return the newest version of the node `name`; None if there is no such node."""
        kubelet = self._kubelets.get(name)
        return None if kubelet is None else kubelet.node

    # --- observations --------------------------------------------------------------------------

    def observe_node(self, node: Node, now: Instant) -> list[Command]:
        """Apply a new node or a new version of a node. Return the resulting writes and events."""
        kubelet = self._kubelets.get(node.metadata.name)
        if kubelet is None or kubelet.node.metadata.uid != node.metadata.uid:
            return self._add(node, now)
        kubelet.node = node
        annotation = node.metadata.annotations.get(KUBELET)
        is_restarted = kubelet.is_assumed_stopped and ready_status(node) != UNKNOWN
        if annotation == kubelet.annotation and not is_restarted:
            self._schedule_post(kubelet, now)
            return []
        kubelet.annotation, kubelet.is_assumed_stopped = annotation, False
        behaviour, warnings = read_behaviour(node, kubelet.behaviour)
        return warnings + self._change_behaviour(kubelet, behaviour, now)

    def observe_lease(self, lease: Lease, now: Instant) -> list[Command]:
        """Store `lease`, the newest version of a node's Lease; return the resulting writes.

        If the kubelet has stopped, but `lease` still has periodic renewals, a write ends these
        renewals. Such a lease results if the kubelet stopped before it saw that its lease had been
        created. If another client has changed the renewals in the lease of a working kubelet, the
        kubelet corrects them at its next renewal.
        """
        if lease.metadata.namespace != NODE_LEASES:
            return []
        self._leases[lease.metadata.name] = lease
        kubelet = self._kubelets.get(lease.metadata.name)
        if kubelet is None:
            return []
        kubelet.lease_refusals = 0
        known = known_renewals(lease)
        if not kubelet.is_reporting:
            return self._stop(kubelet, now) if known is not None and known.every else []
        if self._announces and kubelet.renewals is not None and known != kubelet.renewals:
            kubelet.retries_at = kubelet.renewals.last(now) + kubelet.renewals.every
            self._timers.add(kubelet.retries_at, kubelet)
        return []

    def forget_node(self, name: str) -> None:
        """Remove the kubelet of the deleted node `name`."""
        self._kubelets.pop(name, None)

    def forget_lease(self, lease: Lease, now: Instant) -> list[Command]:
        """Handle the deletion of `lease`. A working kubelet creates its lease again."""
        if lease.metadata.namespace != NODE_LEASES:
            return []
        self._leases.pop(lease.metadata.name, None)
        kubelet = self._kubelets.get(lease.metadata.name)
        return [] if kubelet is None else self._write_lease(kubelet, now)

    def observe_refused(
        self, command: CreateObject | PatchObject | PatchStatus, now: Instant
    ) -> None:
        """Schedule a retry of `command`, a write to a Node or Lease that was refused."""
        if command.target.kind not in ("Node", "Lease"):
            return
        kubelet = self._kubelets.get(command.target.name)
        if kubelet is None:
            return
        if command.target.kind == "Node":
            self._schedule_post(kubelet, now)
        elif kubelet.renewals is not None:
            kubelet.retries_at = _next_attempt(kubelet, kubelet.renewals, command, now)
            self._timers.add(kubelet.retries_at, kubelet)

    def report_pressures(
        self, name: str, reports: tuple[Report, ...], now: Instant
    ) -> list[Command]:
        """Set the pressures that the node `name` reports from now on.

        Returns the writes that report the change; [] if nothing is written now.
        """
        kubelet = self._kubelets.get(name)
        if kubelet is None or kubelet.measured == reports:
            return []
        kubelet.measured = reports
        return self._post_change(kubelet, now) if kubelet.is_reporting else []

    # --- time ----------------------------------------------------------------------------------

    def next_due(self) -> Instant | None:
        """Return the time at which the next node flaps, posts conditions or renews its lease.

        Returns None if nothing is scheduled for any node.
        """
        return self._timers.next_due()

    def act(self, now: Instant) -> list[Command]:
        """Let the kubelets that are due at `now` act; return their commands."""
        return [c for kubelet in self._timers.pop_due(now) for c in self._act(kubelet, now)]

    def _act(self, kubelet: KubeletState, now: Instant) -> list[Command]:
        if self._kubelets.get(kubelet.name) is not kubelet:
            return []
        commands: list[Command] = []
        if kubelet.flaps_at is not None and kubelet.flaps_at <= now:
            commands += (
                self._stop(kubelet, now) if kubelet.is_reporting else self._resume(kubelet, now)
            )
            self._plan_flap(kubelet, now)
        if kubelet.posts_at is not None and kubelet.posts_at <= now:
            kubelet.posts_at = None
            if kubelet.is_reporting and needs_post(kubelet.node, kubelet.conditions):
                commands += post(kubelet.node, kubelet.conditions, now)
        if kubelet.is_due_to_write(now):
            kubelet.retries_at = kubelet.renews_at = None
            if kubelet.is_reporting and not self.renews_leases:
                commands += post(kubelet.node, kubelet.conditions, now)
            commands += self._write_lease(kubelet, now)
        return commands

    def _plan_flap(self, kubelet: KubeletState, now: Instant) -> None:
        kubelet.flaps_at = None
        if kubelet.behaviour.mode is Mode.FLAP:
            lasts = kubelet.behaviour.on if kubelet.is_reporting else kubelet.behaviour.off
            kubelet.flaps_at = now + lasts
            self._timers.add(kubelet.flaps_at, kubelet)
            self.reporter.report(KubeletFlapped(kubelet.name, kubelet.is_reporting, now))

    # --- changes of nodes ----------------------------------------------------------------------

    def _add(self, node: Node, now: Instant) -> list[Command]:
        """Add a new node. Its kubelet continues in the state that the node and its lease show."""
        annotation = node.metadata.annotations.get(KUBELET)
        behaviour, warnings = read_behaviour(node, RUNNING)
        base = found_conditions(node, behaviour.reports)
        kubelet = self._kubelets[node.metadata.name] = KubeletState(
            node, annotation, base, behaviour
        )
        kubelet.is_assumed_stopped = annotation is None and ready_status(node) == UNKNOWN
        if kubelet.is_assumed_stopped or behaviour.mode not in REPORTING:
            warnings += self._stop(kubelet, now)
        else:
            kubelet.is_reporting = True
            kubelet.renewals = self._adopted(kubelet, now)
            warnings += self._write_lease(kubelet, now)
            if is_starting(node):
                kubelet.posts_at = now + READY_AFTER
                self._timers.add(kubelet.posts_at, kubelet)
            elif needs_post(node, kubelet.conditions):
                warnings += post(node, kubelet.conditions, now)
        self._plan_flap(kubelet, now)
        return warnings

    def _change_behaviour(
        self, kubelet: KubeletState, behaviour: KubeletBehaviour, now: Instant
    ) -> list[Command]:
        before, kubelet.behaviour = kubelet.behaviour, behaviour
        commands: list[Command] = []
        if behaviour.mode not in REPORTING:
            commands = self._stop(kubelet, now)
        elif not kubelet.is_reporting:
            commands = self._resume(kubelet, now, was_down=before.mode is not Mode.PAUSED)
        else:
            commands = self._change_pace(kubelet, now)
            commands += (
                self._post_change(kubelet, now)
                if needs_post(kubelet.node, kubelet.conditions)
                else []
            )
        self._plan_flap(kubelet, now)
        return commands

    def _resume(
        self, kubelet: KubeletState, now: Instant, *, was_down: bool = True
    ) -> list[Command]:
        kubelet.is_reporting = True
        if was_down:  # conditions from before the restart of the machine no longer hold
            kubelet.base = HEALTHY
        kubelet.renewals = renewals_from(now, self._period(kubelet))
        self.resumed.append(Resumption(kubelet.name, was_down))
        return self._write_lease(kubelet, now) + post(kubelet.node, kubelet.conditions, now)

    def _stop(self, kubelet: KubeletState, now: Instant) -> list[Command]:
        """Stop the heartbeats of a kubelet.

        Returns the last write to its Lease; [] if the kubelet never had a Lease.
        """
        kubelet.is_reporting, kubelet.posts_at = False, None
        lease = self._leases.get(kubelet.name)
        known = kubelet.renewals or (None if lease is None else known_renewals(lease))
        if known is None:
            return []
        kubelet.renewals = Renewals(known.last(now))
        return self._write_lease(kubelet, now)

    def _change_pace(self, kubelet: KubeletState, now: Instant) -> list[Command]:
        """If the renewal period has changed, apply the new period; return the writes of the lease.

        The new period counts from the last renewal.
        """
        every = self._period(kubelet)
        if kubelet.renewals is None or kubelet.renewals.every == every:
            return []
        kubelet.renewals = Renewals(kubelet.renewals.last(now), every)
        return self._write_lease(kubelet, now)

    def _post_change(self, kubelet: KubeletState, now: Instant) -> list[Command]:
        """Return the commands that immediately post the changed conditions of `kubelet`.

        If the kubelet is slow, schedule the post for the next renewal instead, and return [].
        """
        if kubelet.behaviour.mode is Mode.SLOW:
            self._schedule_post(kubelet, now)
            return []
        return post(kubelet.node, kubelet.conditions, now)

    def _schedule_post(self, kubelet: KubeletState, now: Instant) -> None:
        """Schedule a post of the kubelet's conditions if the Node's conditions differ from them.

        The post is due at the next renewal. Does nothing if the kubelet is not reporting, or if a
        post is already scheduled.
        """
        if (
            kubelet.is_reporting
            and kubelet.posts_at is None
            and needs_post(kubelet.node, kubelet.conditions)
        ):
            every = self._period(kubelet)
            last = now if kubelet.renewals is None else kubelet.renewals.last(now)
            kubelet.posts_at = last + every
            self._timers.add(kubelet.posts_at, kubelet)

    # --- the lease -----------------------------------------------------------------------------

    @property
    def _announces(self) -> bool:
        """Whether an annotation of each lease states the period of renewals.

        If so, the kubelet does not write each renewal.
        """
        return self.annotates_renewals and self.renews_leases

    def _period(self, kubelet: KubeletState) -> DurationNs:
        return kubelet.behaviour.every or self.period

    def _adopted(self, kubelet: KubeletState, now: Instant) -> Renewals:
        """Return the renewals that the kubelet's lease has from `now` on.

        The renewals recorded in the lease continue, with the kubelet's current period. If the lease
        has no renewals, or if they begin in the future, new renewals begin (`first_renewals`).
        """
        lease = self._leases.get(kubelet.name)
        known = None if lease is None else known_renewals(lease)
        every = self._period(kubelet)
        if known is None or known.first > now:
            return first_renewals(kubelet.name, every, now)
        return known if known.every == every else Renewals(known.last(now), every)

    def _write_lease(self, kubelet: KubeletState, now: Instant) -> list[Command]:
        lease, renewals = self._leases.get(kubelet.name), kubelet.renewals
        if renewals is None or (lease is None and not kubelet.is_reporting):
            return []
        if renewals.every and not self._announces:
            kubelet.renews_at = renewals.last(now) + renewals.every
            self._timers.add(kubelet.renews_at, kubelet)
            renewals = Renewals(renewals.last(now))
        if not self.renews_leases:
            return []
        if lease is not None and known_renewals(lease) == renewals:
            return []
        return [write_lease(kubelet.node, lease, renewals)]


def _next_attempt(
    kubelet: KubeletState, renewals: Renewals, refused: Command, now: Instant
) -> Instant:
    """Return when `kubelet` repeats `refused`, a write to its lease; count the refusal.

    `renewals` are the renewals that the write states. A patch that ends the renewals is repeated
    like the creation of a lease, because no renewal follows.
    """
    if isinstance(refused, PatchObject) and renewals.every:
        return renewals.last(now) + renewals.every
    doublings = min(kubelet.lease_refusals, CREATION_RETRY_MAX.bit_length())
    kubelet.lease_refusals += 1
    return now + min(CREATION_RETRY_INITIAL << doublings, CREATION_RETRY_MAX)


def first_renewals(name: str, every: DurationNs, now: Instant) -> Renewals:
    """Return renewals with the period `every` ns for a node that is added at `now`.

    The first renewal is at `now`, or up to one period earlier. The exact time depends on the hash
    of `name`.
    """
    phase = crc32(name.encode()) * every >> 32
    return renewals_from(now - (now - phase) % every, every)


def renewals_from(first: Instant, every: DurationNs) -> Renewals:
    """Return renewals that begin at `first` and have a period of `every` ns.

    `first` is rounded down to microseconds, as in a MicroTime.
    """
    return Renewals(first - first % NANOSECONDS_PER_MICROSECOND, every)


def known_renewals(lease: Lease) -> Renewals | None:
    """Return the renewals of `lease`; None if the lease cannot be parsed."""
    try:
        return renewals_of(lease)
    except ValueError:
        return None


def write_lease(node: Node, lease: Lease | None, renewals: Renewals) -> CreateObject | PatchObject:
    """Return the command that writes `renewals` to `lease`.

    If `lease` is None, the command creates the lease of `node`.
    """
    every = format_duration(renewals.every) if renewals.every else None
    renew_time = format_micro_time(renewals.first)
    if lease is not None:
        meta = lease.metadata
        target = ObjectRef("Lease", meta.namespace, meta.name, meta.uid)
        patch: dict[str, Any] = {"spec": {"renewTime": renew_time}}
        if every or RENEWED_EVERY in meta.annotations:
            patch["metadata"] = {"annotations": {RENEWED_EVERY: every}}
        return PatchObject(target, patch)
    return CreateObject(_manifest(node, every, renew_time))


def _manifest(node: Node, every: str | None, renew_time: str) -> dict[str, Any]:
    meta = node.metadata
    owner = {"apiVersion": "v1", "kind": "Node", "name": meta.name, "uid": meta.uid}
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": meta.name,
            "namespace": NODE_LEASES,
            "ownerReferences": [owner],
            **({"annotations": {RENEWED_EVERY: every}} if every else {}),
        },
        "spec": {
            "holderIdentity": meta.name,
            "leaseDurationSeconds": LEASE_DURATION_S,
            "renewTime": renew_time,
        },
    }
