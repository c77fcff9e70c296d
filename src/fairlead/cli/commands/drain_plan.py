"""`fairlead drain-plan`: plans the drain of nodes: order, pace, duration and blockers."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from fairlead.cli import exit_code
from fairlead.cli.options.connection import NO_CONNECTION, ConnectionOptions
from fairlead.cli.options.output import AnswerOutput
from fairlead.cli.options.parameter import Names, repeatable
from fairlead.cli.options.plan import (
    NO_PLAN_CHANGE,
    PRESENT_DEFAULTS,
    ChangeNamespace,
    DrainPace,
    PlanChangeOptions,
    PresentOptions,
    SnapshotSource,
)
from fairlead.cli.options.pod_time import NO_POD_TIMES, PodTimeOptions
from fairlead.cli.options.release import NO_RELEASE, ReleaseOptions


def drain_plan(
    snapshot: SnapshotSource = None,
    /,
    *,
    nodes: Annotated[
        Names,
        repeatable(
            "NODE",
            "Nodes to drain, by name or label selector (pool=old). Without this option, the "
            "command checks for each node whether it can be drained alone.",
        ),
    ] = (),
    max_unavailable: DrainPace = None,
    lasts: Annotated[
        str,
        Parameter(
            name="--for",
            help="How long a drained node stays cordoned after it has become empty, such as 10m "
            "(default: to the end of the simulation).",
            metavar="DURATION",
            show_default=False,
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
    """Plan a drain of nodes: blockers, order, number of nodes at a time, and duration.

    With `--nodes`, the command simulates the drain with 1, 2, 4, ... nodes at a time. The answer is
    the fastest safe drain. A drain is safe if all these conditions hold:

    - Every node becomes empty.

    - Every evicted pod of a workload runs again.

    - No Job fails.

    - No disruption budget is breached.

    - Every workload with several replicas always has a ready pod.

    - Pods without a controller are not preempted on nodes that stay in service. On drained nodes,
      pods without a controller may be lost.

    These conditions do not apply to pods with a negative priority, which may stop and stay pending.

    Without `--nodes`, the command simulates no drain. For each node, it checks whether disruption
    budgets allow the evictions, and whether the pods fit on other nodes. It also checks whether
    something keeps pods from terminating. The answer says whether the node can be drained while all
    other nodes stay in service. If the node cannot be drained, the answer gives the reason.

    SNAPSHOT is a dump of a cluster: the output of `kubectl get nodes,pods,... -A -o json` (or
    `-o yaml`). It is a file, a directory of such files, or `-` for standard input. To read a
    running cluster instead, without changing it, use `--context`, `--kubeconfig` or `--in-cluster`.

    Try:

        fairlead drain-plan dump.yaml
        fairlead drain-plan dump.yaml --nodes worker-1 --nodes worker-2
        fairlead drain-plan dump.yaml --nodes pool=old --for 10m
        fairlead drain-plan dump.yaml --nodes pool=old --set pdb/shop/web:spec.minAvailable=1
        fairlead drain-plan --context prod --nodes pool=old -o json

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
    from fairlead.whatif.planner.node_drain.drain_plan import drain_answer, plan_drains, run_plan
    from fairlead.whatif.planner.node_drain.single_drain import check_alone, single_drain_answer
    from fairlead.whatif.planner.node_drain.workload_stop import stop_table, workload_stops

    require_pace("--max-unavailable", max_unavailable)
    simulated = {
        "--max-unavailable": max_unavailable is not None,
        "--startup-time": bool(pod_times.startup_time),
        "--kwok-stages": bool(pod_times.kwok_stages),
    }
    for option, is_given in simulated.items():
        if is_given and not nodes:
            raise InputError(option, "needs --nodes; without it, nothing is simulated")
    away = field_duration("--for", "", lasts or None)
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
        if not nodes:
            every = [one.name for one in read.model.table.nodes()]
            source, returns = read.snapshot.source, away is not None
            plan = check_alone(planner, every, source, progress, return_again=returns)
            answer = single_drain_answer(
                plan, source, (*planner.waiting.notes, *read.notes_of(plan))
            )
        else:
            names, experiment = read.nodes("--nodes", nodes), read.experiment
            plan = plan_drains(planner, names, progress, return_again=away is not None)
            run_plan(plan, experiment, progress, max_unavailable=max_unavailable, away=away)
            if plan.is_order_unsafe:
                planner.reorders = False
                plan = plan_drains(planner, names, progress, return_again=away is not None)
                run_plan(plan, experiment, progress, max_unavailable=max_unavailable, away=away)
            plan.is_after_change = change != NO_PLAN_CHANGE
            notes = (*planner.waiting.notes, *read.notes_of(plan, experiment))
            # A workload with one replica stops in a safe plan too.
            stops = [] if plan.best is not None else workload_stops(planner, plan)
            table = stop_table(one for one in stops if one.wanted > 1)
            answer = drain_answer(plan, read.snapshot.source, notes, table)
    print_tabular(answer, output)
    return exit_code.NO if answer.is_no else exit_code.SUCCESS
