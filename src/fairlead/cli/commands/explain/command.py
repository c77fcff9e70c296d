"""`fairlead explain`: explains a pod, workload, node, budget, PriorityClass or another object."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from fairlead.cli.options.connection import NO_CONNECTION, ConnectionOptions
from fairlead.cli.options.input import MaxInput
from fairlead.cli.options.output import AnswerOutput
from fairlead.cli.options.parameter import Names, integer, named, repeatable
from fairlead.cli.options.plugin import (
    AllowExtenders,
    BatchConfig,
    BatchPlugins,
    Plugins,
    PresentConfig,
)
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
            help="Another way to give SNAPSHOT: a file, a directory, or - for standard input.",
            metavar="SNAPSHOT",
            allow_leading_hyphen=True,
            show_default=False,
        ),
    ] = None,
    connection: ConnectionOptions = NO_CONNECTION,
    max_input: MaxInput = None,
    namespace: Annotated[
        str,
        Parameter(
            name=["--namespace", "-n"],
            help=(
                "Namespace of OBJECT if OBJECT contains no namespace (default: search all "
                "namespaces). If OBJECT is pods or quotas: explain only the pods or quotas of this "
                "namespace. With --apply: also the namespace of the objects in FILE that have no "
                "metadata.namespace (default: 'default')."
            ),
            metavar="NAME",
            show_default=False,
        ),
    ] = "",
    config: PresentConfig = None,
    plugin: Plugins = (),
    allow_extenders: AllowExtenders = False,
    batch_config: BatchConfig = None,
    batch_plugin: BatchPlugins = (),
    apply: Annotated[
        Names,
        repeatable(
            "FILE",
            "Explain where a new pod would be placed. FILE contains the Pod or its workload, and "
            "can contain its PodGroup. If the batch scheduler would schedule the pod, the command "
            "explains the pod's PodGroup instead.",
        ),
    ] = (),
    seeds: Annotated[
        int,
        Parameter(
            help="Estimate when a pending pod, workload or pod group starts, in N simulations "
            "with different seeds. Each simulation chooses the run times of the running pods "
            "at random from --runtimes, or from the completed pods in the dump "
            "(docs/start-times.md). With --runtimes alone, N is 20. With neither --seeds nor "
            "--runtimes, no simulation runs. The command then estimates only the start of a pod "
            "group, from the run times that pods declare.",
            show_default=False,
            metavar="N",
            converter=integer,
        ),
    ] = 1,
    runtimes: Annotated[
        str | None,
        named(
            "FILE",
            "YAML or CSV file with the run times of pods, by workload, image or label "
            "(docs/start-times.md). A run time is the time until a pod completes.",
        ),
    ] = None,
    output: AnswerOutput = "text",
    all_nodes: Annotated[
        bool, Parameter(help="Print a row for every node, even in large clusters.", negative=())
    ] = False,
    release: ReleaseOptions = NO_RELEASE,
    process: ProcessOptions = NO_PROCESS,
) -> int:
    """Explain a pod, workload, node, budget, quota, queue or another object of a cluster.

    The answer depends on the kind of OBJECT:

    - pods (without a name): all pending pods, all workloads with too few pods, all pods that have a
      node but are not ready, and all nodes that take no new pods. For each of these objects, the
      answer gives the reason.

    - nodes (without a name): the nodes that take no new pods, with the reasons, and the requests
      and free resources of all other nodes. For each node, the answer also gives the number of
      pending pods that fit on the node. For a node that takes no new pods, the answer gives the
      number of pending pods that would fit if the node took new pods.

    - Pod: for each node, either the score from each scheduler plugin, or the reason why the pod
      does not fit. In large clusters, nodes with the same reason share a row. A pod that already
      has a node is explained as if it had no node. If the pod fits on no node, the answer lists the
      nodes on which preemption would make room, with the victims, and names the rule by which the
      scheduler chooses one of these nodes. For a pending pod that fits on no node, the answer also
      names the labels that the pod requires but no node has. If only taints keep the pod off a
      node, the answer names these taints. The answer also says whether the pod would fit on a copy
      of an existing node.

    - Workload, or a custom resource that controls pods or Jobs: its pods, why pods are pending or
      not ready, and its disruption budgets. The answer also names the node on which one more pod
      would be placed. If the pods wait for their group, the answer says what blocks the group. For
      example, the pods of a Volcano Job (vcjob) are a group.

    - Node: its pods, which of them fit on other nodes, and what blocks a drain.

    - PodDisruptionBudget: the number of allowed disruptions, and the selected pods.

    - PriorityClass: the pods that use it, the pods that a pod of the class may preempt, and the
      classes whose pods may preempt a pod of this class. The answer also says how many of the
      possible victims have a disruption budget. If OBJECT is pc without a name, the answer lists
      all classes.

    - HorizontalPodAutoscaler: the number of replicas that each metric proposes, the reason if the
      autoscaler does not scale, and how many more pods fit, up to maxReplicas.

    - ResourceQuota: how much of each resource is used and free, who uses the quota, and which
      workloads lack pods because of the quota. The answer also contains the limits that would admit
      these pods, a what-if that simulates these limits, and the command that sets them. To compare
      all quotas, set OBJECT to quotas.

    - PodGroup, or a pod of a group: the resources that the group's queue deserves and uses, and the
      first pod that does not fit. The answer names the nodes that come closest to having room for
      this pod, with the resources that they lack. It also names a change with which the group could
      start now, and estimates when the group starts. With neither --seeds nor --runtimes, the
      estimate uses the run times that pods declare, such as activeDeadlineSeconds.

    - Queue of kube-batch or Volcano: for each resource, how much the queue deserves, uses and
      requests, and why its share is not larger. The answer lists the queue's groups and says why
      groups wait. The batch scheduler works in sessions. The answer names the pods of this queue
      that the next session evicts, and the pods of other queues that the session evicts for this
      queue. To compare all queues, set OBJECT to queues.

    - ClusterQueue or LocalQueue of Kueue: its quota, and the reasons why workloads wait for
      admission. Kueue wrote these reasons to the objects of the dump. To compare all ClusterQueues,
      set OBJECT to clusterqueues.

    With --process, a running scheduler (a process of `fairlead run`) answers. OBJECT must then be a
    pod. For a pending pod, the answer contains the queue in which the pod waits, the number of
    scheduling attempts, and the backoff. It also contains the result for each node in the
    scheduler's cache.

    Try:

        fairlead explain dump.yaml pods
        fairlead explain dump.yaml pods --namespace store
        fairlead explain dump.yaml nodes
        fairlead explain dump.yaml pod/store/web-0
        fairlead explain dump.yaml deploy/store/web
        fairlead explain dump.yaml node/worker-3
        fairlead explain dump.yaml pdb/store/web
        fairlead explain dump.yaml pc/critical
        fairlead explain dump.yaml pc
        fairlead explain dump.yaml hpa/store/web
        fairlead explain dump.yaml --apply pod.yaml
        fairlead explain pod/store/web-0 --context prod
        fairlead explain dump.yaml podgroup/research/train
        fairlead explain dump.yaml quota/store/compute
        fairlead explain dump.yaml queue/research
        fairlead explain dump.yaml queues
        fairlead explain pod/store/web-0 --process https://localhost:10259 --token-file token

    Parameters
    ----------
    first
        A dump of the cluster: a file, a directory, or - for standard input. Leave SNAPSHOT out if
        an option such as --context, --snapshot or --process names the cluster.
    second
        The object to explain: KIND/NAME (deploy/web), or KIND/NAMESPACE/NAME (deploy/store/web) if
        several namespaces have an object of this kind and name. Five kinds need no name: pods means
        all pods, nodes all nodes, pc all PriorityClasses, quotas all ResourceQuotas, and queues all
        queues.
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
            namespace,
            [name for name, is_given in others.items() if is_given],
            output=output,
            all_nodes=all_nodes or output == "details",
        )
    source, target = snapshot_and_target(first, second, snapshot, connection, apply)
    request = ExplainRequest(
        target,
        source,
        connection,
        max_input,
        namespace,
        config=config,
        plugins=plugin,
        batch=(batch_config, batch_plugin),
        release=release.choice,
        allow_extenders=allow_extenders,
        apply=apply,
        seeds=seeds,
        runtimes=runtimes,
    )
    return explain_target(request, output=output, all_nodes=all_nodes or output == "details")
