"""Engine: takes stimuli and returns commands.

    1. the state applies the stimulus; nothing else writes the state
    2. every controller that needs the stimulus, in order, returns commands
    3. each command is tagged with the controller that issued it

When a deadline is reached, its controller does one unit of work at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from fairlead.api.objects import Pod
from fairlead.engine.core.command import Issued
from fairlead.engine.core.controller import Controller, PodHandler
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.interest import EVERYTHING, Interest, Topic, topic_of
from fairlead.engine.core.stimulus import (
    CommandSucceeded,
    ObjectChanged,
    ReadinessChanged,
    Stimulus,
)
from fairlead.engine.state.cluster import Cluster

Found = TypeVar("Found")


class _Member:
    """A controller of an engine, with the next deadline that it last returned."""

    __slots__ = (
        "controller",
        "due",
        "handle_pod",
        "interest",
        "is_outdated",
        "issuer",
        "keeps_deadline",
    )

    def __init__(self, controller: Controller) -> None:
        self.controller = controller
        self.issuer = controller.issuer
        self.handle_pod = controller.handle_pod if isinstance(controller, PodHandler) else None
        self.interest: Interest = getattr(controller, "interest", EVERYTHING)
        self.keeps_deadline = self.interest.keeps_deadline
        self.due: Instant | None = None
        self.is_outdated = True

    def next_deadline(self) -> Instant | None:
        if self.is_outdated:
            self.due = self.controller.next_deadline()
            self.is_outdated = not self.keeps_deadline
        return self.due

    def handle_deadline(self, now: Instant) -> list[Issued]:
        self.is_outdated = True
        issuer = self.issuer
        return [Issued(command, issuer) for command in self.controller.handle_deadline(now)]


class Engine:
    """Passes stimuli and deadlines to the controllers and returns their commands.

    It does no I/O; `handle`, `handle_deadline` and `handle_overdue` are the only entry points.
    """

    def __init__(self, cluster: Cluster, controllers: Sequence[Controller]) -> None:
        """Pass stimuli to `controllers` in this order, which also orders equal deadlines.

        A controller with an attribute `interest` gets only the stimuli that the interest includes.
        """
        self.cluster = cluster
        self.controllers = tuple(controllers)
        self._members = tuple(map(_Member, controllers))
        self._is_selective = any(member.interest.is_selective for member in self._members)
        # Topics are few: they are pairs of classes.
        self._concerned: dict[Topic, tuple[_Member, ...]] = {}
        # Members by the class of a command that succeeded, if the kind that it wrote is irrelevant.
        self._concerned_by_success: dict[type, tuple[_Member, ...]] = {}
        self._concerned_by_pods = self._concerned_by((ObjectChanged, Pod, ""))
        self._concerned_by_readiness = self._concerned_by((ReadinessChanged, Pod, ""))

    def find(self, kind: type[Found]) -> Found:
        """Return the controller of class `kind`, for inspection.

        Raises LookupError if the engine has no such controller.
        """
        for controller in self.controllers:
            if isinstance(controller, kind):
                return controller
        raise LookupError(kind.__name__)

    def handle(self, stimulus: Stimulus, now: Instant) -> list[Issued]:
        """Apply `stimulus` to the state.

        Return the commands of all controllers in response to it.
        """
        self.cluster.now = now
        self.cluster.apply(stimulus)
        if isinstance(stimulus, ObjectChanged) and type(stimulus.object) is Pod:
            return self._handle_pod(stimulus, stimulus.object, now)
        issued: list[Issued] = []
        for member in self._selected(stimulus) if self._is_selective else self._members:
            member.is_outdated = True
            commands = member.controller.handle(stimulus, now)
            if commands:
                issuer = member.issuer
                issued += [Issued(command, issuer) for command in commands]
        return issued

    def _handle_pod(self, changed: ObjectChanged, pod: Pod, now: Instant) -> list[Issued]:
        """Return the commands of all controllers in response to the changed `pod`."""
        issued: list[Issued] = []
        is_readiness = type(changed) is ReadinessChanged
        for member in self._concerned_by_readiness if is_readiness else self._concerned_by_pods:
            member.is_outdated = True
            handle = member.handle_pod
            commands = (
                member.controller.handle(changed, now) if handle is None else handle(pod, now)
            )
            if commands:
                issuer = member.issuer
                issued += [Issued(command, issuer) for command in commands]
        return issued

    def _selected(self, stimulus: Stimulus) -> tuple[_Member, ...]:
        """Return the members that need `stimulus`; most outcomes are found by two classes."""
        if type(stimulus) is CommandSucceeded:
            found = self._concerned_by_success.get(type(stimulus.command))
            return self._after_success(stimulus) if found is None else found
        return self._concerned_by(topic_of(stimulus))

    def _after_success(self, stimulus: CommandSucceeded) -> tuple[_Member, ...]:
        concerned, command = self._concerned_by(topic_of(stimulus)), type(stimulus.command)
        if not any(
            one.interest.depends_on_kind(CommandSucceeded, command) for one in self._members
        ):
            self._concerned_by_success[command] = concerned
        return concerned

    def _concerned_by(self, topic: Topic) -> tuple[_Member, ...]:
        concerned = self._concerned.get(topic)
        if concerned is None:
            concerned = tuple(one for one in self._members if one.interest.includes(topic))
            self._concerned[topic] = concerned
        return concerned

    def next_deadline(self) -> Instant | None:
        """Return the time at which to call `handle_deadline`; a time in the past means immediately.

        Returns None if no controller has work until the next stimulus.
        """
        found: Instant | None = None
        for member in self._members:
            due = member.next_deadline() if member.is_outdated else member.due
            if due is not None and (found is None or due < found):
                found = due
        return found

    def handle_deadline(self, now: Instant) -> list[Issued]:
        """Let the first controller with due work do one unit of it; return the commands."""
        self.cluster.now = now
        for member in self._members:
            # Most deadlines are known: the driver has just asked for the next one.
            due = member.next_deadline() if member.is_outdated else member.due
            if due is not None and due <= now:
                return member.handle_deadline(now)
        return []

    def handle_overdue(self, now: Instant) -> list[Issued]:
        """Let every controller with due work do one unit of it; return the commands.

        Used while the first controllers always have due work, so that the other controllers get
        their turn, too.
        """
        self.cluster.now = now
        issued: list[Issued] = []
        for member in self._members:
            due = member.next_deadline()
            if due is not None and due <= now:
                issued += member.handle_deadline(now)
        return issued
