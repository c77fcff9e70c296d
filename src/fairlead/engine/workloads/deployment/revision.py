"""Revision annotations of a Deployment's ReplicaSets, for `kubectl rollout history` and `undo`.

A ReplicaSet has the number of the last revision that used its template. If a template is restored,
its ReplicaSet gets a new number. The earlier numbers are kept in the revision history.

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
DESIRED_REPLICAS: Final = "deployment.kubernetes.io/desired-replicas"
MAX_REPLICAS: Final = "deployment.kubernetes.io/max-replicas"
ANNOTATIONS_TO_SKIP: Final = (
    "kubectl.kubernetes.io/last-applied-configuration",
    "deprecated.deployment.rollback.to",
    REVISION,
    REVISION_HISTORY,
    DESIRED_REPLICAS,
    MAX_REPLICAS,
)

Annotations = Mapping[str, str]


def number_in(annotations: Annotations, key: str) -> int | None:
    """Return the number in the annotation `key`, or None if it does not contain a number."""
    text = annotations.get(key, "")
    return parse_int64(text) if text.isdecimal() else None


def revision_of(replica_set: ReplicaSet) -> int:
    """Return the revision number of a ReplicaSet, or 0 if it has no revision annotation."""
    return number_in(replica_set.metadata.annotations, REVISION) or 0


def next_revision(others: Iterable[ReplicaSet]) -> int:
    """Return 1 plus the highest revision number of `others`."""
    return max(map(revision_of, others), default=0) + 1


def size_annotations(bounds: Bounds) -> dict[str, str]:
    """Return the annotations that record `bounds` on a ReplicaSet when it is scaled."""
    return {DESIRED_REPLICAS: str(bounds.replicas), MAX_REPLICAS: str(bounds.max_pods)}


def copied_annotations(annotations: Annotations) -> dict[str, str]:
    """Return the entries of a Deployment's `annotations` that are copied to its ReplicaSets."""
    return {key: text for key, text in annotations.items() if key not in ANNOTATIONS_TO_SKIP}


def revised(
    current: ReplicaSet, others: Iterable[ReplicaSet], deployment: Annotations
) -> Annotations:
    """Return the annotations to change on the `current` ReplicaSet, with their new values.

    `others` are the Deployment's other ReplicaSets. `deployment` contains the Deployment's
    annotations.
    """
    before = current.metadata.annotations
    wanted = copied_annotations(deployment)
    own, revision = revision_of(current), next_revision(others)
    if own < revision:
        wanted[REVISION] = str(revision)
        if own:
            history = before.get(REVISION_HISTORY, "")
            wanted[REVISION_HISTORY] = f"{history},{own}" if history else str(own)
    return {key: text for key, text in wanted.items() if before.get(key) != text}
