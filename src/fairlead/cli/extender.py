"""`fairlead extender`: plugins for a kube-scheduler that runs elsewhere."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from fairlead.cli.options import Plugins, named

SNAPSHOT_HELP = (
    "What kubectl prints of nodes, pods and what else plugins should know, as a file or a "
    "directory, or - for standard input."
)
API_SERVER_HELP = (
    "Where to bind pods when asked to, such as the http://127.0.0.1:8001 of kubectl proxy; "
    "without it the verb bind is refused."
)
BEYOND_HELP = "Let other machines in too: whoever reaches the address may ask, and bind."


def extender(
    *,
    listen: Annotated[str, named("HOST:PORT", "Where to listen; port 0 is any free one.")],
    config: Annotated[str | None, named("FILE", "A KubeSchedulerConfiguration.")] = None,
    plugin: Plugins = (),
    snapshot: Annotated[
        str | None,
        Parameter(help=SNAPSHOT_HELP, metavar="SNAPSHOT", allow_leading_hyphen=True),
    ] = None,
    api_server: Annotated[str | None, named("URL", API_SERVER_HELP)] = None,
    beyond_loopback: Annotated[bool, Parameter(help=BEYOND_HELP, negative=())] = False,
) -> int:
    """Serve plugins as an extender to a kube-scheduler.

    The extender answers filter, prioritize, preempt and bind over HTTP, in the form that
    kube-scheduler uses, with nodes whole or by name (nodeCacheCapable). It asks the plugins of the
    configuration; without one, those named by --plugin alone, and without these the default ones.
    What it knows of the cluster is the snapshot, and every node that is sent to it whole.

    Try:

        fairlead extender --plugin examples/plugins/node_price.py:NodePrice --listen 127.0.0.1:8888
    """
    from fairlead.cli.extending import serve

    return serve(
        config, plugin, snapshot, listen, api_server=api_server, beyond_loopback=beyond_loopback
    )
