"""Options of `fairlead run --shadow`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter

from fairlead.cli.options.parameter import SHADOW, Names, named, repeatable


@Parameter(name="*", group=SHADOW)
@dataclass(frozen=True)
class ShadowOptions:
    """The options of a shadow run: a second configuration, the duration, and output files."""

    shadow: Annotated[
        bool,
        Parameter(
            help=(
                "Choose a node for every pod, and compare this node with the node that the "
                "cluster's own scheduler chooses."
            ),
            negative=(),
        ),
    ] = False
    duration: Annotated[
        str,
        Parameter(
            name="--for",
            help="Stop after this time (default: run until a signal arrives).",
            metavar="DURATION",
            show_default=False,
        ),
    ] = ""
    decisions: Annotated[
        Path | None,
        named("FILE", "Write the comparison for each pod to FILE, as one JSON object per line."),
    ] = None
    report: Annotated[
        Path | None,
        named("FILE", "Write the summary of all comparisons to FILE, as an HTML page."),
    ] = None
    new_config: Annotated[
        str | None,
        named(
            "FILE",
            "Second KubeSchedulerConfiguration, besides --config. For each pod, the command "
            "chooses a node with each of the two configurations. It compares both nodes with the "
            "node that the cluster's own scheduler chooses.",
        ),
    ] = None
    new_plugin: Annotated[
        Names,
        repeatable(
            "MODULE:CLASS",
            "Add a scheduler plugin only to the second configuration. The plugin is given as for "
            "--plugin. Without --new-config, the second configuration is the first configuration "
            "plus this plugin.",
        ),
    ] = ()


NO_SHADOW: Final = ShadowOptions()
