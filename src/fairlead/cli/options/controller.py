"""Options named like kube-controller-manager's flags for unresponsive nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from cyclopts import Group, Parameter
from cyclopts.help import ColumnSpec, DefaultFormatter, DescriptionRenderer, NameRenderer

from fairlead.cli.options.parameter import named

# Upstream's names are long; the default width would break them on a terminal of 80 columns.
NAME_WIDTH: Final = 38
_NAMES: Final = ColumnSpec(
    renderer=NameRenderer(max_width=NAME_WIDTH), style="cyclopts.name", max_width=NAME_WIDTH
)
_TEXTS: Final = ColumnSpec(renderer=DescriptionRenderer(), overflow="fold")

CONTROLLERS: Final = Group(
    "Controllers",
    help="kube-controller-manager's flags for unresponsive nodes.",
    sort_key=2,
    help_formatter=DefaultFormatter(column_specs=(_NAMES, _TEXTS)),
)


@Parameter(name="*", group=CONTROLLERS)
@dataclass(frozen=True)
class ControllerOptions:
    """The values of kube-controller-manager's flags; "" means upstream's default."""

    node_monitor_period: Annotated[
        str, named("DURATION", "Interval between checks of node health (default 5s).")
    ] = ""
    node_monitor_grace_period: Annotated[
        str,
        named(
            "DURATION",
            "Time without heartbeats before a node becomes Unknown (default 50s; 1.16: 40s).",
        ),
    ] = ""
    node_startup_grace_period: Annotated[
        str,
        named("DURATION", "Grace period of a node that has never posted its status (default 1m)."),
    ] = ""
    node_eviction_rate: Annotated[
        str, named("RATE", "Nodes per second to taint in a zone (default 0.1).")
    ] = ""
    secondary_node_eviction_rate: Annotated[
        str,
        named(
            "RATE",
            "Nodes per second to taint in a large, partially unhealthy zone (default 0.01).",
        ),
    ] = ""
    unhealthy_zone_threshold: Annotated[
        str,
        named("SHARE", "Fraction of nodes not ready at which a zone is unhealthy (default 0.55)."),
    ] = ""
    large_cluster_size_threshold: Annotated[
        str,
        named(
            "NODES",
            "Stop evictions in partially unhealthy zones of at most this many nodes (default 50).",
        ),
    ] = ""
    terminated_pod_gc_threshold: Annotated[
        str, named("PODS", "Number of finished pods above which the oldest are deleted.")
    ] = ""
    pod_eviction_timeout: Annotated[
        str,
        named(
            "DURATION", "Delay before pods on an unready node are deleted (default 5m; 1.16 only)."
        ),
    ] = ""
    enable_taint_manager: Annotated[
        str, named("BOOL", "false: do not evict pods from tainted nodes (1.16 only).")
    ] = ""

    @property
    def flags(self) -> dict[str, str]:
        """The flags that were given, keyed by name without leading dashes."""
        values = vars(self).items()
        return {name.replace("_", "-"): value for name, value in values if value}


NO_FLAGS: Final = ControllerOptions()
