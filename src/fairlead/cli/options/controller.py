"""Options named like kube-controller-manager's flags for unresponsive nodes and finished pods."""

# Annotations are not texts here: Cyclopts would compile and evaluate each text several times.
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Group, Parameter

from fairlead.cli.options.parameter import CONTROLLERS_SORT_KEY, named

if TYPE_CHECKING:
    from cyclopts.help import HelpPanel
    from rich.console import Console, ConsoleOptions

# Upstream's names are long; the default width would break them on a terminal of 80 columns.
NAME_WIDTH: Final = 38


def _print_options(console: "Console", options: "ConsoleOptions", panel: "HelpPanel") -> None:
    """Print the help of the options in `panel` with a column of width NAME_WIDTH for names."""
    # Imported here, because only the help needs it.
    from cyclopts.help import ColumnSpec, DefaultFormatter, DescriptionRenderer, NameRenderer

    names = ColumnSpec(
        renderer=NameRenderer(max_width=NAME_WIDTH), style="cyclopts.name", max_width=NAME_WIDTH
    )
    texts = ColumnSpec(renderer=DescriptionRenderer(), overflow="fold")
    DefaultFormatter(column_specs=(names, texts))(console, options, panel)


def _group(text: str) -> Group:
    return Group(
        "Controllers", help=text, sort_key=CONTROLLERS_SORT_KEY, help_formatter=_print_options
    )


RUNNING: Final = _group(
    "kube-controller-manager's flags for unresponsive nodes. --enable-taint-manager needs "
    "--controllers taint-eviction; all other flags need --controllers node-lifecycle. Durations: "
    "40s, 5m, 1h30m."
)
CONTROLLERS: Final = _group(
    "kube-controller-manager's flags for unresponsive nodes and finished pods. Durations: 40s, 5m,"
    " 1h30m."
)


@Parameter(name="*", group=RUNNING)
@dataclass(frozen=True)
class NodeFlags:
    """The values of kube-controller-manager's node flags; "" means upstream's default."""

    node_monitor_period: Annotated[
        str, named("DURATION", "Interval between checks of node health (default: 5s).")
    ] = ""
    node_monitor_grace_period: Annotated[
        str,
        named(
            "DURATION",
            "Time without heartbeats after which a node becomes Unknown (default: 50s; with "
            "--behave-like 1.16, 1.19 or 1.21: 40s).",
        ),
    ] = ""
    node_startup_grace_period: Annotated[
        str,
        named(
            "DURATION",
            "Time after which a new node that has never posted a status becomes Unknown (default:"
            " 1m).",
        ),
    ] = ""
    node_eviction_rate: Annotated[
        str,
        named(
            "RATE",
            "Rate at which nodes that are not ready get NoExecute taints, in nodes per second in "
            "each zone (default: 0.1).",
        ),
    ] = ""
    secondary_node_eviction_rate: Annotated[
        str,
        named(
            "RATE",
            "Like --node-eviction-rate, for zones that are large and partially unhealthy "
            "(default: 0.01). The option --large-cluster-size-threshold defines large zones, and "
            "the option --unhealthy-zone-threshold defines partially unhealthy zones.",
        ),
    ] = ""
    unhealthy_zone_threshold: Annotated[
        str,
        named(
            "SHARE",
            "A zone is partially unhealthy if at least this fraction of its nodes, and more than "
            "two nodes, are not ready (default: 0.55). A zone without a ready node is not "
            "partially unhealthy.",
        ),
    ] = ""
    large_cluster_size_threshold: Annotated[
        str,
        named(
            "NODES",
            "A zone with more nodes than this number is large (default: 50). In a partially "
            "unhealthy zone that is not large, no node gets NoExecute taints.",
        ),
    ] = ""
    pod_eviction_timeout: Annotated[
        str,
        named(
            "DURATION",
            "When a node has been unready for this time, its pods are deleted (default: 5m). Needs "
            "either --enable-taint-manager false, or both --behave-like 1.16 and --feature-gates "
            "TaintBasedEvictions=false.",
        ),
    ] = ""
    enable_taint_manager: Annotated[
        str,
        named(
            "BOOL",
            "Whether NoExecute taints evict pods, 'true' or 'false' (default: true). If 'false', "
            "--pod-eviction-timeout applies. Needs --behave-like 1.16, 1.19 or 1.21.",
        ),
    ] = ""

    @property
    def flags(self) -> dict[str, str]:
        """The flags that were given, keyed by name without leading dashes."""
        values = vars(self).items()
        return {name.replace("_", "-"): value for name, value in values if value}

    def as_options(self) -> list[str]:
        """Return the flags that were given, as words of a command line."""
        return [word for name, value in self.flags.items() for word in (f"--{name}", value)]


@Parameter(name="*", group=CONTROLLERS)
@dataclass(frozen=True)
class ControllerOptions(NodeFlags):
    """The values of all supported flags of kube-controller-manager; "" means the default.

    Simulations and `fairlead up` have these flags.
    """

    terminated_pod_gc_threshold: Annotated[
        str,
        named(
            "PODS",
            "If the cluster has more finished pods than this number, the oldest of them are "
            "deleted; 0 keeps all (default: 12500).",
        ),
    ] = ""


NO_NODE_FLAGS: Final = NodeFlags()
NO_FLAGS: Final = ControllerOptions()
