"""`fairlead size`: finds the cheapest set of nodes that runs all pods."""

from __future__ import annotations

from typing import Annotated, Final

from cyclopts import Parameter

from fairlead.cli import exit_code
from fairlead.cli.options.connection import NO_CONNECTION, ConnectionOptions
from fairlead.cli.options.output import AnswerOutput
from fairlead.cli.options.parameter import Names, integer, named, repeatable
from fairlead.cli.options.plan import (
    NO_PLAN_CHANGE,
    PRESENT_DEFAULTS,
    ChangeNamespace,
    PlanChangeOptions,
    PresentOptions,
    SnapshotSource,
)
from fairlead.cli.options.release import NO_RELEASE, ReleaseOptions
from fairlead.engine.core.float_sum import float_sum

EFFORT: Final = 3


def size(
    snapshot: SnapshotSource = None,
    /,
    *,
    instance_types: Annotated[
        str | None,
        named(
            "FILE",
            "Instance types to choose from, with prices, in the formats of fairlead whatif "
            "--instance-types (default: the types of the existing nodes).",
        ),
    ] = None,
    survive: Annotated[
        Names,
        repeatable(
            "FAILURE",
            "Choose enough nodes so that all pods can still run after a failure. FAILURE is zone "
            "(any one zone), node (any one node) or nodes=N (any N nodes).",
        ),
    ] = (),
    headroom: Annotated[
        str,
        named(
            "SHARE",
            "Share of the CPU and of the memory to leave free on each new node, such as 20% "
            "(default: 0%).",
        ),
    ] = "",
    keep: Annotated[
        Names,
        repeatable(
            "NODE", "Keep these existing nodes as they are, by name or label selector (pool=gpu)."
        ),
    ] = (),
    effort: Annotated[
        int,
        Parameter(
            help="The last step of the search replaces nodes by cheaper ones. This step is "
            "limited to a number of scheduling cycles: N times the number of pods that the search "
            "places, but at least N times 500. A larger N takes more time, and never "
            "gives a more expensive answer. In small clusters, the search often ends before the "
            "limit, because no replacement is left to try. The answer then says that a larger N "
            "changes nothing.",
            metavar="N",
            converter=integer,
        ),
    ] = EFFORT,
    change: PlanChangeOptions = NO_PLAN_CHANGE,
    namespace: ChangeNamespace = "",
    connection: ConnectionOptions = NO_CONNECTION,
    present: PresentOptions = PRESENT_DEFAULTS,
    release: ReleaseOptions = NO_RELEASE,
    output: AnswerOutput = "text",
) -> int:
    """Search for the cheapest nodes that run all pods (with --survive, even after failures).

    The search places every pod by the scheduler's rules. It tries many sets of nodes, but not all,
    so it can miss the cheapest possible set. The answer therefore also contains a proven lower
    bound: no set of nodes can cost less. The answer names what determines this bound, such as
    memory, or pods that exclude each other.

    SNAPSHOT is a dump of a cluster: the output of `kubectl get nodes,pods,... -A -o json` (or
    `-o yaml`). It is a file, a directory of such files, or `-` for standard input. To read a
    running cluster instead, without changing it, use `--context`, `--kubeconfig` or `--in-cluster`.

    Try:

        fairlead size dump.yaml
        fairlead size dump.yaml --instance-types types.csv --survive zone
        fairlead size dump.yaml --scale deploy/store/web=20
        fairlead size --context prod --headroom 20% --keep pool=gpu --effort 50

    Parameters
    ----------
    snapshot
        A file, a directory, or - for standard input.
    """
    from fairlead.api.well_known_label import ZONE, is_virtual
    from fairlead.cli.commands.plan_input import read_plan_input
    from fairlead.cli.output.console.progress_bar import ProgressBar
    from fairlead.cli.output.tabular_answer import print_tabular
    from fairlead.whatif.configuration.autoscaling.autoscaler import CHOOSES_NODES
    from fairlead.whatif.configuration.autoscaling.open_cost_price import spot_label
    from fairlead.whatif.input.error import InputError
    from fairlead.whatif.planner.cluster_size.later_pod import later_pod_notes
    from fairlead.whatif.planner.cluster_size.node_offer import (
        assumption_notes,
        estimated_types,
        failed_zone_notes,
        node_offers,
        price_of_node,
        spot_notes,
        untyped_nodes,
    )
    from fairlead.whatif.planner.cluster_size.search import SizeSearch
    from fairlead.whatif.planner.cluster_size.size_answer import SizeQuestion, size_answer
    from fairlead.whatif.planner.cluster_size.size_option import (
        check_allocatable,
        check_effort,
        check_survival,
        parse_headroom,
        parse_survival,
    )
    from fairlead.whatif.planner.node_drain.replacement_admission import refused_pod_notes
    from fairlead.whatif.snapshot.control_plane import is_control_plane

    survival, share = parse_survival(survive), parse_headroom(headroom)
    check_effort(effort)
    with ProgressBar() as progress:
        read = read_plan_input(
            snapshot,
            connection,
            present,
            release,
            progress,
            places_gangs=True,
            removes_pods=False,
            plans_nodes=True,
            change=change.change_in(namespace),
        )
        types, model = read.instance_types(instance_types), read.model
        virtual = [info.name for info in model.table.nodes() if is_virtual(info.labels)]
        kept = {*read.nodes("--keep", keep), *virtual}
        replaced = [info for info in model.table.nodes() if info.name not in kept]
        if not replaced:
            source = "--keep" if keep else read.snapshot.source
            raise InputError(source, _no_node_left(keeps=bool(keep), has_virtual=bool(virtual)))
        check_survival(survival, [one.labels.get(ZONE, "") for one in model.table.nodes()])
        check_allocatable(replaced, read.snapshot.manifests)
        offers = node_offers(model, replaced, types, share, read.node_pools)
        if not offers:
            problem = "has no type for the architectures, systems and zones of the nodes"
            raise InputError("--instance-types", problem, object_name=instance_types or "")
        is_priced = any(one.has_price for one in types)
        question = SizeQuestion(
            replaced=len(replaced),
            kept=len(kept),
            cost=float_sum(price_of_node(info, types) for info in replaced),
            survival=survival,
            headroom=share,
            effort=effort,
            is_priced=is_priced,
            estimated=estimated_types(replaced, offers, types) if is_priced else (),
            untyped=untyped_nodes(replaced) if is_priced else (),
            control_plane=sum(is_control_plane(info.node) for info in replaced),
            virtual=tuple(virtual),
            is_changed=change != NO_PLAN_CHANGE,
            spot=tuple(filter(None, (spot_label(info.labels) for info in replaced))),
        )
        notes = (
            *refused_pod_notes(model, [info.name for info in replaced]),
            *failed_zone_notes(model.table.nodes()),
            *assumption_notes(model, replaced, types, read.node_pools),
            *spot_notes(replaced, offers, types),
            *later_pod_notes(model.objects),
            *read.idle_autoscaler(CHOOSES_NODES),
        )
        found = SizeSearch(
            model, offers, survival, progress, present.seed, read.images
        ).run(replaced, effort)  # fmt: skip
        moved = read.platform_notes(
            (pod.pod, name)
            for pod in model.pods()
            if (name := model.cluster.node_of(pod)) in found.nodes
        )
    answer = size_answer(
        question,
        found,
        read.snapshot.source,
        (*found.image_notes, *moved, *notes, *read.notes),
        read.limit_lines(found.planned(model.node(name).node for name in kept)),
    )
    print_tabular(answer, output)
    return exit_code.NO if answer.is_no else exit_code.SUCCESS


def _no_node_left(*, keeps: bool, has_virtual: bool) -> str:
    """Return why no node is left to replace.

    `keeps` is set if --keep was given, and `has_virtual` if the cluster has virtual nodes.
    """
    every = "every node is kept or virtual" if has_virtual else "matches every node"
    return f"{every if keeps else 'every node is virtual'}, so no node is left to replace"
