"""`fairlead extender`: serves scheduler plugins to a kube-scheduler that runs elsewhere."""

from __future__ import annotations

from typing import Annotated, Final

from cyclopts import Parameter

from fairlead.cli.options.parameter import IN_SCHEDULER, named
from fairlead.cli.options.plugin import Plugins

SNAPSHOT_HELP: Final = (
    "Nodes, pods and other objects that the plugins see, in the format of kubectl get -o json: a "
    "file, a directory, or - for standard input."
)
API_SERVER_HELP: Final = (
    "API server to which bindings are sent, such as http://127.0.0.1:8001 (kubectl proxy). "
    "Without this option, bind requests are refused."
)
BEYOND_HELP: Final = (
    "Allow addresses in --listen that other machines can reach. WARNING: requests, including bind "
    "requests, are not authenticated."
)


def extender(
    *,
    listen: Annotated[str, named("HOST:PORT", "Address to listen on; port 0 picks any free port.")],
    config: Annotated[
        str | None,
        named(
            "FILE",
            "KubeSchedulerConfiguration that enables and configures the plugins: a file, or "
            "configmap/NAMESPACE/NAME for the configuration in a ConfigMap of --snapshot.",
        ),
        IN_SCHEDULER,
    ] = None,
    plugin: Plugins = (),
    snapshot: Annotated[
        str | None,
        Parameter(help=SNAPSHOT_HELP, metavar="SNAPSHOT", allow_leading_hyphen=True),
    ] = None,
    api_server: Annotated[str | None, named("URL", API_SERVER_HELP)] = None,
    beyond_loopback: Annotated[bool, Parameter(help=BEYOND_HELP, negative=())] = False,
) -> int:
    """Serve scheduler plugins as an HTTP extender of kube-scheduler.

    The extender serves filter, prioritize, preempt and bind requests in kube-scheduler's format.
    Requests can contain whole nodes, or only the names of nodes (nodeCacheCapable). With --plugin
    alone, the extender runs only the plugins of --plugin. With --config, it runs the plugins that
    the configuration enables, and the plugins of --plugin. With neither option, it runs
    kube-scheduler's default plugins. Plugins see the objects in the dump of --snapshot, and all
    nodes that kube-scheduler has sent in requests.

    Try:

        fairlead extender --plugin examples/plugins/node_price.py:NodePrice --listen 127.0.0.1:8888
    """
    from fairlead.cli.commands.extender.run import serve

    return serve(
        config, plugin, snapshot, listen, api_server=api_server, beyond_loopback=beyond_loopback
    )
