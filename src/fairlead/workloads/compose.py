"""From configuration to the controllers that make pods and clean up after owners."""

from __future__ import annotations

from fairlead.core.controller import Controller
from fairlead.workloads.config import WorkloadsConfig
from fairlead.workloads.controller import Workloads
from fairlead.workloads.garbage import Garbage


def workload_controllers(config: WorkloadsConfig) -> tuple[Controller, ...]:
    """What `config` asks for, in the order in which they are told."""
    return (Workloads(config), Garbage())
