"""Options of `fairlead run --shadow`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Group, Parameter

from fairlead.cli.options.parameter import Names, named, repeatable

SHADOW: Final = Group(
    "Shadow", help="Compare with the schedulers of the cluster; write nothing.", sort_key=1
)


@Parameter(name="*", group=SHADOW)
@dataclass(frozen=True)
class ShadowOptions:
    """What to compare, and where to write it."""

    shadow: Annotated[
        bool, Parameter(help="Decide about every pod that others place, and compare.", negative=())
    ] = False
    duration: Annotated[
        str,
        Parameter(
            name="--for",
            help="End after this time (default: on a signal).",
            metavar="DURATION",
            show_default=False,
        ),
    ] = ""
    decisions: Annotated[
        Path | None, named("FILE", "Write each comparison to FILE as a line of JSON.")
    ] = None
    report: Annotated[
        Path | None, named("FILE", "Write the summary to FILE as a page for browsers.")
    ] = None
    new_config: Annotated[
        str | None, named("FILE", "A second KubeSchedulerConfiguration to compare.")
    ] = None
    new_plugin: Annotated[
        Names, repeatable("MODULE:CLASS", "Add a scheduler plugin to the second configuration.")
    ] = ()


NO_SHADOW: Final = ShadowOptions()
