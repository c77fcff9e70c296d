"""The options of `fairlead whatif`."""

# Annotations are not texts here: Cyclopts would compile and evaluate each text several times.
from dataclasses import dataclass
from typing import Annotated, Final, Literal

from cyclopts import Parameter

from fairlead.cli.options.parameter import (
    AUTOSCALING,
    CHANGE,
    COMPARISON,
    IN_AUTOSCALING,
    SIMULATION,
    Names,
    integer,
    named,
    number_or_percentage,
    repeatable,
)
from fairlead.cli.options.plugin import (
    AllowExtenders,
    BatchConfig,
    BatchPlugins,
    NewBatchConfig,
    Plugins,
    PresentConfig,
)
from fairlead.cli.options.pod_time import StageFiles, StartupTime
from fairlead.cli.options.provision_time import ProvisionTimes

CONDITIONS: Final = """\
Exit with status 3 if CONDITION is true after the change. A condition can describe pods, for \
example priority>=1000, namespace=store, name=web-* or labels.app=web. Such a condition is true if \
a pod that it describes is displaced: preempted, evicted, or on a node that was deleted. On a \
deleted node, DaemonSet pods and static pods do not count. Other conditions have these meanings. \
pdb-breached: pods were displaced although their PodDisruptionBudget allowed no disruption. \
pdb-blocks-drains: the change creates or edits a PodDisruptionBudget, and this budget then never \
allows an eviction. replacements-refused: the API server would refuse every new pod of a \
workload, also replacements, for example because of a new quota. loop: pods are displaced again \
and again. pending>0: the change leaves pods pending. pending:priority>=1000: the change leaves \
pods of this priority pending. waited>0: because of the change, pods waited at least a minute for \
a node. undrained: a drain did not finish. data-deleted: PersistentVolumeClaims were deleted \
together with their volumes. workload-below=80%: at some time, a workload had fewer ready pods \
than 80% of the pods that it wants. docs/results.md lists all conditions."""


@Parameter(name="*", group=CHANGE)
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
            "or index. Keys with dots are written in brackets (spec.hard[requests.cpu]).",
        ),
    ] = ()
    set_resources: Annotated[
        Names,
        repeatable(
            "KIND/NAME=cpu=2,...",
            "Set the requests of all containers of a workload (deploy/web=cpu=2,memory=4Gi), or "
            "of one container (deploy/web:app=cpu=2). Limits can also be set "
            "(deploy/web=limits.cpu=4). A percentage with a sign changes the present amount "
            "(deploy/web=cpu=-20%,memory=+10%). If the new request of a resource exceeds its "
            "limit and you do not set the limit, the limit is raised to the request. To resize "
            "one pod in place, name the pod (pod/web-0=cpu=2).",
        ),
    ] = ()
    apply_vpa: Annotated[
        bool,
        Parameter(
            help="Set the container requests that the VerticalPodAutoscalers in the dump "
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
            "NODE",
            "With --add-nodes: the new nodes get the labels, taints and size of this node. With "
            "several nodes (NODE,NODE), such as one of each zone, these nodes are copied in turn; "
            "NODE:3,NODE copies the first node three times in each turn. With --instance-type, "
            "the new nodes get the size of the instance type, not the size of NODE. With "
            "NODE,NODE, these new nodes are spread over the zones of the named nodes; with a "
            "single NODE, they are spread over the zones of the instance type.",
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
            help="Drain as kubectl drain does. A node that kubectl would refuse to drain is only "
            "cordoned. Without this option, nodes are drained as with --ignore-daemonsets, "
            "--delete-emptydir-data and --force.",
            negative=(),
        ),
    ] = False
    ignore_daemonsets: Annotated[
        bool,
        Parameter(
            help="With --drain-as-kubectl: also drain nodes that have DaemonSet pods. These pods "
            "are not evicted.",
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
        int | str | None,
        Parameter(
            help=(
                "Drain at most N nodes at a time (default: all). N is a number, or a percentage of "
                "the nodes to drain, such as 5%. A percentage is rounded down, but to at least one "
                "node. With this option, a drained node is uncordoned as soon as it is empty. With "
                "--for, the node stays cordoned for the time in --for after it has become empty."
            ),
            metavar="N",
            converter=number_or_percentage,
        ),
    ] = None
    lasts: Annotated[
        str,
        Parameter(
            name="--for",
            help="How long failed nodes stay down, such as 20m (default: forever). With --flap: "
            "how long the nodes flap. With --max-unavailable: how long a drained node stays "
            "cordoned after it has become empty (default: 0s).",
            metavar="DURATION",
            show_default=False,
        ),
    ] = ""
    new_config: Annotated[
        str | None,
        named(
            "FILE",
            "KubeSchedulerConfiguration for the simulation with the change, given as for "
            "--config. The simulation without the change uses --config.",
        ),
    ] = None
    new_plugin: Annotated[
        Names,
        repeatable(
            "MODULE:CLASS",
            "Add a scheduler plugin only to the simulation with the change. The plugin is given "
            "as for --plugin.",
        ),
    ] = ()
    new_batch_config: NewBatchConfig = None
    reschedule: Annotated[
        str,
        Parameter(
            help="Unbind running pods at the start of both simulations, so that they are scheduled "
            "again. PODS is 'all' or a label selector (app=web).",
            metavar="PODS",
            show_default=False,
        ),
    ] = ""
    reschedule_order: Annotated[
        Literal["priority", "scheduled"],
        Parameter(
            help="Order in which --reschedule schedules the pods. 'priority': by priority, then "
            "by age. 'scheduled': one by one, in the order in which the cluster scheduled "
            "them. With 'scheduled', the change can contain only --new-config, --new-plugin "
            "and --new-batch-config.",
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
            help=(
                "Namespace of objects that other options name as KIND/NAME, without a namespace "
                "(default: search all namespaces). With --apply: also the namespace of the objects "
                "in FILE that have no metadata.namespace (default: 'default')."
            ),
            metavar="NAME",
            show_default=False,
        ),
    ] = ""


@Parameter(name="*", group=SIMULATION)
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
            help="Simulate N times, each time with another seed, and report which outcomes are the "
            "same every time.",
            metavar="N",
            converter=integer,
        ),
    ] = 1
    no_next_steps: Annotated[
        bool,
        Parameter(
            help="Leave out the suggestions (Next: ...) at the end of the answer. This can save "
            "time: the command tries some suggestions in further simulations before it prints "
            "them. These simulations can take longer than the rest of the command.",
            negative=(),
        ),
    ] = False
    startup_time: StartupTime = ""
    kwok_stages: StageFiles = ()
    runtimes: Annotated[
        str | None,
        named(
            "FILE",
            "YAML or CSV file with the run times of pods, by workload, image or label "
            "(docs/start-times.md). A run time is the time until a pod completes. With this "
            "option, or with --seeds, the answer estimates when pending pods start. With --seeds "
            "alone, the run times are those of the completed pods in the dump.",
        ),
    ] = None
    horizon: Annotated[
        str,
        Parameter(
            help="Maximum simulated time after the last of the requested changes. The simulation "
            "ends earlier if nothing more would happen in the cluster.",
            metavar="DURATION",
        ),
    ] = "1h"
    fail_on: Annotated[Names, repeatable("CONDITION", CONDITIONS)] = ()
    group_by: Annotated[
        str,
        named(
            "LABEL",
            "Node label that names the node pool of a node; the answer shows one row per pool. By "
            "default, LABEL is the label in the selector of --drain, --cordon or --delete. "
            "Without such a selector, LABEL is the node pool label of Karpenter, EKS, eksctl, "
            "GKE, AKS or kops. If the nodes have no node pool label and a zone fails, LABEL is "
            "the zone label.",
        ),
    ] = ""
    config: PresentConfig = None
    plugin: Plugins = ()
    allow_extenders: AllowExtenders = False
    batch_config: BatchConfig = None
    batch_plugin: BatchPlugins = ()
    autoscale: Annotated[
        Literal["off", "auto", "cluster-autoscaler", "karpenter"],
        Parameter(
            help="Node autoscaler to run in both simulations; 'auto' means the autoscaler that "
            "runs in the dump's cluster.",
            group=AUTOSCALING,
        ),
    ] = "off"
    load: Annotated[
        str | None,
        named(
            "FILE",
            "File with the load on workloads over time: CSV, or YAML as in the scenario field "
            "'load' (docs/horizontal-pod-autoscaler.md). In both simulations, "
            "HorizontalPodAutoscalers scale the workloads by this load. Times in the file count "
            "from the change.",
        ),
        IN_AUTOSCALING,
    ] = None
    node_groups: Annotated[
        str,
        named(
            "FILE",
            "With --autoscale cluster-autoscaler: file with the node groups, described in "
            "docs/cluster-autoscaler.md (default: groups derived from node labels).",
        ),
        IN_AUTOSCALING,
    ] = ""
    instance_types: Annotated[
        str | None,
        named(
            "FILE",
            "File with instance types and their prices, for --autoscale, --instance-type and "
            "--reschedule. With --reschedule, the answer compares the total price of the nodes in "
            "use. The format is CSV, or the JSON output of aws, gcloud, az or Karpenter's kwok "
            "provider. To take the prices from a CSV file of OpenCost, give both files, separated "
            "by a comma: TYPES,PRICES.",
        ),
        IN_AUTOSCALING,
    ] = None
    node_pools: Annotated[
        str | None,
        named(
            "FILE",
            "With --autoscale karpenter: file with NodePools and NodeOverlays, in addition to those"
            " in the dump.",
        ),
        IN_AUTOSCALING,
    ] = None
    provision_time: Annotated[ProvisionTimes, IN_AUTOSCALING] = ()


@Parameter(name="*", group=COMPARISON)
@dataclass(frozen=True)
class ComparisonOptions:
    """The options that request several answers, to compare them."""

    change: Annotated[
        Names,
        repeatable(
            "NAME:OPTIONS",
            "One of several changes to compare. The value is a name, a colon and the options of "
            "the change, such as 'b:--drain pool=old --max-unavailable 1'. The options can "
            "include flags of kube-controller-manager, such as --node-eviction-rate.",
        ),
    ] = ()
    against_snapshot: Annotated[
        str | None,
        named(
            "FILE",
            "Simulate the change also in this second dump, and compare the two answers. Without a "
            "change, the command simulates nothing, and compares the objects of the two dumps.",
        ),
    ] = None
    against_config: Annotated[
        str | None,
        named(
            "FILE",
            "Simulate the change a second time, with this KubeSchedulerConfiguration instead of "
            "the one in --config, and compare the two answers.",
        ),
    ] = None

    @property
    def is_given(self) -> bool:
        """Whether the options request several answers."""
        return bool(self.change or self.against_snapshot or self.against_config)


NO_CHANGES: Final = ChangeOptions()
DEFAULT_RUN: Final = RunOptions()
NO_COMPARISON: Final = ComparisonOptions()
