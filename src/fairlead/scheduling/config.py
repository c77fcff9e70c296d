"""SchedulerConfig: what a scheduler is configured with, beside its plugins' arguments."""

from __future__ import annotations

from dataclasses import dataclass, field

from fairlead.framework.profile import Profile
from fairlead.scheduling.backoff import BackoffConfig


@dataclass(frozen=True, slots=True)
class SchedulerConfig:
    """`profiles` have distinct scheduler names; pods that name another one are not ours."""

    profiles: tuple[Profile, ...] = (Profile(),)
    backoff: BackoffConfig = field(default_factory=BackoffConfig)
