"""ControllerEnvironment: component variants for a served cluster and for a simulation.

The rules of all controllers are the same in a served cluster and in a simulation. This module
selects different components for two reasons:

    clients                  API clients of a served cluster read status, events and revisions, so
                             the controllers write them. No client reads a simulation. Null objects
                             replace the components that write for clients.
    missing objects          A served cluster holds all its objects. A simulation starts from a dump
                             that may lack claims and owners of pods, such as ReplicaSets. The
                             simulation replaces deleted pods of missing owners (`unknown_owner`).

In a simulation with CronJobs, statuses are written, because the CronJob controller reads them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.objects import Pod
from fairlead.engine.workloads.deployment.output import (
    NoRolloutOutput,
    RolloutOutput,
    RolloutWriter,
)
from fairlead.engine.workloads.deployment.replica_set_view import (
    CountedReplicaSets,
    ReplicaSetView,
    ReportedReplicaSets,
)
from fairlead.engine.workloads.event_sink import Events, EventSink, NoEvents
from fairlead.engine.workloads.owner_status import NoOwnerStatus, OwnerOutput, OwnerStatus
from fairlead.engine.workloads.pod_control.controller_history import Histories
from fairlead.engine.workloads.pod_control.pod_sets import PodSets
from fairlead.engine.workloads.pod_control.pod_template import (
    PodFactory,
    ServedPodFactory,
    SimulatedPodFactory,
)
from fairlead.engine.workloads.pod_control.rule import OwnerRule
from fairlead.engine.workloads.pod_control.unknown_owner import no_rule, rule_for_unknown
from fairlead.engine.workloads.status_writer import StatusWriter


class ControllerEnvironment(Struct, frozen=True, kw_only=True):
    """The parts that differ between the controllers of a served cluster and of a simulation."""

    events: EventSink
    pod_factory: PodFactory
    rule_for_unknown: Callable[[str], OwnerRule]
    owner_status: Callable[[PodSets, Histories, StatusWriter], OwnerOutput]
    rollout_output: Callable[[PodSets, StatusWriter], RolloutOutput]
    replica_set_view: Callable[[PodSets], ReplicaSetView]
    # Whether every change of a pod makes the controllers check the pod's owner, because the owner's
    # status may change.
    follows_all_pods: bool
    # Whether each pod of a Job has a finalizer until the Job's status counts the pod.
    tracks_jobs: bool
    # Whether an owner adopts a pod that no owner controls. None if the controller Adoption does not
    # run.
    adopts: Callable[[Any, Pod], bool] | None


def served_environment() -> ControllerEnvironment:
    """Return the environment for a cluster with API clients, in which all statuses are written."""
    from fairlead.engine.workloads.ownership import adopts  # noqa: PLC0415 - not for simulations

    return ControllerEnvironment(
        events=Events(),
        pod_factory=ServedPodFactory(),
        rule_for_unknown=no_rule,
        owner_status=OwnerStatus,
        rollout_output=RolloutWriter,
        replica_set_view=ReportedReplicaSets,
        follows_all_pods=True,
        tracks_jobs=True,
        adopts=adopts,
    )


def cron_job_environment() -> ControllerEnvironment:
    """Return the environment for a simulation with CronJobs; controllers write all statuses."""
    return replace(
        served_environment(),
        pod_factory=SimulatedPodFactory(),
        rule_for_unknown=rule_for_unknown,
    )


def simulated_environment() -> ControllerEnvironment:
    """Return the environment for a simulation, in which only writes that affect pods are sent."""
    return ControllerEnvironment(
        events=NoEvents(),
        pod_factory=SimulatedPodFactory(),
        rule_for_unknown=rule_for_unknown,
        owner_status=NoOwnerStatus,
        rollout_output=_no_rollout_output,
        replica_set_view=CountedReplicaSets,
        follows_all_pods=False,
        tracks_jobs=False,
        adopts=None,
    )


def _no_rollout_output(_pod_sets: PodSets, _writer: StatusWriter) -> RolloutOutput:
    return NoRolloutOutput()
