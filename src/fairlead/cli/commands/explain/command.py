"""`fairlead explain`: explains a pod, workload, node, budget, autoscaler or pod group."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from fairlead.cli.options.connection import NO_CONNECTION, ConnectionOptions
from fairlead.cli.options.input import MaxInput
from fairlead.cli.options.output import AnswerOutput
from fairlead.cli.options.parameter import Names, integer, named, repeatable
from fairlead.cli.options.plugin import AllowExtenders, BatchConfig, BatchPlugins, Plugins
from fairlead.cli.options.process import NO_PROCESS, ProcessOptions
from fairlead.cli.options.release import NO_RELEASE, ReleaseOptions


def explain(
    first: Annotated[
        str | None, Parameter(name="SNAPSHOT", allow_leading_hyphen=True, show_default=False)
    ] = None,
    second: Annotated[str | None, Parameter(name="OBJECT", show_default=False)] = None,
    /,
    *,
    snapshot: Annotated[
        str | None,
        Parameter(
            help="The snapshot: a file, a directory, or - for standard input.",
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
    apply: Annotated[
        Names,
        repeatable(
            "FILE",
            "Explain where a new pod would go. FILE contains a Pod, or a workload that would "
            "create the pod. For a pod of a batch scheduler, the command explains the pod's "
            "PodGroup. FILE can also contain this PodGroup.",
        ),
    ] = (),
    seeds: Annotated[
        int,
        Parameter(
            help="Run N simulations to estimate when a waiting pod, workload or pod group starts. "
            "Each simulation draws the run times of pods from --runtimes, or from the completed "
            "pods in the snapshot. Without --seeds and --runtimes, no start is estimated.",
            metavar="N",
            converter=integer,
        ),
    ] = 1,
    runtimes: Annotated[
        str | None,
        named(
            "FILE",
            "File (YAML or CSV) that states how long pods run, by workload, image or label. With "
            "this option, start times are estimated even without --seeds, in 20 simulations.",
        ),
    ] = None,
    output: AnswerOutput = "text",
    all_nodes: Annotated[
        bool, Parameter(help="Print a row for every node, even in large clusters.", negative=())
    ] = False,
    release: ReleaseOptions = NO_RELEASE,
    process: ProcessOptions = NO_PROCESS,
) -> int:
    """Explain a pod, workload, node, disruption budget, autoscaler or pod group of a cluster.

    For a pod, the command shows for each node whether the pod fits there, and why not. If the pod
    fits somewhere, the command lists the feasible nodes with their score from each plugin; the
    scheduler breaks ties at random. If the pod fits nowhere, the command says whether it would fit
    on an additional node like an existing one, and lists the nodes on which preemption would make
    room. For each of these nodes, it shows the victims, and how many of them would be preempted
    against a disruption budget. It also shows the rule by which the scheduler picks one of them. In
    large clusters, nodes with the same reason share a row. A pod that is already bound is evaluated
    as if it were pending.

    For a pod group (podgroup/NAMESPACE/NAME), or a pod that is scheduled with its group, the
    command prints how much of the cluster the group's queue uses and deserves, the first pod that
    does not fit, and the resources that each node lacks. It also prints an estimated start time
    of the group, and a change with which the group could start now.

    For a workload, the command prints its pods, the reasons why pods are pending, its disruption
    budgets, and the node where one more pod would go. For a node, it prints the node's pods, which
    of them could run on other nodes, and what blocks a drain. For a PodDisruptionBudget, it prints
    the number of allowed disruptions and the pods that the budget selects. For a
    HorizontalPodAutoscaler, it prints the number of replicas that each metric proposes, the reason
    if the autoscaler does not scale, and how many more pods would fit, up to maxReplicas.

    With --process, a live scheduler, started with `fairlead run`, explains a pending pod: its
    place in the queue, its attempts and backoff, and the result for every node in the scheduler's
    current cache.

    Try:

        fairlead explain dump.yaml pod/store/web-0

        fairlead explain dump.yaml deploy/store/web

        fairlead explain dump.yaml node/worker-3

        fairlead explain dump.yaml pdb/store/web

        fairlead explain dump.yaml hpa/store/web

        fairlead explain dump.yaml --apply pod.yaml

        fairlead explain pod/store/web-0 --context prod

        fairlead explain dump.yaml podgroup/research/train

        fairlead explain pod/store/web-0 --process https://localhost:10259 --token-file token

    Parameters
    ----------
    first
        A file, a directory, or - for standard input. If an option such as --context or --snapshot
        names the cluster, give only OBJECT.
    second
        The object to explain: KIND/NAME, or KIND/NAMESPACE/NAME if several namespaces have such an
        object.
    """
    from fairlead.cli.commands.explain.run import (
        ExplainRequest,
        explain_target,
        snapshot_and_target,
    )

    if process != NO_PROCESS:
        from fairlead.cli.commands.explain.process import explain_by_process

        others = {
            "a second argument": second is not None,
            "--snapshot": snapshot is not None,
            "--context, --kubeconfig or --in-cluster": connection.is_given,
            "--max-input": max_input is not None,
            "--config": config is not None,
            "--plugin": bool(plugin),
            "--allow-extenders": allow_extenders,
            "--batch-config or --batch-plugin": batch_config is not None or bool(batch_plugin),
            "--apply": bool(apply),
            "--seeds or --runtimes": seeds != 1 or runtimes is not None,
            "--behave-like or --feature-gates": release != NO_RELEASE,
        }
        return explain_by_process(
            process,
            first or "",
            [name for name, is_given in others.items() if is_given],
            output=output,
            all_nodes=all_nodes or output == "details",
        )
    batch = (batch_config, batch_plugin)
    source, target = snapshot_and_target(first, second, snapshot, connection, apply)
    request = ExplainRequest(
        target,
        source,
        connection,
        max_input,
        config,
        plugin,
        batch,
        release.choice,
        allow_extenders,
        apply,
        seeds,
        runtimes,
    )
    return explain_target(request, output=output, all_nodes=all_nodes or output == "details")
