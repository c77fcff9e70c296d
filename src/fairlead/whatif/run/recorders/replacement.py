"""Says which pod a new pod replaces. A pod and its replacements share one pod key.

In a simulation, each replacement has an annotation that states the pod key. On a running cluster,
whose pods have no such annotation, replacements are matched with the pods of failed nodes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Final, Protocol

from msgspec import Struct, field

from fairlead.api.objects import OwnerReference, Pod
from fairlead.api.pods.facts import controller_of
from fairlead.api.pods.original import original_key
from fairlead.engine.workloads.pod_control.unknown_owner import REPLICA_KINDS, keeps_name

_RENAMING_KINDS: Final = (*REPLICA_KINDS, "Job")  # they create replacements under other names


class Replacements(Protocol):
    """Finds the key that a pod shares with its replacements."""

    def lose(self, pod: Pod, key: str) -> None:
        """Record that the node of `pod` has failed; `key` is the key of `pod`."""

    def match(self, pod: Pod, is_unreplaced: Callable[[str], bool]) -> None:
        """Find the pod that the new pod `pod` replaces; call this method before `key_of`.

        `is_unreplaced` takes a key that was passed to `lose`. `is_unreplaced` returns True if the
        pod with this key is deleted, terminates or has failed, and has no replacement.
        """

    def key_of(self, pod: Pod) -> str:
        """Return the key of `pod`: `namespace/name` of the first pod in its replacement chain."""


class StatedReplacements(Struct):
    """Reads pod keys from the annotation that replacements have in a simulation."""

    def lose(self, pod: Pod, key: str) -> None:
        """Do nothing."""

    def match(self, pod: Pod, is_unreplaced: Callable[[str], bool]) -> None:
        """Do nothing, because `key_of` reads the annotation of the replacement."""

    def key_of(self, pod: Pod) -> str:
        """Return the key that an annotation of `pod` states, else the key of `pod` itself."""
        return original_key(pod)


class MatchedReplacements(Struct):
    """Matches each new pod with the first unreplaced pod of the same controller."""

    _keys: dict[str, str] = field(default_factory=dict)  # {uid: key}, of replacements
    # {uid of a controller: keys of its pods of failed nodes}, oldest first
    _lost: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def lose(self, pod: Pod, key: str) -> None:
        """Record `key`, the key of `pod`, if the controller of `pod` may create a replacement."""
        if owner := _renaming_controller(pod):
            self._lost[owner.uid].append(key)

    def match(self, pod: Pod, is_unreplaced: Callable[[str], bool]) -> None:
        """Record the lost pod that `pod` replaces, if any; both pods have the same controller."""
        owner = _renaming_controller(pod)
        keys = () if owner is None else self._lost.get(owner.uid, ())
        if (lost := next(filter(is_unreplaced, keys), None)) is not None:
            self._keys[pod.metadata.uid] = lost

    def key_of(self, pod: Pod) -> str:
        """Return the key of the pod that `match` found for `pod`, or else the own key of `pod`."""
        return self._keys.get(pod.metadata.uid) or original_key(pod)


def _renaming_controller(pod: Pod) -> OwnerReference | None:
    """Return the controller of `pod` if it creates replacements under other names, else None."""
    owner = controller_of(pod.metadata)
    if owner is None or owner.kind not in _RENAMING_KINDS or keeps_name(owner.kind, pod):
        return None
    return owner
