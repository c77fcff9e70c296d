"""`fairlead extender`: serves plugins to a kube-scheduler that runs elsewhere."""

from __future__ import annotations

from typing import Annotated, Final

from cyclopts import Parameter

from fairlead.cli.options.parameter import named
from fairlead.cli.options.plugin import Plugins

SNAPSHOT_HELP: Final = (
    "kubectl output with nodes, pods and other objects that plugins should see: a file, a "
    "directory, or - for standard input."
)
API_SERVER_HELP: Final = (
    "API server to bind pods with, such as http://127.0.0.1:8001 (kubectl proxy); without it, "
    "bind requests are refused."
)
BEYOND_HELP: Final = (
    "Allow --listen on a non-loopback address. WARNING: requests, including bind, are not "
    "authenticated."
)


def extender(
    *,
    listen: Annotated[str, named("HOST:PORT", "Where to listen; port 0 picks any free port.")],
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

    The extender answers filter, prioritize, preempt and bind over HTTP in kube-scheduler's format,
    with whole nodes or node names (nodeCacheCapable). It runs the plugins configured in --config;
    without --config, only those of --plugin; without either, the default plugins. Plugins see the
    objects of the snapshot and every node that a request contains.

    Try:

        fairlead extender --plugin examples/plugins/node_price.py:NodePrice --listen 127.0.0.1:8888
    """
    from fairlead.cli.commands.extender.run import serve

    return serve(
        config, plugin, snapshot, listen, api_server=api_server, beyond_loopback=beyond_loopback
    )
