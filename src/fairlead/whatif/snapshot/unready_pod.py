"""Pods of a dump whose containers are not ready, and the assumption about their replacements.

A simulation does not know why the containers are not ready, so the replacements of the pods become
ready. Pods that are unready only because their node failed are ignored. The node controller sets
their condition Ready to False, but not ContainersReady.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from fairlead.api.objects import Pod
from fairlead.api.pods.facts import condition
from fairlead.api.text.name_list import listed
from fairlead.engine.kubelet.pod_lifecycle import fails_to_start
from fairlead.whatif.snapshot.manifest import Manifest
from fairlead.whatif.snapshot.samples import matching_pods


def unready_pods(manifests: Iterable[Manifest], keys: Collection[str]) -> list[str]:
    """Return the `keys` of pods in `manifests` with containers that are not ready."""
    unready = matching_pods(manifests, _has_unready_containers) if keys else ()
    return [one.ref.key for one in unready if one.ref.key in keys]


def unready_note(keys: Sequence[str]) -> str:
    """Return a note that the unready pods `keys` are assumed to become ready when recreated.

    `keys` is not empty.
    """
    pods, are = ("1 pod", "is") if len(keys) == 1 else (f"{len(keys):,} pods", "are")
    who = f"{pods} that {are} not ready in the dump {are}"
    return f"{who} assumed to become ready when created again: {listed(keys)}."


def _has_unready_containers(pod: Pod) -> bool:
    if pod.status.phase == "Pending":
        return fails_to_start(pod)
    found = condition(pod, "ContainersReady")
    return pod.status.phase == "Running" and found is not None and found.status == "False"
