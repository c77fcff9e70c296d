"""Options that make nodes fail."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from cyclopts import Group, Parameter

from fairlead.cli.options.parameter import Names, named, repeatable

FAILING: Final = Group("Failing nodes", sort_key=1)


@Parameter(name="*", group=FAILING)
@dataclass(frozen=True)
class FailureOptions:
    """The options that choose failing nodes, the kind of failure, and its time."""

    fail_zone: Annotated[Names, repeatable("ZONE", "Fail all nodes of a zone.")] = ()
    fail_node: Annotated[
        Names, repeatable("NODE", "Fail nodes, by name or selector (key=value).")
    ] = ()
    fail_fraction: Annotated[
        Names,
        repeatable(
            "SHARE",
            "Fail a fraction of all nodes, or of a zone: 0.3, 60%@eu-1a; chosen by --seed.",
        ),
    ] = ()
    flap: Annotated[
        Names,
        repeatable(
            "NODE", "Fail a node repeatedly: NODE@60s/120s is down for 60s, then up for 120s."
        ),
    ] = ()
    how: Annotated[
        str,
        named(
            "BEHAVIOUR",
            "How nodes fail: stopped (the machine is off, the default), paused (only the kubelet "
            "stops), not-ready, memory-pressure, disk-pressure, pid-pressure, 'slow 45s'.",
        ),
    ] = ""
    at: Annotated[str, named("DURATION", "Delay before the failure.")] = ""


NO_FAILURES: Final = FailureOptions()
