"""Builds the workload controllers from the configuration."""

from __future__ import annotations

from fairlead.engine.core.controller import Controller
from fairlead.engine.workloads.config import VolumesConfig, WorkloadsConfig
from fairlead.engine.workloads.controller import Workloads
from fairlead.engine.workloads.deletion.garbage_collector import GarbageCollector
from fairlead.engine.workloads.deletion.in_use_protection import InUseProtection
from fairlead.engine.workloads.disruption.budget_status import full_conditions
from fairlead.engine.workloads.disruption.controller import Disruption
from fairlead.engine.workloads.environment import (
    cron_job_environment,
    served_environment,
    simulated_environment,
)
from fairlead.engine.workloads.event_sink import Events, NoEvents
from fairlead.engine.workloads.guard_pods import GuardPods
from fairlead.engine.workloads.horizontal_pod_autoscaler.config import HorizontalPodAutoscalerConfig
from fairlead.engine.workloads.horizontal_pod_autoscaler.controller import HorizontalPodAutoscalers
from fairlead.engine.workloads.horizontal_pod_autoscaler.scale_target import OtherScales
from fairlead.engine.workloads.job.tracking_finalizer import EndedJobPods, JobOrphans
from fairlead.engine.workloads.volumes.controller import Volumes


def workload_controllers(config: WorkloadsConfig) -> tuple[Controller, ...]:
    """Return the workload controllers in the order in which they handle changes."""
    if not config.serves_clients:
        return (
            Workloads(config, simulated_environment()),
            GarbageCollector(config=config),
            EndedJobPods(),
            GuardPods(),
            InUseProtection(),
        )
    # A simulation does not use these controllers, and importing them takes a tenth of a small run.
    from fairlead.engine.workloads.adoption import Adoption  # noqa: PLC0415
    from fairlead.engine.workloads.cron_job.controller import CronJobs  # noqa: PLC0415
    from fairlead.engine.workloads.endpoints.controller import ServiceEndpoints  # noqa: PLC0415
    from fairlead.engine.workloads.endpoints.endpoint_slice_mirroring import (  # noqa: PLC0415
        EndpointMirroring,
    )
    from fairlead.engine.workloads.job.ttl_after_finished import (  # noqa: PLC0415
        TtlAfterFinished,
    )

    return (
        Adoption(),  # first, so that adopted pods are not created again
        Workloads(
            config, cron_job_environment() if config.starts_from_dump else served_environment()
        ),
        GarbageCollector(looks_up_owners=not config.starts_from_dump, config=config),
        CronJobs(),
        JobOrphans(),
        TtlAfterFinished(),
        ServiceEndpoints(config),
        EndpointMirroring(config),
        InUseProtection(),
    )


def volume_controller(config: VolumesConfig, workloads: WorkloadsConfig) -> Volumes:
    """Return the controller of volumes and claims."""
    if not workloads.serves_clients:
        return Volumes(config, provisions_old=False)
    from fairlead.engine.workloads.volumes.claim_event import ClaimEvents  # noqa: PLC0415

    output = ClaimEvents(provisions=config.provisions)
    return Volumes(config, output, is_complete=not workloads.starts_from_dump)


def volume_providers(
    config: VolumesConfig, workloads: WorkloadsConfig, *, provisions: bool
) -> tuple[Controller, ...]:
    """Return the controllers that do the work of CSI drivers.

    If `provisions` is set, one of these controllers provisions volumes. The controller `Volumes`
    provisions volumes itself, so `provisions` is needed only if another program replaces `Volumes`.
    """
    provisioner: tuple[Controller, ...] = ()
    if provisions:
        from fairlead.engine.workloads.volumes.external_provisioner import (  # noqa: PLC0415
            ExternalProvisioner,
        )

        provisioner = (ExternalProvisioner(config),)
    if not workloads.serves_clients:
        return provisioner
    from fairlead.engine.workloads.volumes.external_resizer import (  # noqa: PLC0415
        ExternalResizer,
    )

    return (*provisioner, ExternalResizer(config))


def disruption_controller(workloads: WorkloadsConfig) -> Disruption:
    """Return the controller of PodDisruptionBudgets."""
    if not workloads.serves_clients:
        return Disruption(config=workloads)
    return Disruption(Events(), full_conditions, _custom_scales(), workloads)


def _custom_scales() -> OtherScales:
    # Imported here, because simulations do not scale custom resources.
    from fairlead.engine.workloads.horizontal_pod_autoscaler.custom_scale import (  # noqa: PLC0415
        CustomScales,
    )

    return CustomScales()


def pod_autoscaler(
    config: HorizontalPodAutoscalerConfig, workloads: WorkloadsConfig
) -> HorizontalPodAutoscalers:
    """Return the controller of HorizontalPodAutoscalers."""
    if not workloads.serves_clients:
        return HorizontalPodAutoscalers(config, NoEvents())
    return HorizontalPodAutoscalers(config, Events(), _custom_scales())
