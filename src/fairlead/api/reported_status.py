"""The statuses of workloads and namespaces, as JSON objects with checked types.

These statuses stay JSON, because a controller reads the status of an object, changes it and writes
it back. The types in this module list all fields of upstream's types, because decoding drops a
field that is not listed. Each field may be absent.
"""

from __future__ import annotations

from typing import TypedDict

from fairlead.api.json import Json


class ReportedCondition(TypedDict, total=False):
    """An entry of status.conditions."""

    type: str
    status: str
    observedGeneration: int
    lastProbeTime: str
    lastUpdateTime: str
    lastTransitionTime: str
    reason: str
    message: str


class NamespaceStatus(TypedDict, total=False):
    """The status of a Namespace."""

    phase: str
    conditions: list[ReportedCondition]


class ReplicaSetStatus(TypedDict, total=False):
    """The status of a ReplicaSet or ReplicationController."""

    replicas: int
    fullyLabeledReplicas: int
    readyReplicas: int
    availableReplicas: int
    terminatingReplicas: int
    observedGeneration: int
    conditions: list[ReportedCondition]


class DeploymentStatus(TypedDict, total=False):
    """The status of a Deployment."""

    observedGeneration: int
    replicas: int
    updatedReplicas: int
    readyReplicas: int
    availableReplicas: int
    unavailableReplicas: int
    terminatingReplicas: int
    conditions: list[ReportedCondition]
    collisionCount: int


class StatefulSetStatus(TypedDict, total=False):
    """The status of a StatefulSet."""

    observedGeneration: int
    replicas: int
    readyReplicas: int
    currentReplicas: int
    updatedReplicas: int
    currentRevision: str
    updateRevision: str
    collisionCount: int
    conditions: list[ReportedCondition]
    availableReplicas: int


class DaemonSetStatus(TypedDict, total=False):
    """The status of a DaemonSet."""

    currentNumberScheduled: int
    numberMisscheduled: int
    desiredNumberScheduled: int
    numberReady: int
    observedGeneration: int
    updatedNumberScheduled: int
    numberAvailable: int
    numberUnavailable: int
    collisionCount: int
    conditions: list[ReportedCondition]


class ActiveJob(TypedDict, total=False):
    """An entry of status.active of a CronJob: a reference to a running Job."""

    kind: str
    namespace: str
    name: str
    uid: str
    apiVersion: str
    resourceVersion: str
    fieldPath: str


class CronJobStatus(TypedDict, total=False):
    """The status of a CronJob."""

    active: list[ActiveJob]
    lastScheduleTime: str
    lastSuccessfulTime: str


class HorizontalPodAutoscalerStatus(TypedDict, total=False):
    """The status of a HorizontalPodAutoscaler."""

    observedGeneration: int
    lastScaleTime: str
    currentReplicas: int
    desiredReplicas: int
    currentMetrics: list[Json] | None  # servers store null
    conditions: list[ReportedCondition]
