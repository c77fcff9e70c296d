"""`fairlead top`: shows what fills a running cluster."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import Parameter

from fairlead.cli.options.connection import NO_CONNECTION, ConnectionOptions
from fairlead.cli.options.parameter import named


def top(
    *,
    connection: ConnectionOptions = NO_CONNECTION,
    once: Annotated[
        bool, Parameter(help="Print one frame without clearing the screen, and exit.", negative=())
    ] = False,
    every: Annotated[str, named("DURATION", "How often to read the cluster (default: 5s).")] = "5s",
    sort: Annotated[
        Literal["cpu", "memory"], Parameter(help="What nodes and pods are sorted by.")
    ] = "cpu",
    namespace: Annotated[
        str, named("NAME", "Show the pods and events of this namespace only.")
    ] = "",
) -> int:
    """Show the nodes and pods of a running cluster by usage and requests, until Ctrl-C.

    Below them are the pods that wait for a node, each with the scheduler's message, and the newest
    events. Usage comes from the Metrics API; without it, only requests are shown. The cluster is
    the one that kubectl would use, unless an option names another; it can be a cluster of
    `fairlead up`. Nothing is written to it.

    Try:

        fairlead top

        fairlead top --context prod --sort memory --once
    """
    from fairlead.cli.commands.top.run import show_cluster

    return show_cluster(connection, once=once, every=every, sort=sort, namespace=namespace)
