"""`fairlead explain`: why a pod is where it is, or nowhere."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from fairlead.cli.batch_options import BatchConfig, BatchPlugins
from fairlead.cli.options import Output, Plugins, named


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
        bool, Parameter(help="A row for every node, however many there are.", negative=())
    ] = False,
) -> int:
    """Show each node's verdict on a pod, and how the choice among the nodes is made.

    Nodes that fit come with their scores by plugin and the set of equals among which chance
    decides; if none fits, the table of preemption candidates with victims, violated disruption
    budgets and the rule that decides. In large clusters, nodes that are refused for the same
    reason share a row. A pod that has a node is looked at as if it were pending.

    Of a group (podgroup/NAMESPACE/NAME), and of a pod that is scheduled with its group: its queue's
    share, the member that cannot start, what each node lacks, when it may start, and what would let
    it start.

    Try:

        fairlead explain pod/store/web-0 --snapshot dump.yaml

        fairlead explain podgroup/research/train --snapshot dump.yaml

    Parameters
    ----------
    pod
        pod/NAMESPACE/NAME or podgroup/NAMESPACE/NAME; without NAMESPACE where that is unique.
    """
    from fairlead.cli.explaining import Question, explain_target

    question = Question(pod, snapshot, config, plugin, (batch_config, batch_plugin))
    return explain_target(question, output=output, all_nodes=all_nodes)
