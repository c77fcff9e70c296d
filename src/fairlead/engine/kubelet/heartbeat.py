"""Heartbeats: what is heard of every node, its lease and the conditions that its kubelet posts.

                 told to run, or time to flap up: renew now, post
        silent ───────────────────────────────────────────────▶ heard
           ▲                                                       │
           └───────────────────────────────────────────────────────┘
             told to stop or pause, or time to flap down: the lease says when it was renewed last

A node that is heard writes nothing while nothing changes. What others make of its conditions it
puts right at its next renewal; a node that is slow says nothing between renewals. A node whose
Ready was Unknown when it was met is silent until somebody says otherwise: the annotation, or
whoever posts another Ready.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from fairlead.api.kubelet_behaviour import KUBELET, RUNNING, KubeletBehaviour, Mode, Report
from fairlead.api.lease import NODE_LEASES, Renewals
from fairlead.api.objects import Lease, Node
from fairlead.engine.core.command import Command, CreateObject, PatchObject, PatchStatus
from fairlead.engine.core.instant import DurationNs, Instant, seconds
from fairlead.engine.core.timer_queue import TimerQueue
from fairlead.engine.kubelet.node_condition import (
    UNKNOWN,
    found_conditions,
    is_news,
    post,
    ready_status,
)
from fairlead.engine.kubelet.node_lease import (
    first_renewals,
    known_renewals,
    renewals_from,
    write_lease,
)
from fairlead.engine.kubelet.voice import Voice, understood

RETRY_AFTER: Final = seconds(1)
HEARD: Final = (Mode.RUNNING, Mode.SLOW)


@dataclass(frozen=True, slots=True)
class Return:
    """A node is heard again; `was_dark` unless only its kubelet had paused."""

    node: str
    was_dark: bool


@dataclass(slots=True)
class Heartbeats:
    """All nodes, which renew their leases every `period`; `promises` as in KubeletConfig.

    `returned` collects those that are heard again, for whoever takes them out.
    """

    period: DurationNs
    promises: bool = True
    returned: list[Return] = field(default_factory=list)
    _voices: dict[str, Voice] = field(default_factory=dict)
    _leases: dict[str, Lease] = field(default_factory=dict)
    _timers: TimerQueue[Voice] = field(default_factory=TimerQueue)

    def is_heard(self, name: str) -> bool:
        """Whether there is such a node, and its kubelet is at work."""
        voice = self._voices.get(name)
        return voice is not None and voice.is_heard

    def find(self, name: str) -> Node | None:
        """The newest version of the node, None if there is none."""
        voice = self._voices.get(name)
        return None if voice is None else voice.node

    # --- learning ------------------------------------------------------------------------------

    def see_node(self, node: Node, now: Instant) -> list[Command]:
        """Follow what the node is told, and notice what others say in its name."""
        voice = self._voices.get(node.metadata.name)
        if voice is None or voice.node.metadata.uid != node.metadata.uid:
            return self._meet(node, now)
        voice.node = node
        told = node.metadata.annotations.get(KUBELET)
        is_spoken_for = voice.is_found_silent and ready_status(node) != UNKNOWN
        if told == voice.told and not is_spoken_for:
            self._notice(voice, now)
            return []
        voice.told, voice.is_found_silent = told, False
        behaviour, complaints = understood(node, voice.behaviour)
        return complaints + self._follow(voice, behaviour, now)

    def see_lease(self, lease: Lease) -> None:
        """Take note of a lease, or of what became of it."""
        if lease.metadata.namespace == NODE_LEASES:
            self._leases[lease.metadata.name] = lease

    def forget_node(self, name: str) -> None:
        """The node is gone."""
        self._voices.pop(name, None)

    def forget_lease(self, lease: Lease, now: Instant) -> list[Command]:
        """The lease is gone; a kubelet that is at work makes a new one."""
        if lease.metadata.namespace != NODE_LEASES:
            return []
        self._leases.pop(lease.metadata.name, None)
        voice = self._voices.get(lease.metadata.name)
        return [] if voice is None else self._write_lease(voice, now)

    def see_refused(self, command: CreateObject | PatchObject | PatchStatus, now: Instant) -> None:
        """What the world refused for reasons of its own is looked at again a little later."""
        if command.target.kind not in ("Node", "Lease"):
            return
        voice = self._voices.get(command.target.name)
        if voice is None:
            return
        if command.target.kind == "Node":
            self._notice(voice, now)
        elif voice.renewals is not None:
            voice.retries_at = now + RETRY_AFTER
            self._timers.add(voice.retries_at, voice)

    def measure(self, name: str, reports: tuple[Report, ...], now: Instant) -> list[Command]:
        """The kubelet has found out that it must report `reports`, and no others."""
        voice = self._voices.get(name)
        if voice is None or voice.measured == reports:
            return []
        voice.measured = reports
        return self._say(voice, now) if voice.is_heard else []

    # --- time ----------------------------------------------------------------------------------

    def next_due(self) -> Instant | None:
        """When some node flaps or looks again."""
        return self._timers.next_due()

    def act(self, now: Instant) -> list[Command]:
        """Do what has come due."""
        return [c for voice in self._timers.pop_due(now) for c in self._act(voice, now)]

    def _act(self, voice: Voice, now: Instant) -> list[Command]:
        if self._voices.get(voice.name) is not voice:
            return []
        commands: list[Command] = []
        if voice.turns_at is not None and voice.turns_at <= now:
            commands += self._fall(voice, now) if voice.is_heard else self._rise(voice, now)
            self._plan_turn(voice, now)
        if voice.posts_at is not None and voice.posts_at <= now:
            voice.posts_at = None
            if voice.is_heard and is_news(voice.node, voice.says):
                commands.append(post(voice.node, voice.says, now))
        if voice.is_due_to_write(now):
            voice.retries_at = voice.renews_at = None
            commands += self._write_lease(voice, now)
        return commands

    def _plan_turn(self, voice: Voice, now: Instant) -> None:
        voice.turns_at = None
        if voice.behaviour.mode is Mode.FLAP:
            lasts = voice.behaviour.up if voice.is_heard else voice.behaviour.dark
            voice.turns_at = now + lasts
            self._timers.add(voice.turns_at, voice)

    # --- following -----------------------------------------------------------------------------

    def _meet(self, node: Node, now: Instant) -> list[Command]:
        """A node that is new to us goes on as it was, its lease with it."""
        told = node.metadata.annotations.get(KUBELET)
        voice = Voice(node, told, found_conditions(node))
        self._voices[voice.name] = voice
        behaviour, complaints = understood(node, RUNNING)
        voice.behaviour = behaviour
        voice.is_found_silent = told is None and ready_status(node) == UNKNOWN
        if voice.is_found_silent or behaviour.mode not in HEARD:
            complaints += self._fall(voice, now)
        else:
            voice.is_heard = True
            voice.renewals = self._adopted(voice, now)
            complaints += self._write_lease(voice, now)
            complaints += [post(node, voice.says, now)] if is_news(node, voice.says) else []
        self._plan_turn(voice, now)
        return complaints

    def _follow(self, voice: Voice, behaviour: KubeletBehaviour, now: Instant) -> list[Command]:
        before, voice.behaviour = voice.behaviour, behaviour
        commands: list[Command] = []
        if behaviour.mode not in HEARD:
            commands = self._fall(voice, now)
        elif not voice.is_heard:
            commands = self._rise(voice, now, was_dark=before.mode is not Mode.PAUSED)
        else:
            commands = self._change_pace(voice, now)
            commands += self._say(voice, now) if is_news(voice.node, voice.says) else []
        self._plan_turn(voice, now)
        return commands

    def _rise(self, voice: Voice, now: Instant, *, was_dark: bool = True) -> list[Command]:
        voice.is_heard = True
        voice.renewals = renewals_from(now, self._every(voice))
        self.returned.append(Return(voice.name, was_dark))
        return [*self._write_lease(voice, now), post(voice.node, voice.says, now)]

    def _fall(self, voice: Voice, now: Instant) -> list[Command]:
        """Say no more; the lease keeps the last renewal there was."""
        voice.is_heard, voice.posts_at = False, None
        lease = self._leases.get(voice.name)
        known = voice.renewals or (None if lease is None else known_renewals(lease))
        if known is None:
            return []
        voice.renewals = Renewals(known.last(now))
        return self._write_lease(voice, now)

    def _change_pace(self, voice: Voice, now: Instant) -> list[Command]:
        """Renew more or less often from the last renewal on."""
        every = self._every(voice)
        if voice.renewals is None or voice.renewals.every == every:
            return []
        voice.renewals = Renewals(voice.renewals.last(now), every)
        return self._write_lease(voice, now)

    def _say(self, voice: Voice, now: Instant) -> list[Command]:
        """Post what has changed, at once if the kubelet is not slow."""
        if voice.behaviour.mode is Mode.SLOW:
            self._notice(voice, now)
            return []
        return [post(voice.node, voice.says, now)]

    def _notice(self, voice: Voice, now: Instant) -> None:
        """Look at the conditions at the next renewal if they are not what the kubelet says."""
        if voice.is_heard and voice.posts_at is None and is_news(voice.node, voice.says):
            every = self._every(voice)
            last = now if voice.renewals is None else voice.renewals.last(now)
            voice.posts_at = last + every
            self._timers.add(voice.posts_at, voice)

    # --- the lease -----------------------------------------------------------------------------

    def _every(self, voice: Voice) -> DurationNs:
        return voice.behaviour.every or self.period

    def _adopted(self, voice: Voice, now: Instant) -> Renewals:
        """The renewals that a lease from before goes on with."""
        lease = self._leases.get(voice.name)
        known = None if lease is None else known_renewals(lease)
        every = self._every(voice)
        if known is None or known.first > now:
            return first_renewals(voice.name, every, now)
        return known if known.every == every else Renewals(known.last(now), every)

    def _write_lease(self, voice: Voice, now: Instant) -> list[Command]:
        lease, renewals = self._leases.get(voice.name), voice.renewals
        if renewals is None or (lease is None and not voice.is_heard):
            return []
        if renewals.every and not self.promises:
            voice.renews_at = renewals.last(now) + renewals.every
            self._timers.add(voice.renews_at, voice)
            renewals = Renewals(renewals.last(now))
        if lease is not None and known_renewals(lease) == renewals:
            return []
        return [write_lease(voice.node, lease, renewals)]
