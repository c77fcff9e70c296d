"""Rule: what one owner wants of its pods; one module per kind of owner.

A rule only decides. It reads a `PodSet` and answers with a `Plan`; `engine.workloads.controller`
names, creates and deletes. A fuller controller (rolling updates, ordered start, backoff) is
another rule in the same place.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

from fairlead.api.json import Json
from fairlead.api.objects import Pod
from fairlead.engine.core.instant import Instant
from fairlead.engine.workloads.pod_control.pod_set import PodSet, PodState


@dataclass(frozen=True, slots=True)
class Wish:
    """A pod that should exist.

    It gets a generated name when `name` is "", which begins with `prefix`, or the owner's name.
    """

    template: Json
    slot: str = ""
    name: str = ""
    prefix: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to create, in order, and what to delete, with the reason.

    `again_at` is when to ask again although nothing may have changed until then; `is_waiting`:
    something is missing still.
    """

    create: tuple[Wish, ...] = ()
    delete: tuple[Pod, ...] = ()
    why: str = ""
    again_at: Instant | None = None
    is_waiting: bool = False


NOTHING: Plan = Plan()


class Rule(Protocol):
    """What an owner wants.

    `is_watchful`: whether anything follows from who is ready, too.
    """

    is_watchful: ClassVar[bool]

    def slot_of(self, pod: Pod) -> str:
        """The slot `pod` takes, "" when this kind of owner has none."""
        ...

    def is_loss(self, pod: Pod, after: PodState | None) -> bool:
        """Whether `pod`, active before and now `after` (None: gone), wants a successor."""
        ...

    def plan(self, pods: PodSet, slot: str | None, now: Instant) -> Plan:
        """What to do about `slot`, or about all of `pods` when it is None."""
        ...

    def follow(self, pods: PodSet, now: Instant) -> Plan:
        """What follows from who is ready, once all of an instant has settled."""
        ...
