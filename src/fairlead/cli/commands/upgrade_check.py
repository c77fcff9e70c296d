"""`fairlead upgrade-check`: checks whether every node can be drained, as in an upgrade."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from fairlead.cli import exit_code
from fairlead.cli.options.connection import NO_CONNECTION, ConnectionOptions
from fairlead.cli.options.output import AnswerOutput
from fairlead.cli.options.parameter import (
    Names,
    integer,
    named,
    number_or_percentage,
    repeatable,
)
from fairlead.cli.options.plan import (
    NO_PLAN_CHANGE,
    PRESENT_DEFAULTS,
    ChangeNamespace,
    PlanChangeOptions,
    PresentOptions,
    SnapshotSource,
)
from fairlead.cli.options.pod_time import NO_POD_TIMES, PodTimeOptions
from fairlead.cli.options.release import NO_RELEASE, ReleaseOptions


def upgrade_check(
    snapshot: SnapshotSource = None,
    /,
    *,
    nodes: Annotated[
        Names,
        repeatable(
            "NODE", "Upgrade only these nodes, by name or label selector (default: all nodes)."
        ),
    ] = (),
    surge: Annotated[
        int,
        Parameter(
            help="Number of surge nodes: extra nodes that take the pods of drained nodes. The "
            "node pools are upgraded one after another, and so are the zones of a pool. Each "
            "zone has N surge nodes while its nodes are upgraded. With 0, there are no surge "
            "nodes, and all pools and zones are upgraded together.",
            metavar="N",
            converter=integer,
        ),
    ] = 1,
    max_unavailable: Annotated[
        int | str | None,
        Parameter(
            help="Number of nodes to drain at a time (default: the value of --surge, but at least "
            "1). Without this option, the command also simulates drains of 10% of the nodes at a "
            "time, if 10% is more nodes than the default. N is a number, or a percentage such as "
            "5%. A percentage is rounded down, but to at least one node. With surge nodes, 5% "
            "means 5% of the nodes to drain in one zone of one pool. With --surge 0, 5% means 5% "
            "of all nodes to drain.",
            metavar="N",
            converter=number_or_percentage,
        ),
    ] = None,
    lasts: Annotated[
        str,
        Parameter(
            name="--for", help="How long each node is down after its drain.", metavar="DURATION"
        ),
    ] = "5m",
    group_by: Annotated[
        str,
        named(
            "LABEL",
            "Node label that names the node pool of a node (default: the node pool label of "
            "Karpenter, EKS, eksctl, GKE, AKS or kops). If no node has such a label, a pool "
            "consists of the nodes that have the same taints, size and labels. This comparison "
            "ignores zone labels and labels that name the node. Memory and ephemeral storage may "
            "differ by up to 5%.",
        ),
    ] = "",
    change: PlanChangeOptions = NO_PLAN_CHANGE,
    namespace: ChangeNamespace = "",
    pod_times: PodTimeOptions = NO_POD_TIMES,
    connection: ConnectionOptions = NO_CONNECTION,
    present: PresentOptions = PRESENT_DEFAULTS,
    release: ReleaseOptions = NO_RELEASE,
    output: AnswerOutput = "text",
) -> int:
    """Check whether all nodes can be drained for an upgrade, and how long the upgrade takes.

    The answer lists the budgets and workloads that block the upgrade, and pods that fit on no other
    node. It also lists workloads that have no ready pod for some time. For each entry of these
    lists, the answer states the reason, and a change that would help.

    SNAPSHOT is a dump of a cluster: the output of `kubectl get nodes,pods,... -A -o json` (or
    `-o yaml`). It is a file, a directory of such files, or `-` for standard input. To read a
    running cluster instead, without changing it, use `--context`, `--kubeconfig` or `--in-cluster`.

    Try:

        fairlead upgrade-check dump.yaml
        fairlead upgrade-check dump.yaml --surge 3 --for 10m
        fairlead upgrade-check dump.yaml --scale deploy/shop/web=3
        fairlead upgrade-check --context prod --nodes pool=web --surge 0

    Parameters
    ----------
    snapshot
        A file, a directory, or - for standard input.
    """
    from fairlead.cli.commands.plan_input import read_plan_input
    from fairlead.cli.output.console.progress_bar import ProgressBar
    from fairlead.cli.output.tabular_answer import print_tabular
    from fairlead.whatif.change.rolling_drain import require_pace
    from fairlead.whatif.input.error import InputError
    from fairlead.whatif.input.strict_form import field_duration
    from fairlead.whatif.planner.node_drain.drain_plan import DrainPlan
    from fairlead.whatif.planner.node_drain.upgrade_check import (
        SURGE_MAX,
        budgets_on,
        check_nodes,
        pools_of,
        run_upgrade,
        surge_groups,
        upgrade_answer,
        upgrade_paces,
        upgrade_rounds,
    )
    from fairlead.whatif.planner.node_drain.upgrade_method import upgrade_method_notes
    from fairlead.whatif.planner.node_drain.workload_stop import workload_stops

    if not 0 <= surge <= SURGE_MAX:
        raise InputError("--surge", f"{surge} is not from 0 to {SURGE_MAX}")
    require_pace("--max-unavailable", max_unavailable)
    away = field_duration("--for", "", lasts) or 0
    with ProgressBar() as progress:
        read = read_plan_input(
            snapshot,
            connection,
            present,
            release,
            progress,
            change=change.change_in(namespace),
            pod_times=pod_times,
        )
        planner = read.planner()
        infos = read.model.table.nodes()
        if group_by and not any(group_by in info.labels for info in infos):
            raise InputError("--group-by", f"no node has the label {group_by}")
        pools = pools_of(read.model, group_by)
        groups = surge_groups(read.model, pools, surge)
        names = (
            read.nodes("--nodes", nodes) if nodes else [n.name for n in read.model.table.nodes()]
        )
        experiment = read.experiment

        def planned() -> DrainPlan:
            source = "--nodes" if nodes else read.snapshot.source
            plan = check_nodes(planner, groups, names, source, progress)
            rounds = upgrade_rounds(read.model, plan, groups)
            paces = upgrade_paces(rounds, surge, max_unavailable, away)
            run_upgrade(plan, experiment, rounds, paces, progress)
            return plan

        plan = planned()
        if plan.is_order_unsafe:
            planner.reorders = False
            plan = planned()
    limits = budgets_on(planner, plan.nodes)
    notes = (
        *upgrade_method_notes(read.snapshot.manifests, plan.nodes, read.snapshot.taken_at),
        *planner.waiting.notes,
        *read.notes_of(plan, experiment),
    )
    stops = workload_stops(planner, plan)
    answer = upgrade_answer(plan, limits, stops, surge, read.snapshot.source, notes)
    print_tabular(answer, output)
    return exit_code.NO if answer.is_no else exit_code.SUCCESS
