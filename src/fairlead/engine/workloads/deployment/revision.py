"""Revisions of a Deployment: what its ReplicaSets are annotated with.

`kubectl rollout history` and `undo` read them: each ReplicaSet has the number of the revision at
which its template was the Deployment's last, and those it had before where it came back.

upstream: pkg/controller/deployment/util/deployment_util.go:SetNewReplicaSetAnnotations,
SetDeploymentRevision, SetReplicasAnnotations, skipCopyAnnotation
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from fairlead.api.objects import ReplicaSet
from fairlead.api.text.integer import parse_int64
from fairlead.engine.workloads.deployment.rolling_update import Bounds

REVISION: Final = "deployment.kubernetes.io/revision"
REVISION_HISTORY: Final = "deployment.kubernetes.io/revision-history"
DESIRED: Final = "deployment.kubernetes.io/desired-replicas"
MOST: Final = "deployment.kubernetes.io/max-replicas"
NOT_TOLD: Final = (
    "kubectl.kubernetes.io/last-applied-configuration",
    "deprecated.deployment.rollback.to",
    REVISION,
    REVISION_HISTORY,
    DESIRED,
    MOST,
)

Annotations = Mapping[str, str]


def number_in(annotations: Annotations, key: str) -> int | None:
    """The number that an annotation holds, None when there is none."""
    text = annotations.get(key, "")
    return parse_int64(text) if text.isdecimal() else None


def revision_of(one: ReplicaSet) -> int:
    """The revision of a ReplicaSet, 0 when it has none."""
    return number_in(one.metadata.annotations, REVISION) or 0


def next_revision(others: Iterable[ReplicaSet]) -> int:
    """The revision of a template that is newer than those of `others`."""
    return max(map(revision_of, others), default=0) + 1


def size_annotations(bounds: Bounds) -> dict[str, str]:
    """How large the Deployment was to be when a ReplicaSet was scaled."""
    return {DESIRED: str(bounds.replicas), MOST: str(bounds.most)}


def told_annotations(annotations: Annotations) -> dict[str, str]:
    """Those annotations of a Deployment that its ReplicaSets have, too."""
    return {key: text for key, text in annotations.items() if key not in NOT_TOLD}


def revised(
    current: ReplicaSet, others: Iterable[ReplicaSet], deployment: Annotations
) -> Annotations:
    """What to change in the annotations of the `current` ReplicaSet."""
    before = current.metadata.annotations
    wanted = told_annotations(deployment)
    own, revision = revision_of(current), next_revision(others)
    if own < revision:
        wanted[REVISION] = str(revision)
        if own:
            history = before.get(REVISION_HISTORY, "")
            wanted[REVISION_HISTORY] = f"{history},{own}" if history else str(own)
    return {key: text for key, text in wanted.items() if before.get(key) != text}
