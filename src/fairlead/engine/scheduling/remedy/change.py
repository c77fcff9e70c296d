"""RemedyChange and Remedy: changes that make a rejected pod fit."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from fairlead.api.objects import Node, Pod
from fairlead.engine.state.pod_info import PodInfo


class RemedyChange(Struct, frozen=True):
    """One change that may make a rejected pod fit.

    Exactly one of `pod`, `node` and `without` is set.
    """

    what: str  # the text for users
    pod: Pod | None = None  # the changed pod to schedule
    node: Node | None = None  # the changed node
    without: tuple[PodInfo, ...] = ()  # the pods to delete
    # Whether the change lowers a request of the pod by more than half. After such a change, the pod
    # could hardly do its work.
    is_drastic: bool = False


def deleting(pods: Sequence[PodInfo], because: str = "") -> RemedyChange:
    """Return the change that deletes `pods`; `because` is appended to the text of the change.

    If all `pods` are already being deleted, the text says to wait for them.
    """
    names = ", ".join(pod.key for pod in pods)
    noun = "pod" if len(pods) == 1 else "pods"
    what = f"delete {noun} {names}"
    if all(pod.terminating for pod in pods):
        what = f"wait for the end of the terminating {noun} {names}"
    return RemedyChange(f"{what}{because}", without=tuple(pods))


class Remedy(Struct, frozen=True):
    """Changes that together make the pod fit the node; usually a single change."""

    changes: tuple[RemedyChange, ...]

    @property
    def what(self) -> str:
        """The texts of all changes, joined."""
        return ", then ".join(change.what for change in self.changes)

    @property
    def is_drastic(self) -> bool:
        """Whether one of the changes is drastic; see `RemedyChange`."""
        return any(change.is_drastic for change in self.changes)
