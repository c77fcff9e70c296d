"""Engine: takes stimuli and returns commands.

    1. the state applies the stimulus
    2. every controller that needs the stimulus, in order, returns commands
    3. each command is tagged with its issuer

When its deadline comes, a controller does one unit of work and returns commands. The state changes
only by stimuli, with one exception. A scheduler records its own decisions in the state before the
cluster confirms them. For example, it assumes a pod on the chosen node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import count
from typing import Final, TypeVar

from fairlead.api.objects import Pod
from fairlead.engine.core.command import Command, IssuedCommand
from fairlead.engine.core.controller import (
    Controller,
    NoDeadlines,
    PodHandler,
    ReadinessHandler,
)
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.interest import EVERYTHING, Interest, Topic, topic_of
from fairlead.engine.core.issuer import Issuer
from fairlead.engine.core.stimulus import (
    CommandSucceeded,
    ObjectChanged,
    ObjectDeleted,
    ReadinessChanged,
    Stimulus,
)
from fairlead.engine.state.cluster import Cluster

Found = TypeVar("Found")

_NEVER: Final[Instant] = (1 << 63) - 1  # stored for a controller whose `next_deadline` is None


class _Member:
    """A controller of an engine.

    `place` is the index of the controller's deadline in the engine's list of deadlines. `bit`
    represents the controller in a set of controllers with deadlines. `bit` is 1 << place, or 0 if
    the controller has no deadlines.
    """

    __slots__ = ("bit", "controller", "interest", "issuer", "place")

    def __init__(self, place: int, controller: Controller) -> None:
        self.place = place
        self.bit = 0 if isinstance(controller, NoDeadlines) else 1 << place
        self.controller = controller
        self.issuer = controller.issuer
        self.interest: Interest = getattr(controller, "interest", EVERYTHING)


class _Group:
    """Some of the engine's controllers, as `members`.

    The integer `bits` contains the bits (`_Member.bit`) of the controllers that have deadlines.
    """

    __slots__ = ("bits", "members")

    def __init__(self, members: Iterable[_Member]) -> None:
        self.members = tuple(members)
        self.bits = sum(member.bit for member in self.members)


class _PodHandlers:
    """The methods of the controllers in `group` that handle one class of changes of pods.

    Each method is paired with the issuer of the commands that it returns.
    """

    __slots__ = ("bits", "methods")

    def __init__(self, group: _Group, change: type[ObjectChanged]) -> None:
        """`change` is ObjectChanged or ReadinessChanged."""
        self.bits = group.bits
        self.methods = tuple(
            (_pod_method(member.controller, change), member.issuer) for member in group.members
        )


def _pod_method(
    controller: Controller, change: type[ObjectChanged]
) -> Callable[[Pod, Instant], Sequence[Command]]:
    if change is ReadinessChanged and isinstance(controller, ReadinessHandler):
        return controller.handle_readiness
    if isinstance(controller, PodHandler):
        return controller.handle_pod
    return lambda pod, now: controller.handle(change(pod), now)


class Engine:
    """Passes stimuli and deadlines to the controllers and returns their commands.

    The engine does no I/O. The world, a real or simulated cluster, calls `handle` for each
    stimulus. It calls `handle_deadline` or `handle_overdue` when the time of `next_deadline` has
    come.
    """

    def __init__(self, cluster: Cluster, controllers: Sequence[Controller]) -> None:
        """Create an engine that passes each stimulus to `controllers` in the given order.

        If the deadlines of several controllers have come, the first of them in `controllers` works
        first. This controller works first even if another deadline is earlier.
        """
        self.cluster = cluster
        self.controllers = tuple(controllers)
        self._members = tuple(map(_Member, count(), controllers))
        self._everyone = _Group(self._members)
        self._is_selective = any(member.interest.is_selective for member in self._members)
        # The next deadline of each member. It may be outdated for the members whose bits are set in
        # `_touched`. These members have handled something since their `next_deadline` was last
        # called.
        self._deadlines: list[Instant] = [_NEVER] * len(self._members)
        self._touched = self._everyone.bits
        # The instant for which `next_deadline` has updated the deadlines; None after any change.
        # If `handle_deadline` follows at this instant, it need not update them again.
        self._checked_at: Instant | None = None
        self._always_touched = _Group(
            member for member in self._members if not member.interest.keeps_deadline
        ).bits
        # The members of a set, keyed by the bits of the set. Few of the possible sets occur: the
        # unions of the few groups below.
        self._with_bits: dict[int, tuple[_Member, ...]] = {}
        # The members that need a stimulus, by its topic and, for the success of a command, by the
        # issuer. There are few topics, because a topic consists only of classes and a kind.
        self._concerned: dict[tuple[Topic, Issuer | None], _Group] = {}
        # The members that need the success of a command, by the class and the issuer of the
        # command. The value is None if the members also depend on the kind of the written object.
        self._concerned_by_success: dict[tuple[type, Issuer | None], _Group | None] = {}
        self._concerned_by_pod_deletions = self._concerned_by((ObjectDeleted, Pod, ""))
        by_pods = self._concerned_by((ObjectChanged, Pod, ""))
        by_readiness = self._concerned_by((ReadinessChanged, Pod, ""))
        self._pod_handlers = _PodHandlers(by_pods, ObjectChanged)
        self._readiness_handlers = _PodHandlers(by_readiness, ReadinessChanged)

    def find(self, kind: type[Found]) -> Found:
        """Return the controller of class `kind`; raises LookupError if there is none."""
        for controller in self.controllers:
            if isinstance(controller, kind):
                return controller
        raise LookupError(kind.__name__)

    def handle(self, stimulus: Stimulus, now: Instant) -> list[IssuedCommand]:
        """Apply `stimulus` to the state; return the commands of all controllers."""
        self.cluster.now = now
        self._checked_at = None
        issued: list[IssuedCommand] = []
        if type(stimulus) is ObjectChanged or type(stimulus) is ReadinessChanged:
            pod = stimulus.object
            if type(pod) is Pod:
                self.cluster.apply(stimulus)
                is_readiness = type(stimulus) is ReadinessChanged
                handlers = self._readiness_handlers if is_readiness else self._pod_handlers
                self._touched |= handlers.bits
                for handle, issuer in handlers.methods:
                    commands = handle(pod, now)
                    if commands:
                        _issue(commands, issuer, issued)
                return issued
        concerned = self._selected(stimulus) if self._is_selective else self._everyone
        if not concerned.members and type(stimulus) is CommandSucceeded:
            return issued  # it changes no object, and no controller needs it
        self.cluster.apply(stimulus)
        self._touched |= concerned.bits
        for member in concerned.members:
            commands = member.controller.handle(stimulus, now)
            if commands:
                _issue(commands, member.issuer, issued)
        return issued

    def _selected(self, stimulus: Stimulus) -> _Group:
        if type(stimulus) is CommandSucceeded:
            key = type(stimulus.command), stimulus.issuer
            try:
                found = self._concerned_by_success[key]
            except KeyError:
                found = self._concerned_by_success[key] = self._after_success(stimulus)
            return found or self._concerned_by(topic_of(stimulus), stimulus.issuer)
        if type(stimulus) is ObjectDeleted and type(stimulus.object) is Pod:
            return self._concerned_by_pod_deletions
        return self._concerned_by(topic_of(stimulus))

    def _after_success(self, stimulus: CommandSucceeded) -> _Group | None:
        """Return the controllers that need `stimulus`, the success of a command.

        The result is the same for all commands of this class by this issuer. Return None if this is
        not so, because one of the issuer's controllers needs such a success only if the command
        wrote an object of certain kinds.
        """
        command, issuer = type(stimulus.command), stimulus.issuer
        members = self._members_for(issuer)
        if any(one.interest.depends_on_kind(CommandSucceeded, command) for one in members):
            return None
        return self._concerned_by(topic_of(stimulus), issuer)

    def _concerned_by(self, topic: Topic, issuer: Issuer | None = None) -> _Group:
        concerned = self._concerned.get((topic, issuer))
        if concerned is None:
            members = self._members_for(issuer)
            concerned = _Group(one for one in members if one.interest.includes(topic))
            self._concerned[topic, issuer] = concerned
        return concerned

    def _members_for(self, issuer: Issuer | None) -> list[_Member]:
        """Return the members with the issuer `issuer`; all members if it is None."""
        return [one for one in self._members if issuer is None or one.issuer == issuer]

    def next_deadline(self) -> Instant | None:
        """Return the time at which to call `handle_deadline`; a time in the past means immediately.

        Returns None if no controller has work until the next stimulus. If several deadlines have
        come, any of them may be returned.
        """
        now = self.cluster.now
        found = min(self._current_deadlines(now), default=_NEVER)
        self._checked_at = now
        return None if found == _NEVER else found

    def handle_deadline(self, now: Instant) -> list[IssuedCommand]:
        """Let the first controller whose deadline has come do one unit of work.

        Returns the controller's commands, [] if no deadline has come.
        """
        self.cluster.now = now
        is_checked = self._checked_at == now
        deadlines = self._deadlines if is_checked else self._current_deadlines(now)
        for place, due in enumerate(deadlines):
            if due <= now:
                return self._handle_deadline_of(self._members[place], now)
        return []

    def handle_overdue(self, now: Instant) -> list[IssuedCommand]:
        """Let every controller whose deadline has come do one unit of work; return the commands.

        `handle_deadline` serves only the first controller whose deadline has come. If such a
        controller always has work, the controllers after it get their turn only through
        `handle_overdue`.
        """
        self.cluster.now = now
        issued: list[IssuedCommand] = []
        for member in self._members:
            due = member.controller.next_deadline()
            self._deadlines[member.place] = _NEVER if due is None else due
            if due is not None and due <= now:
                issued += self._handle_deadline_of(member, now)
        return issued

    def _current_deadlines(self, now: Instant) -> list[Instant]:
        """Return the next deadline of each member; _NEVER stands for no deadline.

        Updates the deadlines that may have changed, in the order of the members. Stops after the
        first updated deadline that is due at `now`. So the deadlines of later members may be
        outdated. These deadlines are not needed, because `handle_deadline` serves earlier members
        first.
        """
        touched, deadlines = self._touched, self._deadlines
        if touched:
            members = self._with_bits.get(touched)
            if members is None:
                members = tuple(one for one in self._members if one.bit & touched)
                self._with_bits[touched] = members
            for member in members:
                found = member.controller.next_deadline()
                due = deadlines[member.place] = _NEVER if found is None else found
                if due <= now:
                    # The bits of this member and of all later members.
                    self._touched = touched & -member.bit | self._always_touched
                    return deadlines
            self._touched = self._always_touched
        return deadlines

    def _handle_deadline_of(self, member: _Member, now: Instant) -> list[IssuedCommand]:
        self._checked_at = None
        self._touched |= member.bit
        issued: list[IssuedCommand] = []
        _issue(member.controller.handle_deadline(now), member.issuer, issued)
        return issued


def _issue(commands: Sequence[Command], issuer: Issuer, issued: list[IssuedCommand]) -> None:
    """Append `commands` to `issued`, tagged with `issuer`."""
    for command in commands:
        # Most lists have one command. A generator or `map` would take twice the time then.
        issued.append(IssuedCommand(command, issuer))  # noqa: PERF401
