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
Exit with 3 if a condition holds: pending>0, undrained, pdb-breached, loop, workload-below=80% (of \
the wanted pods were ready), or a displaced pod matches priority>=1000, namespace=store, \
name=web-*, labels.app=web.
"""


@Parameter(name="*")
@dataclass(frozen=True)
class ChangeOptions:
    """The change, as fields of ClusterChange."""

    apply: Annotated[
        Names, repeatable("FILE", "Create or change the objects in FILE, as kubectl apply does.")
    ] = ()
    server_side: Annotated[
        bool, Parameter(help="Apply as kubectl apply --server-side does.", negative=())
    ] = False
    force_conflicts: Annotated[
        bool, Parameter(help="Take over fields that other field managers own.", negative=())
    ] = False
    delete: Annotated[
        Names,
        repeatable(
            "KIND/NAME",
            "Delete an object: KIND/NAME, KIND/NAMESPACE/NAME, or by label: node/pool=old.",
        ),
    ] = ()
    priority_class: Annotated[
        Names, repeatable("NAME=VALUE", "Change the value of a PriorityClass.")
    ] = ()
    set: Annotated[
        Names,
        repeatable(
            "KIND/NAME:path=value",
            "Set a field: deploy/shop/web:spec.template.spec.containers[app].image=app:2; null "
            "removes it.",
        ),
    ] = ()
    set_resources: Annotated[
        Names,
        repeatable(
            "KIND/NAME=cpu=2,...",
            "Set requests of a workload's containers: deploy/web=cpu=2,memory=4Gi; one container: "
            "deploy/web:app=cpu=2; limits: deploy/web=limits.cpu=4.",
        ),
    ] = ()
    apply_vpa: Annotated[
        bool,
        Parameter(
            help="Set the requests that the snapshot's VerticalPodAutoscalers recommend.",
            negative=(),
        ),
    ] = False
    scale: Annotated[
        Names, repeatable("KIND/NAME=N", "Scale a workload: deploy/web=20, sts/store/db=3.")
    ] = ()
    add_nodes: Annotated[
        int | None,
        Parameter(
            help="Add N empty nodes; --like or --instance-type describes them.",
            metavar="N",
            converter=integer,
        ),
    ] = None
    like: Annotated[
        str, named("NODE", "Copy labels, taints and size of this node to those of --add-nodes.")
    ] = ""
    instance_type: Annotated[
        str, named("NAME", "Give the nodes of --add-nodes this type of --instance-types.")
    ] = ""
    cordon: Annotated[
        Names, repeatable("NODE", "Mark nodes unschedulable, by name or selector (key=value).")
    ] = ()
    drain: Annotated[
        Names,
        repeatable("NODE", "Cordon nodes and evict their pods, respecting disruption budgets."),
    ] = ()
    drain_as_kubectl: Annotated[
        bool,
        Parameter(
            help="Refuse drains that kubectl drain refuses without the next three flags.",
            negative=(),
        ),
    ] = False
    ignore_daemonsets: Annotated[
        bool,
        Parameter(help="kubectl drain's flag: allow pods of DaemonSets, which stay.", negative=()),
    ] = False
    delete_emptydir_data: Annotated[
        bool,
        Parameter(help="kubectl drain's flag: also evict pods with emptyDir volumes.", negative=()),
    ] = False
    force: Annotated[
        bool,
        Parameter(help="kubectl drain's flag: also evict pods without a controller.", negative=()),
    ] = False
    max_unavailable: Annotated[
        int | None,
        Parameter(
            help="Drain at most N nodes at a time; each returns to service once it is empty.",
            metavar="N",
            converter=integer,
        ),
    ] = None
    lasts: Annotated[
        str,
        Parameter(
            name="--for",
            help="How long failed nodes, or each drained node with --max-unavailable, stay down "
            "(default: failed nodes never return, drained nodes return immediately).",
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
            "Add a scheduler plugin, whose code runs with your rights, in the simulation with the "
            "change only.",
        ),
    ] = ()
    new_batch_config: NewBatchConfig = None
    reschedule: Annotated[
        str,
        Parameter(
            help="Unbind running pods before both simulations, so that they are scheduled again: "
            "all, or a label selector (app=web).",
            metavar="PODS",
            show_default=False,
        ),
    ] = ""
    reschedule_order: Annotated[
        Literal["priority", "scheduled"],
        Parameter(
            help="Place the pods of --reschedule by priority and age, or one by one, in the order "
            "in which the cluster had scheduled them.",
        ),
    ] = "priority"
    descheduler: Annotated[
        str,
        named(
            "POLICY.yaml",
            "Evict the pods that one run of the descheduler with this DeschedulerPolicy would "
            "evict (docs/descheduler.md).",
        ),
    ] = ""
    namespace: Annotated[
        str,
        Parameter(
            name=["--namespace", "-n"],
            help="Namespace for names and objects that do not specify one.",
            show_default=False,
        ),
    ] = ""


@Parameter(name="*")
@dataclass(frozen=True)
class RunOptions:
    """Options of both simulations, with and without the change."""

    seed: Annotated[
        int,
        Parameter(help="Seed for tie-breaking and other random choices.", converter=integer),
    ] = 0
    seeds: Annotated[
        int,
        Parameter(
            help="Simulate with N seeds, and say which outcomes are the same with all of them.",
            metavar="N",
            converter=integer,
        ),
    ] = 1
    startup_time: Annotated[
        str,
        named(
            "DURATION",
            "Time from a pod's binding until it is ready (default: the time that pods of the same "
            "workload took in the snapshot, else 1s).",
        ),
    ] = ""
    kwok_stages: Annotated[
        Names,
        repeatable(
            "FILE",
            "KWOK Stages, which say how long pods take to start, complete and be deleted, in "
            "addition to those of the snapshot (docs/scenarios.md).",
        ),
    ] = ()
    runtimes: Annotated[
        str | None,
        named(
            "FILE",
            "How long pods run, by workload, image or label (YAML or CSV); the answer then says "
            "when waiting pods start. Without FILE, --seeds uses the durations of completed pods "
            "in the snapshot.",
        ),
    ] = None
    horizon: Annotated[
        str,
        Parameter(
            help="Virtual time after the last change at which a simulation that has not settled "
            "stops.",
            metavar="DURATION",
        ),
    ] = "1h"
    fail_on: Annotated[Names, repeatable("CONDITION", CONDITIONS)] = ()
    group_by: Annotated[
        str,
        named(
            "LABEL",
            "Node label by which the answer groups nodes into pools (default: the label by which "
            "nodes are drained or deleted, else that of Karpenter, EKS, GKE or AKS; the zone for a "
            "lost zone).",
        ),
    ] = ""
    config: Annotated[
        str | None,
        named("FILE", "Current KubeSchedulerConfiguration (default: kube-scheduler's defaults)."),
    ] = None
    plugin: Plugins = ()
    allow_extenders: AllowExtenders = False
    batch_config: BatchConfig = None
    batch_plugin: BatchPlugins = ()
    autoscale: Annotated[
        Literal["off", "auto", "cluster-autoscaler", "karpenter"],
        Parameter(
            help="Simulate an autoscaler, with and without the change; auto: the one in the "
            "snapshot."
        ),
    ] = "off"
    load: Annotated[
        str | None,
        named(
            "FILE",
            "The load of workloads, which HorizontalPodAutoscalers follow with and without the "
            "change: YAML as in a scenario, or CSV.",
        ),
    ] = None
    node_groups: Annotated[
        str,
        named("FILE", "Cluster Autoscaler's node groups (default: groups found by node labels)."),
    ] = ""
    instance_types: Annotated[
        str | None,
        named(
            "FILE",
            "Instance types and prices, for --autoscale or --instance-type: CSV, or JSON as aws, "
            "gcloud, az or Karpenter's kwok provider print it; prices also as OpenCost's CSV "
            "(TYPES,PRICES).",
        ),
    ] = None
    node_pools: Annotated[
        str | None,
        named("FILE", "NodePools and NodeOverlays in addition to those of the snapshot."),
    ] = None
    provision_time: ProvisionTimes = ()


@Parameter(name="*")
@dataclass(frozen=True)
class ComparisonOptions:
    """The options for several answers, side by side."""

    change: Annotated[
        Names,
        repeatable(
            "NAME:OPTIONS",
            "One of several alternatives to compare, with its own change: "
            "'b:--drain pool=old --max-unavailable 1'.",
        ),
    ] = ()
    against_snapshot: Annotated[
        str | None, named("FILE", "Ask the same question about another snapshot, and compare.")
    ] = None
    against_config: Annotated[
        str | None,
        named(
            "FILE",
            "Ask the same question with this KubeSchedulerConfiguration instead of --config, and "
            "compare.",
        ),
    ] = None

    @property
    def is_given(self) -> bool:
        """Return whether the options request several answers."""
        return bool(self.change or self.against_snapshot or self.against_config)


NO_CHANGES: Final = ChangeOptions()
DEFAULT_RUN: Final = RunOptions()
NO_COMPARISON: Final = ComparisonOptions()
