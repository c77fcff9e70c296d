"""The options that state how long simulated pods take to start, to complete and to be deleted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from cyclopts import Parameter

from fairlead.cli.options.parameter import SIMULATION, Names, named, repeatable

StartupTime = Annotated[
    str,
    named(
        "DURATION",
        "Time from the binding of a pod until the pod is ready, such as 30s. By default, this is "
        "the time that pods of the same workload took in the dump, or 1s if that time is unknown.",
    ),
]
StageFiles = Annotated[
    Names,
    repeatable(
        "FILE",
        "File with KWOK Stages, which set how long pods take to start, complete and be deleted. "
        "Stages in the dump apply too (docs/scenarios.md).",
    ),
]


@Parameter(name="*", group=SIMULATION)
@dataclass(frozen=True)
class PodTimeOptions:
    """The options for the times of pods in the drains that a plan simulates."""

    startup_time: StartupTime = ""
    kwok_stages: StageFiles = ()


NO_POD_TIMES: Final = PodTimeOptions()
