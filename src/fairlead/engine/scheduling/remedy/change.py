"""Change: one thing that could be done about a rejection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fairlead.api.objects import Node, Pod
from fairlead.engine.state.pod_info import PodInfo


@dataclass(frozen=True, slots=True)
class RemedyChange:
    """`what` says it to a user; exactly one of the others is set.

    `pod` is the pod to schedule as it would be, `node` the node as it would be, `without` the
    other pods that would be gone.
    """

    what: str
    pod: Pod | None = None
    node: Node | None = None
    without: tuple[PodInfo, ...] = ()


def deleting(pods: Sequence[PodInfo], because: str = "") -> RemedyChange:
    """Let `pods` go; `because` is added where it says more than the names do."""
    names = ", ".join(pod.key for pod in pods)
    noun = "pod" if len(pods) == 1 else "pods"
    return RemedyChange(f"delete {noun} {names}{because}", without=tuple(pods))


@dataclass(frozen=True, slots=True)
class Remedy:
    """Changes that together make the node fit; one is best, several where none suffices alone."""

    changes: tuple[RemedyChange, ...]

    @property
    def what(self) -> str:
        """In words."""
        return ", then ".join(change.what for change in self.changes)
