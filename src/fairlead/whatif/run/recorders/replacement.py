"""Says which pod a new pod replaces. A pod and its replacements share one pod key.

In a simulation, an annotation of each replacement states it. On a running cluster, whose pods have
no such annotation, replacements are matched with the pods of failed nodes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Protocol

from msgspec import Struct, field

from fairlead.api.objects import Pod
from fairlead.api.pods.facts import controller_of
from fairlead.api.pods.original import original_key
from fairlead.engine.workloads.pod_control.unknown_owner import REPLICA_KINDS, keeps_name

_RENAMING_KINDS: Final = (*REPLICA_KINDS, "Job")  # they create replacements under other names


class Replacements(Protocol):
    """Finds the pod key of each pod."""

    def match(self, pod: Pod, unreplaced: Iterable[tuple[str, Pod]]) -> None:
        """Look which pod the new pod `pod` replaces; called before `key_of`.

        `unreplaced` are (key, pod) of the pods of failed nodes that are deleted, terminate or have
        failed, and that have no replacement.
        """

    def key_of(self, pod: Pod) -> str:
        """Return the key of `pod`: `namespace/name` of the first pod that it replaces."""


class StatedReplacements(Struct):
    """Reads the annotation of replacements."""

    def match(self, pod: Pod, unreplaced: Iterable[tuple[str, Pod]]) -> None:
        """Do nothing."""

    def key_of(self, pod: Pod) -> str:
        """Return the key that the annotation states; the own name of a pod without annotation."""
        return original_key(pod)


class MatchedReplacements(Struct):
    """Matches each new pod with the first unreplaced pod of the same controller."""

    _keys: dict[str, str] = field(default_factory=dict)  # {uid: key}, of replacements

    def match(self, pod: Pod, unreplaced: Iterable[tuple[str, Pod]]) -> None:
        """Match `pod` with a pod of the same ReplicaSet, ReplicationController or Job."""
        owner = controller_of(pod.metadata)
        if owner is None or owner.kind not in _RENAMING_KINDS or keeps_name(owner.kind, pod):
            return
        for key, lost in unreplaced:
            other = controller_of(lost.metadata)
            if other is not None and other.uid == owner.uid:
                self._keys[pod.metadata.uid] = key
                return

    def key_of(self, pod: Pod) -> str:
        """Return the key of the pod that was matched; the own key of a pod without match."""
        return self._keys.get(pod.metadata.uid) or original_key(pod)
