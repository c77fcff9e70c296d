"""`fairlead explain`: shows why a pod is on its node, or pending."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from fairlead.cli.options.output import Output
from fairlead.cli.options.parameter import named
from fairlead.cli.options.plugin import BatchConfig, BatchPlugins, Plugins


def explain(
    pod: str,
    /,
    *,
    snapshot: Annotated[
        str,
        Parameter(
            help="A file, a directory, or - for standard input.",
            metavar="SNAPSHOT",
            allow_leading_hyphen=True,
        ),
    ],
    config: Annotated[str | None, named("FILE", "A KubeSchedulerConfiguration.")] = None,
    plugin: Plugins = (),
    batch_config: BatchConfig = None,
    batch_plugin: BatchPlugins = (),
    output: Output = "text",
    all_nodes: Annotated[
        bool, Parameter(help="Print a row for every node, even in large clusters.", negative=())
    ] = False,
) -> int:
    """Show each node's verdict on a pod, and how the scheduler chooses among the nodes.

    Feasible nodes are listed with their scores by plugin; among equal totals the choice is random.
    If no node is feasible, the candidates for preemption are listed with their victims, the
    disruption budgets they violate, and the rule that decides. In large clusters nodes with the
    same reason share a row. A pod that has a node is evaluated as if it were pending.

    For a group (podgroup/NAMESPACE/NAME), or a pod that is scheduled with its group: the share of
    its queue, the member that cannot start, what each node lacks, when the group may start, and
    what would let it start.

    Try:

        fairlead explain pod/store/web-0 --snapshot dump.yaml

        fairlead explain podgroup/research/train --snapshot dump.yaml

    Parameters
    ----------
    pod
        pod/NAMESPACE/NAME or podgroup/NAMESPACE/NAME; NAMESPACE may be omitted if that is unique.
    """
    from fairlead.cli.commands.explain.run import ExplainRequest, explain_target

    request = ExplainRequest(pod, snapshot, config, plugin, (batch_config, batch_plugin))
    return explain_target(request, output=output, all_nodes=all_nodes)
