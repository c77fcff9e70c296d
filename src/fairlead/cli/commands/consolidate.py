"""`fairlead consolidate`: finds nodes that can be removed, and why other nodes must stay."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from fairlead.cli.options.connection import NO_CONNECTION, ConnectionOptions
from fairlead.cli.options.output import AnswerOutput
from fairlead.cli.options.parameter import Names, named, number_or_percentage, repeatable
from fairlead.cli.options.plan import (
    NO_PLAN_CHANGE,
    PRESENT_DEFAULTS,
    ChangeNamespace,
    DrainPace,
    NodeRule,
    PlanChangeOptions,
    PresentOptions,
    SnapshotSource,
)
from fairlead.cli.options.pod_time import NO_POD_TIMES, PodTimeOptions
from fairlead.cli.options.release import NO_RELEASE, ReleaseOptions


def consolidate(
    snapshot: SnapshotSource = None,
    /,
    *,
    nodes: Annotated[
        Names,
        repeatable(
            "NODE", "Consider only these nodes, by name or label selector (default: all nodes)."
        ),
    ] = (),
    ignore: Annotated[
        tuple[NodeRule, ...],
        repeatable(
            "RULE",
            "Ignore one of the rules by which autoscalers keep a node. 'annotations': annotations "
            "such as cluster-autoscaler.kubernetes.io/safe-to-evict=false. 'local-storage': pods "
            "with hostPath volumes, or with emptyDir volumes that are not in memory. 'unmanaged': "
            "pods that have no controller, or whose controller is a custom resource. "
            "'system-pods': pods in kube-system that have no disruption budget and were created "
            "within the last hour. 'waiting-gangs': waiting members of gangs, for which the plan "
            "keeps room.",
        ),
    ] = (),
    instance_types: Annotated[
        str | None,
        named(
            "FILE",
            "File with the prices of instance types, in the formats of fairlead whatif "
            "--instance-types. The answer then includes costs. From the plans that it finds, the "
            "command then chooses the plan that removes the nodes with the highest total price.",
        ),
    ] = None,
    most: Annotated[
        int | str | None,
        Parameter(
            name="--max",
            help="Remove at most N nodes (default: as many as possible). N is a number, or a "
            "percentage of the nodes, such as 10%. A percentage is rounded down, but to at "
            "least one node. The search ends when it has found N nodes to remove.",
            metavar="N",
            converter=number_or_percentage,
        ),
    ] = None,
    max_unavailable: DrainPace = None,
    change: PlanChangeOptions = NO_PLAN_CHANGE,
    namespace: ChangeNamespace = "",
    pod_times: PodTimeOptions = NO_POD_TIMES,
    connection: ConnectionOptions = NO_CONNECTION,
    present: PresentOptions = PRESENT_DEFAULTS,
    release: ReleaseOptions = NO_RELEASE,
    output: AnswerOutput = "text",
) -> int:
    """Find nodes that can be removed, and show where their pods would go and why other nodes stay.

    A node must stay if a node autoscaler would keep it because of annotations, local storage, pods
    without a controller, disruption budgets, or a lack of room on other nodes. Nodes of the control
    plane always stay. A node also stays if members of a waiting gang (a group of pods that start
    only together) have room only on this node. For each node that must stay, the answer lists the
    causes, the responsible objects, and changes that remove the causes. Then the command simulates
    drains of the nodes that can be removed. It reports the fastest safe drain, with its kubectl
    commands. The help text of `fairlead drain-plan` states when a drain is safe.

    The command tries the most promising plans, not all plans. So a plan that saves more can exist.
    The answer gives an upper bound: no plan can remove more nodes than this number.

    SNAPSHOT is a dump of a cluster: the output of `kubectl get nodes,pods,... -A -o json` (or
    `-o yaml`). It is a file, a directory of such files, or `-` for standard input. To read a
    running cluster instead, without changing it, use `--context`, `--kubeconfig` or `--in-cluster`.

    Try:

        fairlead consolidate dump.yaml
        fairlead consolidate dump.yaml --ignore local-storage --instance-types prices.csv
        fairlead consolidate dump.yaml --max 10
        fairlead consolidate dump.yaml --scale deploy/shop/web=2
        fairlead consolidate --context prod --nodes pool=web -o json

    Parameters
    ----------
    snapshot
        A file, a directory, or - for standard input.
    """
    from fairlead.cli.commands.plan_input import read_plan_input
    from fairlead.cli.output.console.progress_bar import ProgressBar
    from fairlead.cli.output.tabular_answer import print_tabular
    from fairlead.whatif.change.rolling_drain import nodes_at_once, require_pace
    from fairlead.whatif.configuration.autoscaling.allocatable import size_notes
    from fairlead.whatif.configuration.autoscaling.autoscaler import CHOOSES_NODES
    from fairlead.whatif.configuration.autoscaling.node_price import node_prices, price_notes
    from fairlead.whatif.planner.consolidate import (
        ConsolidationPlan,
        ConsolidationSearch,
        consolidate_answer,
        consolidate_safely,
        machines,
    )
    from fairlead.whatif.planner.node_drain.autoscaler_rule import IgnoredRule
    from fairlead.whatif.planner.node_drain.drain_plan import run_plan

    require_pace("--max", most)
    require_pace("--max-unavailable", max_unavailable)
    with ProgressBar() as progress:
        keeps_room = IgnoredRule.WAITING_GANGS not in ignore
        read = read_plan_input(
            snapshot,
            connection,
            present,
            release,
            progress,
            places_gangs=keeps_room,
            change=change.change_in(namespace),
            pod_times=pod_times,
        )
        types = read.instance_types(instance_types)
        model, planner = read.model, read.planner()
        if keeps_room:
            planner.keep_room_for_gangs()
        rules = read.autoscaler_rules(ignore)
        named = read.nodes("--nodes", nodes) if nodes else [one.name for one in model.table.nodes()]
        names = machines(model, named, "--nodes" if nodes else read.snapshot.source)
        prices, experiment = node_prices(model.table.nodes(), types), read.experiment
        limit = None if most is None else nodes_at_once(most, len(names))

        search = ConsolidationSearch(planner, rules, names, prices, progress)

        def simulated(limit: int | None) -> ConsolidationPlan:
            found = search.plan(limit)
            run_plan(
                found.plan,
                experiment,
                progress,
                max_unavailable=max_unavailable,
                ignores_negative=planner.ignores_negative,
            )
            return found

        found = consolidate_safely(simulated, search.explained, planner, limit)
    found.plan.is_after_change = change != NO_PLAN_CHANGE
    idle = read.idle_autoscaler(CHOOSES_NODES)
    infos = [model.node(name) for name in names]
    priced = (*price_notes(infos, types), *size_notes((info.node for info in infos), types))
    sizes = read.group_size_lines(set(found.removable))
    moved = read.image_notes(found.plan)
    waiting = planner.waiting.notes
    known = read.notes_with(found.plan.runs, experiment)
    notes = tuple(dict.fromkeys((*moved, *sizes, *priced, *idle, *waiting, *known)))
    print_tabular(consolidate_answer(found, model, read.snapshot.source, notes), output)
    return 0
