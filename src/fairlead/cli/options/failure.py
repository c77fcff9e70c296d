"""Options that make nodes fail."""

# Annotations are not texts here: Cyclopts would compile and evaluate each text several times.
from dataclasses import dataclass
from typing import Annotated, Final

from cyclopts import Parameter

from fairlead.cli.options.parameter import FAILURE, Names, named, repeatable


@Parameter(name="*", group=FAILURE)
@dataclass(frozen=True)
class FailureOptions:
    """The options that choose which nodes fail, how, and when."""

    fail_zone: Annotated[
        Names,
        repeatable(
            "ZONE",
            "Fail all nodes of a zone: eu-1a, or eu/eu-1a (REGION/ZONE) if several regions have a "
            "zone of that name.",
        ),
    ] = ()
    fail_node: Annotated[
        Names, repeatable("NODE", "Fail nodes, by name or label selector (key=value).")
    ] = ()
    fail_fraction: Annotated[
        Names,
        repeatable(
            "SHARE",
            "Fail a fraction of all nodes (0.3 or 30%), or of the nodes of a zone (60%@eu-1a). "
            "--seed selects which nodes fail.",
        ),
    ] = ()
    flap: Annotated[
        Names,
        repeatable(
            "NODE",
            "Fail nodes repeatedly, by name or label selector. With worker-3@60s/120s, worker-3 "
            "is down for 60s, then up for 120s, and so on. Without @DOWN/UP, the times are "
            "60s/120s.",
        ),
    ] = ()
    how: Annotated[
        str,
        named(
            "BEHAVIOUR",
            "How nodes fail. 'stopped' (default): the machine is off. 'paused': the kubelet "
            "stops, but the containers keep running. 'slow 45s': the kubelet sends a heartbeat "
            "only every 45s. 'not-ready', 'memory-pressure', 'disk-pressure' or 'pid-pressure': "
            "the kubelet reports this node condition.",
        ),
    ] = ""
    at: Annotated[
        str, named("DURATION", "Time from the other changes until the nodes fail (default: 0s).")
    ] = ""


NO_FAILURES: Final = FailureOptions()
