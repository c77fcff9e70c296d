"""Builds the workload controllers from the configuration."""

from __future__ import annotations

from fairlead.engine.core.controller import Controller
from fairlead.engine.workloads.adoption import Adoption
from fairlead.engine.workloads.config import VolumesConfig
from fairlead.engine.workloads.config import WorkloadsConfig
from fairlead.engine.workloads.controller import Workloads
from fairlead.engine.workloads.cron_job.controller import CronJobs
from fairlead.engine.workloads.disruption.budget_status import full_conditions
from fairlead.engine.workloads.disruption.controller import Disruption
from fairlead.engine.workloads.endpoints.controller import ServiceEndpoints
from fairlead.engine.workloads.endpoints.endpoint_slice_mirroring import EndpointMirroring
from fairlead.engine.workloads.environment import served_environment
from fairlead.engine.workloads.environment import simulated_environment
from fairlead.engine.workloads.event_sink import Events
from fairlead.engine.workloads.job.tracking_finalizer import JobOrphans
from fairlead.engine.workloads.job.ttl_after_finished import TtlAfterFinished
from fairlead.engine.workloads.volumes.claim_event import ClaimEvents
from fairlead.engine.workloads.volumes.controller import Volumes
from fairlead.engine.workloads.volumes.protection import StorageProtection
from fairlead.engine.workloads.garbage_collector import GarbageCollector

def workload_controllers(config: WorkloadsConfig) -> tuple[Controller, ...]:
    """What `config` asks for, in the order in which they are told."""
    # Adoption comes first, so that nobody makes anew what is there already.
    controllers: tuple[Controller, ...] = (Adoption(),) if config.is_observed else ()
    controllers += (Workloads(config), GarbageCollector(looks_up_owners=config.is_observed))
    if config.is_observed or config.runs_cron_jobs:
        controllers += (CronJobs(),)
    if config.is_observed:
        controllers += (JobOrphans(), TtlAfterFinished())
        controllers += (ServiceEndpoints(config), EndpointMirroring(config), StorageProtection())
    return controllers
