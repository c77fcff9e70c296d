"""The options of `fairlead whatif`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final, Literal

from cyclopts import Parameter

from fairlead.cli.options.parameter import Names, integer, named, repeatable
from fairlead.cli.options.plugin import (
    AllowExtenders,
    BatchConfig,
    BatchPlugins,
    NewBatchConfig,
    Plugins,
)
from fairlead.cli.options.provision_time import ProvisionTimes

CONDITIONS: Final = """\
Exit with status 3 if CONDITION holds: pending>0 (number of pending pods), undrained (a node \
could not be drained), pdb-breached, data-deleted (PersistentVolumeClaims are deleted together \
with their volumes), loop (pods are displaced repeatedly), \
workload-below=80% (fewer than 80% of a workload's wanted pods were ready at some time), or a \
property that any displaced pod has: priority>=1000, namespace=store, name=web-* or \
labels.app=web. A displaced pod is a pod that had to leave its node, for example because it was \
preempted or evicted. docs/results.md lists all conditions.
"""


@Parameter(name="*")
@dataclass(frozen=True)
class ChangeOptions:
    """The options that describe the change, named like the fields of ClusterChange."""

    apply: Annotated[
        Names, repeatable("FILE", "Create or change the objects in FILE, as kubectl apply does.")
    ] = ()
    server_side: Annotated[
        bool,
        Parameter(help="With --apply: apply as kubectl apply --server-side does.", negative=()),
    ] = False
    force_conflicts: Annotated[
        bool,
        Parameter(
            help="With --apply and --server-side: take over fields that other field managers own.",
            negative=(),
        ),
    ] = False
    delete: Annotated[
        Names,
        repeatable(
            "KIND/NAME",
            "Delete an object (KIND/NAME or KIND/NAMESPACE/NAME), or all objects of a kind with a"
            " label (node/pool=old).",
        ),
    ] = ()
    priority_class: Annotated[
        Names, repeatable("NAME=VALUE", "Change the value of a PriorityClass.")
    ] = ()
    set: Annotated[
        Names,
        repeatable(
            "KIND/NAME:path=value",
            "Set a field of an object (deploy/web:spec.paused=true). The value null removes the "
            "field. Items of lists are selected by name (spec.template.spec.containers[app].image) "
            "or number.",
        ),
    ] = ()
    set_resources: Annotated[
        Names,
        repeatable(
            "KIND/NAME=cpu=2,...",
            "Set the requests of all containers of a workload (deploy/web=cpu=2,memory=4Gi), of "
            "one container (deploy/web:app=cpu=2), or limits (deploy/web=limits.cpu=4).",
        ),
    ] = ()
    apply_vpa: Annotated[
        bool,
        Parameter(
            help="Set the container requests that the VerticalPodAutoscalers in the snapshot "
            "recommend.",
            negative=(),
        ),
    ] = False
    scale: Annotated[
        Names, repeatable("KIND/NAME=N", "Scale a workload: deploy/web=20, sts/store/db=3.")
    ] = ()
    add_nodes: Annotated[
        int | None,
        Parameter(
            help="Add N new nodes; needs --like or --instance-type.",
            metavar="N",
            converter=integer,
        ),
    ] = None
    like: Annotated[
        str,
        named(
            "NODE", "With --add-nodes: give the new nodes the labels, taints and size of this node."
        ),
    ] = ""
    instance_type: Annotated[
        str,
        named(
            "NAME",
            "With --add-nodes: give the new nodes this instance type from the file of "
            "--instance-types.",
        ),
    ] = ""
    cordon: Annotated[
        Names,
        repeatable("NODE", "Mark nodes unschedulable, by name or label selector (key=value)."),
    ] = ()
    drain: Annotated[
        Names,
        repeatable(
            "NODE",
            "Cordon nodes, by name or label selector (key=value), and evict their pods within "
            "disruption budgets.",
        ),
    ] = ()
    drain_as_kubectl: Annotated[
        bool,
        Parameter(
            help="Refuse to drain nodes that kubectl drain would refuse to drain. By default, "
            "nodes are drained as if --ignore-daemonsets, --delete-emptydir-data and --force were "
            "given.",
            negative=(),
        ),
    ] = False
    ignore_daemonsets: Annotated[
        bool,
        Parameter(
            help="With --drain-as-kubectl: drain nodes with pods of DaemonSets, which stay there.",
            negative=(),
        ),
    ] = False
    delete_emptydir_data: Annotated[
        bool,
        Parameter(
            help="With --drain-as-kubectl: also evict pods with emptyDir volumes.", negative=()
        ),
    ] = False
    force: Annotated[
        bool,
        Parameter(
            help="With --drain-as-kubectl: also evict pods without a controller.", negative=()
        ),
    ] = False
    max_unavailable: Annotated[
        int | None,
        Parameter(
            help="Drain at most N nodes at a time (default: all). Each node returns to service when"
            " it is empty, or, with --for, when it has been empty for that time.",
            metavar="N",
            converter=integer,
        ),
    ] = None
    lasts: Annotated[
        str,
        Parameter(
            name="--for",
            help="How long failed nodes stay down (default: forever). With --max-unavailable: how "
            "long each drained node stays down after it is empty (default: 0s).",
            metavar="DURATION",
            show_default=False,
        ),
    ] = ""
    new_config: Annotated[
        str | None,
        named(
            "FILE",
            "KubeSchedulerConfiguration that replaces --config in the simulation with the change.",
        ),
    ] = None
    new_plugin: Annotated[
        Names,
        repeatable(
            "MODULE:CLASS",
            "Add a scheduler plugin, as --plugin does, but only in the simulation with the change.",
        ),
    ] = ()
    new_batch_config: NewBatchConfig = None
    reschedule: Annotated[
        str,
        Parameter(
            help="Unbind running pods at the start of both simulations, so that they are scheduled"
            " again. PODS is the word all, or a label selector (app=web).",
            metavar="PODS",
            show_default=False,
        ),
    ] = ""
    reschedule_order: Annotated[
        Literal["priority", "scheduled"],
        Parameter(
            help="With --reschedule: schedule the pods by priority and age (priority), or one by "
            "one in the order in which the cluster scheduled them (scheduled). With scheduled, the "
            "only other changes allowed are --new-config, --new-plugin and --new-batch-config.",
            show_choices=False,
        ),
    ] = "priority"
    descheduler: Annotated[
        str,
        named(
            "POLICY.yaml",
            "Evict the pods that the descheduler would evict in one run with this "
            "DeschedulerPolicy (docs/descheduler.md).",
        ),
    ] = ""
    namespace: Annotated[
        str,
        Parameter(
            name=["--namespace", "-n"],
            help="Namespace for names and objects that state none (default: names are looked up "
            "in all namespaces, and objects in files get the namespace default).",
            metavar="NAME",
            show_default=False,
        ),
    ] = ""


@Parameter(name="*")
@dataclass(frozen=True)
class RunOptions:
    """The options that apply to both simulations, with and without the change."""

    seed: Annotated[
        int,
        Parameter(help="Seed for tie-breaking and other random choices.", converter=integer),
    ] = 0
    seeds: Annotated[
        int,
        Parameter(
            help="Simulate with N different seeds, and report which outcomes are the same for "
            "every seed.",
            metavar="N",
            converter=integer,
        ),
    ] = 1
    startup_time: Annotated[
        str,
        named(
            "DURATION",
            "Time from the binding of a pod until the pod is ready (default: the time that pods "
            "of the same workload took in the snapshot, else 1s).",
        ),
    ] = ""
    kwok_stages: Annotated[
        Names,
        repeatable(
            "FILE",
            "File with KWOK Stages, which set how long pods take to start, complete and be "
            "deleted. Stages in the snapshot apply too (docs/scenarios.md).",
        ),
    ] = ()
    runtimes: Annotated[
        str | None,
        named(
            "FILE",
            "File (YAML or CSV) that states how long pods run, by workload, image or label. The "
            "answer then contains the times at which waiting pods start. With --seeds alone, these "
            "times follow from the run times of completed pods in the snapshot.",
        ),
    ] = None
    horizon: Annotated[
        str,
        Parameter(
            help="Longest virtual time to simulate after the last change. If the cluster settles "
            "earlier, the simulation ends earlier.",
            metavar="DURATION",
        ),
    ] = "1h"
    fail_on: Annotated[Names, repeatable("CONDITION", CONDITIONS)] = ()
    group_by: Annotated[
        str,
        named(
            "LABEL",
            "Node label by which the answer groups nodes into pools (default: the label in the "
            "selector of drained, cordoned or deleted nodes, else the node pool label of "
            "Karpenter, EKS, GKE or AKS, else the zone label if a zone fails).",
        ),
    ] = ""
    config: Annotated[
        str | None,
        named(
            "FILE",
            "KubeSchedulerConfiguration that the cluster uses now (default: kube-scheduler's "
            "defaults).",
        ),
    ] = None
    plugin: Plugins = ()
    allow_extenders: AllowExtenders = False
    batch_config: BatchConfig = None
    batch_plugin: BatchPlugins = ()
    autoscale: Annotated[
        Literal["off", "auto", "cluster-autoscaler", "karpenter"],
        Parameter(
            help="Simulate a node autoscaler in both simulations; auto means the autoscaler that "
            "the snapshot contains."
        ),
    ] = "off"
    load: Annotated[
        str | None,
        named(
            "FILE",
            "File with the load on workloads over time, which HorizontalPodAutoscalers follow in "
            "both simulations. The file is CSV, or a list as in the field `load` of a scenario "
            "(docs/horizontal-pod-autoscaler.md).",
        ),
    ] = None
    node_groups: Annotated[
        str,
        named(
            "FILE",
            "With Cluster Autoscaler: file with its node groups (default: groups derived from "
            "node labels).",
        ),
    ] = ""
    instance_types: Annotated[
        str | None,
        named(
            "FILE",
            "Instance types and their prices, for --autoscale and --instance-type: a CSV file, or"
            " the JSON that aws, gcloud, az or Karpenter's kwok provider print. To add prices "
            "from a CSV file of OpenCost, give two files: TYPES,PRICES.",
        ),
    ] = None
    node_pools: Annotated[
        str | None,
        named(
            "FILE",
            "With Karpenter: file with NodePools and NodeOverlays to add to those in the snapshot.",
        ),
    ] = None
    provision_time: ProvisionTimes = ()


@Parameter(name="*")
@dataclass(frozen=True)
class ComparisonOptions:
    """The options that request several answers, to compare them."""

    change: Annotated[
        Names,
        repeatable(
            "NAME:OPTIONS",
            "An alternative to compare: its name and the options of its change, such as "
            "'b:--drain pool=old --max-unavailable 1'.",
        ),
    ] = ()
    against_snapshot: Annotated[
        str | None,
        named("FILE", "Ask the same question about this snapshot too, and compare the answers."),
    ] = None
    against_config: Annotated[
        str | None,
        named(
            "FILE",
            "Also ask the question with this KubeSchedulerConfiguration in place of --config, and "
            "compare the answers.",
        ),
    ] = None

    @property
    def is_given(self) -> bool:
        """Whether the options request several answers."""
        return bool(self.change or self.against_snapshot or self.against_config)


NO_CHANGES: Final = ChangeOptions()
DEFAULT_RUN: Final = RunOptions()
NO_COMPARISON: Final = ComparisonOptions()
