"""`fairlead top`: shows the load of a running cluster's nodes and pods."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import Parameter

from fairlead.cli.options.connection import NO_CONNECTION, ConnectionOptions
from fairlead.cli.options.parameter import named


def top(
    *,
    connection: ConnectionOptions = NO_CONNECTION,
    once: Annotated[
        bool,
        Parameter(
            help="Print one frame without clearing the screen, and exit. This is the default if "
            "standard output is not a terminal.",
            negative=(),
        ),
    ] = False,
    every: Annotated[
        str, named("DURATION", "Interval between two reads of the cluster (default: 5s).")
    ] = "5s",
    sort: Annotated[
        Literal["cpu", "memory"],
        Parameter(
            help="Sort nodes and pods by their usage of this resource, or by their requests if the "
            "usage is unknown."
        ),
    ] = "cpu",
    namespace: Annotated[
        str,
        named("NAME", "Show only the pods and events of this namespace (default: all namespaces)."),
    ] = "",
) -> int:
    """Show nodes and pods of a running cluster with their usage and requests, until Ctrl-C.

    Below the nodes and pods, the command shows the pending pods, each with the scheduler's message,
    and the newest events. Usage comes from the Metrics API; without that API, only requests are
    shown. Without options, the command reads the cluster that kubectl would use. The cluster can be
    a real cluster or a cluster of `fairlead up`. The command writes nothing to the cluster.

    Try:

        fairlead top
        fairlead top --context prod --sort memory --once
    """
    from fairlead.cli.commands.top.run import show_cluster

    return show_cluster(connection, once=once, every=every, sort=sort, namespace=namespace)
