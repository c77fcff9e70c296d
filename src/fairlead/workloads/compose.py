"""From configuration to the controllers that make pods and clean up after owners."""

from __future__ import annotations

from fairlead.core.controller import Controller
from fairlead.workloads.adoption import Adoption
from fairlead.workloads.config import WorkloadsConfig
from fairlead.workloads.controller import Workloads
from fairlead.workloads.cron_jobs import CronJobs
from fairlead.workloads.endpoint_mirroring import EndpointMirroring
from fairlead.workloads.endpoints import ServiceEndpoints
from fairlead.workloads.garbage import Garbage
from fairlead.workloads.job_tracking import JobOrphans
from fairlead.workloads.storage_protection import StorageProtection
from fairlead.workloads.ttl_after_finished import TtlAfterFinished


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
