"""Options about nodes that fail, and kube-controller-manager's own flags about quiet nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from cyclopts import Group, Parameter
from cyclopts.help import ColumnSpec, DefaultFormatter, DescriptionRenderer, NameRenderer

from fairlead.cli.options import Names, named, repeatable

# Upstream's names are long; by default they would be broken on a terminal of 80 columns.
NAME_WIDTH: Final = 38
_NAMES: Final = ColumnSpec(
    renderer=NameRenderer(max_width=NAME_WIDTH), style="cyclopts.name", max_width=NAME_WIDTH
)
_TEXTS: Final = ColumnSpec(renderer=DescriptionRenderer(), overflow="fold")

FAILING: Final = Group("Failing nodes", sort_key=1)
CONTROLLERS: Final = Group(
    "Controllers",
    help="kube-controller-manager's flags about quiet nodes; of a what-if, for both runs.",
    sort_key=2,
    help_formatter=DefaultFormatter(column_specs=(_NAMES, _TEXTS)),
)


@Parameter(name="*", group=FAILING)
@dataclass(frozen=True)
class FailureOptions:
    """Which nodes fail, and how."""

    fail_zone: Annotated[
        Names, repeatable("ZONE", "All nodes of a zone fall silent: kubelet, pods and all.")
    ] = ()
    fail_node: Annotated[
        Names, repeatable("NODE", "A node falls silent, or those that match key=value.")
    ] = ()
    fail_fraction: Annotated[
        Names,
        repeatable(
            "SHARE", "A share of all nodes, or of a zone's: 0.3, 60%@eu-1a; --seed chooses."
        ),
    ] = ()
    flap: Annotated[
        Names,
        repeatable("NODE", "A node comes and goes; NODE@60s/120s is dark for 60 s, up for 120 s."),
    ] = ()
    how: Annotated[
        str,
        named(
            "BEHAVIOUR",
            "How they fail: stopped (the machine is dark, the default), paused (only the kubelet "
            "is), not-ready, memory-pressure, disk-pressure, pid-pressure, 'slow 45s'.",
        ),
    ] = ""
    at: Annotated[str, named("DURATION", "When they fail: so long after the start.")] = ""


@Parameter(name="*", group=CONTROLLERS)
@dataclass(frozen=True)
class ControllerOptions:
    """Flags by upstream's names; what is left out has upstream's default."""

    node_monitor_period: Annotated[str, named("DURATION", "How often nodes are looked at.")] = ""
    node_monitor_grace_period: Annotated[
        str, named("DURATION", "How long a node may be quiet until it is Unknown.")
    ] = ""
    node_startup_grace_period: Annotated[
        str, named("DURATION", "The same for a node that has never posted its status.")
    ] = ""
    node_eviction_rate: Annotated[
        str, named("RATE", "Nodes a second that are tainted in a zone: 0.1.")
    ] = ""
    secondary_node_eviction_rate: Annotated[
        str, named("RATE", "The same in a large zone that is disrupted in part: 0.01.")
    ] = ""
    unhealthy_zone_threshold: Annotated[
        str, named("SHARE", "From which share of unready nodes on a zone is disrupted: 0.55.")
    ] = ""
    large_cluster_size_threshold: Annotated[
        str, named("NODES", "Up to so many nodes, evictions stop in a disrupted zone: 50.")
    ] = ""
    terminated_pod_gc_threshold: Annotated[
        str, named("PODS", "How many finished pods may stay.")
    ] = ""
    pod_eviction_timeout: Annotated[
        str, named("DURATION", "1.16: after this, pods of a quiet node are deleted: 5m.")
    ] = ""
    enable_taint_manager: Annotated[
        str, named("BOOL", "1.16: false leaves pods on tainted nodes in place.")
    ] = ""
    feature_gates: Annotated[
        str, named("GATES", "1.16: TaintBasedEvictions=false deletes pods instead of tainting.")
    ] = ""
    behave_like: Annotated[
        str, named("VERSION", "Which Kubernetes' node controllers: 1.36 (the default) or 1.16.")
    ] = ""

    @property
    def flags(self) -> dict[str, str]:
        """Those that were given, by name without dashes."""
        values = vars(self).items()
        given = {name.replace("_", "-"): value for name, value in values if value}
        given.pop("behave-like", None)
        return given


NO_FLAGS: Final = ControllerOptions()
NO_FAILURES: Final = FailureOptions()
