"""From configuration to the controllers that make pods and clean up after owners."""

from __future__ import annotations

from fairlead.engine.core.controller import Controller
from fairlead.engine.workloads.adoption import Adoption
from fairlead.engine.workloads.config import WorkloadsConfig
from fairlead.engine.workloads.controller import Workloads
from fairlead.engine.workloads.cron_job.controller import CronJobs
from fairlead.engine.workloads.endpoints.controller import ServiceEndpoints
from fairlead.engine.workloads.endpoints.endpoint_slice_mirroring import EndpointMirroring
from fairlead.engine.workloads.garbage import Garbage
from fairlead.engine.workloads.job.tracking_finalizer import JobOrphans
from fairlead.engine.workloads.job.ttl_after_finished import TtlAfterFinished
from fairlead.engine.workloads.volumes.protection import StorageProtection


def workload_controllers(config: WorkloadsConfig) -> tuple[Controller, ...]:
    """What `config` asks for, in the order in which they are told."""
    # Adoption comes first, so that nobody makes anew what is there already.
    controllers: tuple[Controller, ...] = (Adoption(),) if config.is_observed else ()
    controllers += (Workloads(config), Garbage(config.is_observed))
    if config.is_observed or config.runs_cron_jobs:
        controllers += (CronJobs(),)
    if config.is_observed:
        controllers += (JobOrphans(), TtlAfterFinished())
        controllers += (ServiceEndpoints(config), EndpointMirroring(config), StorageProtection())
    return controllers
