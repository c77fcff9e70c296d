"""`fairlead fit`: counts how many more pods of a workload fit, and on which nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from fairlead.cli import exit_code
from fairlead.cli.options.connection import NO_CONNECTION, ConnectionOptions
from fairlead.cli.options.output import AnswerOutput
from fairlead.cli.options.parameter import IN_AUTOSCALING, integer, named
from fairlead.cli.options.plan import (
    NO_PLAN_CHANGE,
    PRESENT_DEFAULTS,
    PlanChangeOptions,
    PresentOptions,
    SnapshotSource,
)
from fairlead.cli.options.release import NO_RELEASE, ReleaseOptions

if TYPE_CHECKING:
    from fairlead.cli.commands.plan_input import PlanInput
    from fairlead.whatif.configuration.autoscaling.autoscaler import (
        AutoscaleOptions,
    )
    from fairlead.whatif.planner.new_pod import NewPods, PodFile
    from fairlead.whatif.result.tabular_answer import TabularAnswer
    from fairlead.whatif.run.progress import Progress
    from fairlead.whatif.snapshot.manifest import Manifest


def fit(
    snapshot: SnapshotSource = None,
    /,
    *,
    pod: Annotated[
        str | None,
        named(
            "FILE",
            "Count pods like the one in this YAML or JSON file: a Pod, a workload, or a pod spec "
            "for the tool cluster-capacity. The file may also contain new objects that the pods "
            "need, such as their Namespace or PriorityClass. For a Volcano Job or a JobSet, whole "
            "copies are counted. Either --pod or --like is required.",
        ),
    ] = None,
    like: Annotated[
        str | None,
        named(
            "KIND/NAME",
            "Count pods like those of this workload (deploy/shop/web, sts/shop/db), or like this "
            "pod (pod/shop/web-0).",
        ),
    ] = None,
    namespace: Annotated[
        str,
        Parameter(
            name=["--namespace", "-n"],
            help=(
                "Namespace for objects that are given without a namespace. For --like, --scale and "
                "--set, the default is to search all namespaces. For objects without "
                "metadata.namespace in the files of --pod and --apply, the default is 'default'."
            ),
            metavar="NAME",
            show_default=False,
        ),
    ] = "",
    preempt: Annotated[
        bool, Parameter(help="Let the new pods preempt pods of lower priority.", negative=())
    ] = False,
    max_limit: Annotated[
        int | None,
        Parameter(
            help="Stop counting after N pods (default: 1000000; with --autoscale: 5000).",
            metavar="N",
            converter=integer,
        ),
    ] = None,
    autoscale: Annotated[
        Literal["off", "auto", "cluster-autoscaler", "karpenter"],
        Parameter(
            help="Node autoscaler that adds nodes for the new pods, up to its own limits; 'auto' "
            "means the autoscaler that runs in the dump's cluster."
        ),
        IN_AUTOSCALING,
    ] = "off",
    node_groups: Annotated[
        str,
        named(
            "FILE",
            "With --autoscale cluster-autoscaler: file with the node groups, described in "
            "docs/cluster-autoscaler.md (default: groups derived from node labels).",
        ),
        IN_AUTOSCALING,
    ] = "",
    instance_types: Annotated[
        str | None,
        named(
            "FILE",
            "With --autoscale: instance types and their prices, in the formats of fairlead whatif "
            "--instance-types.",
        ),
        IN_AUTOSCALING,
    ] = None,
    node_pools: Annotated[
        str | None,
        named(
            "FILE",
            "With --autoscale karpenter: file with NodePools and NodeOverlays, in addition to those"
            " in the dump.",
        ),
        IN_AUTOSCALING,
    ] = None,
    change: PlanChangeOptions = NO_PLAN_CHANGE,
    connection: ConnectionOptions = NO_CONNECTION,
    present: PresentOptions = PRESENT_DEFAULTS,
    release: ReleaseOptions = NO_RELEASE,
    output: AnswerOutput = "text",
) -> int:
    """Count how many more pods of a workload fit.

    The command adds new pods until a pod is refused (by admission or a ResourceQuota) or fits on no
    node. The answer names the nodes on which the new pods fit, and the reason why no further pod
    fits. The scheduler places the new pods with all its plugins. Pods that are already pending are
    placed before the new pods, by preemption if necessary.

    SNAPSHOT is a dump of a cluster: the output of `kubectl get nodes,pods,... -A -o json` (or
    `-o yaml`). It is a file, a directory of such files, or `-` for standard input. To read a
    running cluster instead, without changing it, use `--context`, `--kubeconfig` or `--in-cluster`.

    For a Volcano Job or a JobSet, the command counts how many whole copies fit, each with all its
    pods. The command ignores the limits of queues.

    Try:

        fairlead fit dump.yaml --like deploy/shop/web
        fairlead fit dump.yaml --pod web.yaml -o json
        fairlead fit dump.yaml --pod jobset.yaml
        fairlead fit dump.yaml --like deploy/shop/web --scale deploy/shop/api=20
        fairlead fit --context prod --like deploy/shop/web --preempt
        fairlead fit dump.yaml --like deploy/shop/web --autoscale auto

    Parameters
    ----------
    snapshot
        A file, a directory, or - for standard input.
    """
    from msgspec.structs import replace

    from fairlead.cli.commands.plan_input import read_plan_input
    from fairlead.cli.output.console.progress_bar import ProgressBar
    from fairlead.cli.output.tabular_answer import print_tabular
    from fairlead.whatif.change.owned_object import is_owner
    from fairlead.whatif.configuration.autoscaling.autoscaler import ADDS_NODES, NO_AUTOSCALING
    from fairlead.whatif.input.error import InputError
    from fairlead.whatif.planner.fit import PODS_MAX, fit_answer
    from fairlead.whatif.planner.fit import fit as count_fitting
    from fairlead.whatif.planner.fit_gang import refuse_options
    from fairlead.whatif.planner.new_pod import (
        LIKE,
        read_pod_file,
        require_one_source,
    )

    require_one_source(pod, like)
    if max_limit is not None and not 1 <= max_limit <= PODS_MAX:
        raise InputError("--max-limit", f"{max_limit} is not from 1 to {PODS_MAX:,}")
    elastic = _elastic_options(autoscale, node_groups, instance_types, node_pools)
    with ProgressBar() as progress:
        file = None if pod is None else read_pod_file(pod, namespace)
        if file is not None and is_owner(file.written):
            refuse_options(file.written, autoscale=elastic != NO_AUTOSCALING, preempt=preempt)
        read = read_plan_input(
            snapshot,
            connection,
            present,
            release,
            progress,
            elastic,
            pod_file=file,
            removes_pods=preempt,
            change=change.change(namespace),
        )
        if file is not None:
            file.refuse_malformed(read.inventory)
        found = file.written if file else read.inventory.look_up(LIKE, like or "", namespace)
        adds_nodes = elastic != NO_AUTOSCALING
        if found and _counts_whole_copies(found, read, autoscale=adds_nodes, preempt=preempt):
            answer = _gang_answer(read, found, max_limit, progress)
            print_tabular(answer, output)
            return exit_code.NO if answer.is_no else exit_code.SUCCESS
        source = _new_pods(read, file, like, namespace)
        if change != NO_PLAN_CHANGE:
            source = replace(source, replicas_when="after the change")
        if elastic != NO_AUTOSCALING:
            answer = _elastic_answer(read, elastic, source, max_limit, progress, preempts=preempt)
        else:
            result = count_fitting(
                read.model, source, progress, max_limit or PODS_MAX, preempts=preempt
            )
            name = read.snapshot.source
            is_full = result.refused_by == "scheduling"
            notes = (
                *(read.idle_autoscaler(ADDS_NODES) if is_full else ()),
                *read.platform_notes(result.placements()),
                *read.notes,
            )
            answer = fit_answer(result, source, read.model, name, notes, max_limit or 1)
    print_tabular(answer, output)
    return exit_code.NO if answer.is_no else exit_code.SUCCESS


def _new_pods(read: PlanInput, file: PodFile | None, like: str | None, namespace: str) -> NewPods:
    """Return the template of `file`, or of the object that --like names. Raises InputError."""
    from fairlead.whatif.planner.new_pod import new_pods_of_file, pod_source

    if file is None:
        return pod_source(None, like, namespace, read.inventory)
    return new_pods_of_file(file.written, read.inventory, read.inventory)


def _counts_whole_copies(
    found: Manifest, read: PlanInput, *, autoscale: bool, preempt: bool
) -> bool:
    """Return whether whole copies of `found` are counted instead of single pods.

    Only a Volcano Job or a JobSet has whole copies. `autoscale` and `preempt` say whether
    --autoscale and --preempt are given. If one of these options is given, single pods are counted,
    which are copies of the pods of `found`. Raises InputError if one of these options is given and
    `found` has no pods.
    """
    from fairlead.whatif.change.owned_object import is_owner
    from fairlead.whatif.planner.fit_gang import refuse_options

    if not is_owner(found):
        return False
    if next(read.inventory.pods_of(found), None) is None:
        refuse_options(found, autoscale=autoscale, preempt=preempt)
    return not (autoscale or preempt)


def _gang_answer(
    read: PlanInput, written: Manifest, max_limit: int | None, progress: Progress
) -> TabularAnswer:
    """Return the answer for `written`, a Volcano Job or a JobSet: the number of whole copies."""
    from fairlead.whatif.planner.fit_gang import COPIES_MAX, fit_gangs, gang_fit_answer

    result = fit_gangs(read.model, written, progress, max_limit or COPIES_MAX)
    name = read.snapshot.source
    return gang_fit_answer(result, written, read.model, name, read.notes, max_limit or 1)


def _elastic_options(
    autoscale: str, node_groups: str, instance_types: str | None, node_pools: str | None
) -> AutoscaleOptions:
    """Return the options of the autoscaler; NO_AUTOSCALING if none is simulated.

    Raises InputError.
    """
    from fairlead.whatif.configuration.autoscaling.autoscaler import (
        CLUSTER_AUTOSCALER,
        KARPENTER,
        OFF,
        AutoscaleOptions,
    )
    from fairlead.whatif.input.error import InputError

    if instance_types is not None and autoscale == OFF:
        raise InputError("--instance-types", "needs --autoscale")
    if node_pools is not None and autoscale in (OFF, CLUSTER_AUTOSCALER):
        raise InputError("--node-pools", "needs --autoscale karpenter")
    if node_groups and autoscale in (OFF, KARPENTER):
        raise InputError("--node-groups", "needs --autoscale cluster-autoscaler")
    return AutoscaleOptions(autoscale, node_groups, instance_types, node_pools)


def _elastic_answer(
    read: PlanInput,
    elastic: AutoscaleOptions,
    source: NewPods,
    max_limit: int | None,
    progress: Progress,
    *,
    preempts: bool,
) -> TabularAnswer:
    """Return the answer for a cluster with an autoscaler.

    Raises InputError if `elastic` names no autoscaler and the snapshot contains none.
    """
    from msgspec.structs import replace

    from fairlead.whatif.configuration.autoscaling.autoscaler import read_autoscalers
    from fairlead.whatif.input.error import InputError
    from fairlead.whatif.outcome.autoscaling.stopped_autoscaler import stopped_autoscaler_notes
    from fairlead.whatif.planner.fit_elastic import ELASTIC_MAX, elastic_fit, elastic_fit_answer

    snapshot = read.snapshot
    found = read_autoscalers(snapshot.source, snapshot.manifests, elastic)
    if found.config is None and found.karpenter is None:
        problem = "the dump has no autoscaler; use cluster-autoscaler or karpenter"
        raise InputError("--autoscale", problem)
    experiment = replace(
        read.experiment, autoscaler=found.config, karpenter=found.karpenter, notes=found.notes
    )
    result = elastic_fit(experiment, source, progress, max_limit or ELASTIC_MAX, preempts=preempts)
    stopped = stopped_autoscaler_notes(
        result.autoscaling.autoscaler, snapshot.manifests, result.outcome.workloads
    )
    notes = (*stopped, *read.notes)
    return elastic_fit_answer(result, source, snapshot.source, notes, max_limit or 1)
