"""`fairlead rebalance`: proposes pod moves that make room for pods or balance the nodes."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from fairlead.cli.options.connection import NO_CONNECTION, ConnectionOptions
from fairlead.cli.options.output import AnswerOutput
from fairlead.cli.options.parameter import integer, repeatable
from fairlead.cli.options.plan import (
    NO_PLAN_CHANGE,
    PRESENT_DEFAULTS,
    AutoscalerRule,
    ChangeNamespace,
    PlanChangeOptions,
    PresentOptions,
    SnapshotSource,
)
from fairlead.cli.options.release import NO_RELEASE, ReleaseOptions


def rebalance(
    snapshot: SnapshotSource = None,
    /,
    *,
    moves: Annotated[
        int, Parameter(help="Propose at most N pod moves.", metavar="N", converter=integer)
    ] = 20,
    ignore: Annotated[
        tuple[AutoscalerRule, ...],
        repeatable(
            "RULE",
            "Also move pods that RULE protects from eviction by a node autoscaler. 'annotations': "
            "annotations such as cluster-autoscaler.kubernetes.io/safe-to-evict=false. "
            "'local-storage': pods with hostPath volumes, or with emptyDir volumes that are not "
            "in memory. 'unmanaged': pods that have no controller, or whose controller is a "
            "custom resource. 'system-pods': pods in kube-system that have no disruption budget "
            "and were created within the last hour.",
        ),
    ] = (),
    change: PlanChangeOptions = NO_PLAN_CHANGE,
    namespace: ChangeNamespace = "",
    connection: ConnectionOptions = NO_CONNECTION,
    present: PresentOptions = PRESENT_DEFAULTS,
    release: ReleaseOptions = NO_RELEASE,
    output: AnswerOutput = "text",
) -> int:
    """Propose pod moves that make room for pending pods, then moves that even out node loads.

    A move is an eviction, which the pod's disruption budget must allow. The workload controller
    then creates a replacement pod, and the scheduler chooses its node.

    SNAPSHOT is a dump of a cluster: the output of `kubectl get nodes,pods,... -A -o json` (or
    `-o yaml`). It is a file, a directory of such files, or `-` for standard input. To read a
    running cluster instead, without changing it, use `--context`, `--kubeconfig` or `--in-cluster`.

    Try:

        fairlead rebalance dump.yaml
        fairlead rebalance dump.yaml --moves 5 --ignore local-storage
        fairlead rebalance dump.yaml --apply new-app.yaml
        fairlead rebalance --context prod -o json

    Parameters
    ----------
    snapshot
        A file, a directory, or - for standard input.
    """
    from fairlead.cli.commands.plan_input import read_plan_input
    from fairlead.cli.output.console.progress_bar import ProgressBar
    from fairlead.cli.output.tabular_answer import print_tabular
    from fairlead.whatif.configuration.autoscaling.autoscaler import ADDS_NODES
    from fairlead.whatif.input.error import InputError
    from fairlead.whatif.planner.rebalance import MOVES_MAX, Rebalancer, rebalance_answer

    if not 1 <= moves <= MOVES_MAX:
        raise InputError("--moves", f"{moves} is not from 1 to {MOVES_MAX:,}")
    with ProgressBar() as progress:
        read = read_plan_input(
            snapshot, connection, present, release, progress, change=change.change_in(namespace)
        )
        rules = read.autoscaler_rules(ignore)
        planner = read.planner()
        plan = Rebalancer(planner, rules, read.images).run(moves, progress)
    idle = read.idle_autoscaler(ADDS_NODES) if plan.after.waiting else ()
    notes = (*idle, *planner.waiting.notes, *read.notes)
    print_tabular(rebalance_answer(plan, read.snapshot.source, notes), output)
    return 0
