"""`fairlead explain`: shows why a pod is on its node, or pending."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from fairlead.cli.options.connection import NO_CONNECTION, ConnectionOptions
from fairlead.cli.options.input import MaxInput
from fairlead.cli.options.output import Output
from fairlead.cli.options.parameter import named
from fairlead.cli.options.plugin import AllowExtenders, BatchConfig, BatchPlugins, Plugins
from fairlead.cli.options.release import NO_RELEASE, ReleaseOptions


def explain(
    pod: str,
    /,
    *,
    snapshot: Annotated[
        str | None,
        Parameter(
            help="A file, a directory, or - for standard input.",
            metavar="SNAPSHOT",
            allow_leading_hyphen=True,
            show_default=False,
        ),
    ] = None,
    connection: ConnectionOptions = NO_CONNECTION,
    max_input: MaxInput = None,
    config: Annotated[
        str | None,
        named("FILE", "KubeSchedulerConfiguration (default: kube-scheduler's defaults)."),
    ] = None,
    plugin: Plugins = (),
    allow_extenders: AllowExtenders = False,
    batch_config: BatchConfig = None,
    batch_plugin: BatchPlugins = (),
    output: Output = "text",
    all_nodes: Annotated[
        bool, Parameter(help="Print a row for every node, even in large clusters.", negative=())
    ] = False,
    release: ReleaseOptions = NO_RELEASE,
) -> int:
    """Explain why each node does or does not fit a pod, and how the scheduler would choose.

    If nodes are feasible, the command lists them with their score from each plugin; the scheduler
    breaks ties at random. If no node is feasible, it prints for each node where preemption could
    help: its victims, the PDBs that preemption would violate, and the rule that picks the node. In
    large clusters, nodes with the same reason share a row. A pod that is already bound is evaluated
    as if it were pending.

    For a pod group (podgroup/NAMESPACE/NAME), or a pod that is scheduled with its group, the
    command prints its queue's share, the first pod that does not fit, what each node lacks, an
    estimate of when the group can start, and a change that would let it start.

    Try:

        fairlead explain pod/store/web-0 --snapshot dump.yaml

        fairlead explain pod/store/web-0 --context prod

        fairlead explain podgroup/research/train --snapshot dump.yaml

    Parameters
    ----------
    pod
        pod/NAMESPACE/NAME or podgroup/NAMESPACE/NAME; if the name is unique, NAMESPACE is optional.
    """
    from fairlead.cli.commands.explain.run import ExplainRequest, explain_target

    batch = (batch_config, batch_plugin)
    request = ExplainRequest(
        pod, snapshot, connection, max_input, config, plugin, batch, release.choice, allow_extenders
    )
    return explain_target(request, output=output, all_nodes=all_nodes)
