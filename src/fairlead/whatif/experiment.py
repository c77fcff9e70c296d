"""Experiment: everything one run is made of, checked and in order. Equal ones give equal runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from fairlead.engine.batch.configuration_file import BatchConfig
from fairlead.engine.core.command import Command
from fairlead.engine.core.instant import DurationNs, Instant, seconds
from fairlead.engine.kubelet.config import KubeletConfig
from fairlead.engine.nodelifecycle.config import NodeLifecycleConfig
from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.whatif import command_making
from fairlead.whatif.controller_manager import DEFAULT
from fairlead.whatif.manifest import Manifest

HORIZON_DEFAULT: Final = seconds(3600)


@dataclass(frozen=True, slots=True)
class Step:
    """`commands` are performed together, `after` the start of virtual time.

    `source` and `what` say where a refusal comes from.
    """

    after: DurationNs
    commands: tuple[Command, ...]
    source: str
    what: str

    @classmethod
    def creating(cls, after: DurationNs, manifest: Manifest) -> Step:
        """The step by which an object comes."""
        command = command_making.create(manifest)
        return cls(after, (command,), manifest.source, manifest.title)


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """A cluster, what happens to it, and for how long.

    `duration` None means: until nothing happens any more, at most `horizon` after the last step.
    """

    title: str
    source: str
    initial: tuple[Manifest, ...]
    start: Instant
    steps: tuple[Step, ...] = ()
    duration: DurationNs | None = None
    horizon: DurationNs = HORIZON_DEFAULT
    seed: int = 0
    kubelet: KubeletConfig = field(default_factory=KubeletConfig)
    scheduler: SchedulerConfig = field(default_factory=SchedulerConfig)
    batch: BatchConfig | None = None
    node_lifecycle: NodeLifecycleConfig = DEFAULT
    runs_cron_jobs: bool = False
