"""Options that say which scheduler runs in the cluster today, for commands that plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from cyclopts import Parameter

from fairlead.cli.options.input import MaxInput
from fairlead.cli.options.parameter import integer, named
from fairlead.cli.options.plugin import AllowExtenders, Plugins


@Parameter(name="*")
@dataclass(frozen=True)
class PresentOptions:
    """The scheduler's configuration, and a seed for its choices."""

    config: Annotated[
        str | None,
        named("FILE", "Current KubeSchedulerConfiguration (default: kube-scheduler's defaults)."),
    ] = None
    plugin: Plugins = ()
    max_input: MaxInput = None
    allow_extenders: AllowExtenders = False
    seed: Annotated[
        int,
        Parameter(help="Seed for tie-breaking and other random choices.", converter=integer),
    ] = 0


PRESENT_DEFAULTS: Final = PresentOptions()
