"""The sections about autoscalers: a line for each HorizontalPodAutoscaler and each node group."""

from __future__ import annotations

import io
from typing import Any

import pytest
from msgspec.structs import replace
from rich.console import Console

from fairlead.cli.output.summary.autoscaling import autoscaling
from fairlead.cli.output.summary.simulation import print_simulation
from fairlead.whatif.outcome.autoscaling.node_group import (
    AutoscalingOutcome,
    GroupOutcome,
    NodeTransition,
)
from fairlead.whatif.outcome.autoscaling.waiting_time import PodWait
from fairlead.whatif.outcome.run_outcome import RunOutcome
from fairlead.whatif.outcome.workload import WorkloadRef
from fairlead.whatif.result.autoscaling_json import autoscaling_json
from fairlead.whatif.run.experiment_run import run_experiment
from fairlead.whatif.run.progress import NoProgress
from fairlead.whatif.scenario.scenario import experiment_of, read_scenario

SCENARIO = """\
cluster: {generated: {nodes: 2}}
objects:
- apiVersion: apps/v1
  kind: Deployment
  metadata: {name: web, namespace: default}
  spec:
    replicas: 2
    selector: {matchLabels: {app: web}}
    template:
      metadata: {labels: {app: web}}
      spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 100m}}}]}
- apiVersion: autoscaling/v2
  kind: HorizontalPodAutoscaler
  metadata: {name: web, namespace: default}
  spec:
    scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
    maxReplicas: 10
    metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization,
      averageUtilization: 50}}}]
load:
- {workload: deploy/default/web, cpu: %s}
duration: 10m
"""


def printed(path, load: str) -> str:
    path.write_text(SCENARIO % load)
    experiment = experiment_of(str(path), read_scenario(str(path)))
    screen = io.StringIO()
    console = Console(file=screen, width=120, highlight=False, emoji=False)
    print_simulation(experiment, run_experiment(experiment, "", NoProgress()).outcome, console)
    return screen.getvalue()


@pytest.mark.parametrize(
    ("load", "line"),
    [
        pytest.param(
            "150m",
            "Deployment web 2 → 3, between 2 and 3 (limits 1 and 10), 1 change after 30s",
            id="one change has its time",
        ),
        pytest.param(
            "{steps: {0s: 150m, 2m: 250m}}",
            "Deployment web 2 → 5, between 2 and 5 (limits 1 and 10), 2 changes, the last after ",
            id="several changes have the time of the last",
        ),
    ],
)
def test_an_autoscaler_has_a_line(tmp_path, load, line):
    assert line in printed(tmp_path / "scenario.yaml", load)


def group(name: str, added: int = 0) -> GroupOutcome:
    return GroupOutcome(
        group=name, minimum=0, maximum=9, before=1, after=1 + added, added=added, removed=0,
        node_hours=1.0, has_price=False, cost_per_hour=None, cost=None,
    )  # fmt: skip


def run_of(found: AutoscalingOutcome, **more) -> RunOutcome:
    empty: dict[str, Any] = dict.fromkeys(
        ("preempted", "evicted", "pdb_breaches", "undrained", "skipped", "errors",
         "recurrences", "nodes", "allocations", "samples"),
        (),
    )  # fmt: skip
    return RunOutcome(
        started_at=0, ended_at=0, settled=True, pods={}, priority_names={}, choices_among_equals=0,
        autoscaling=found, **empty, **more,
    )  # fmt: skip


def test_groups_without_a_price_are_named_instead_of_a_cost():
    a, c = group("a"), group("c")
    b = replace(group("b"), has_price=True, cost_per_hour=0.5, cost=0.5)
    found = AutoscalingOutcome("cluster-autoscaler", (a, b), (), {}, {})
    assert (found.unpriced, found.cost, found.cost_per_hour) == (["a"], None, None)
    unused = replace(c, after=0, node_hours=0.0, cost_per_hour=0.0, cost=0.0)
    found = AutoscalingOutcome("cluster-autoscaler", (b, unused), (), {}, {})
    assert (found.unpriced, found.cost, found.cost_per_hour) == ([], 0.5, 0.5)
    assert AutoscalingOutcome("cluster-autoscaler", (a, c), (), {}, {}).unpriced == []


@pytest.mark.parametrize(
    ("kind", "nodes", "words"), [("small", 1, "an estimated "), ("large", 1, ""), ("small", 0, "")]
)
def test_a_cost_that_includes_estimated_prices_is_called_estimated(kind, nodes, words):
    priced = replace(group("a"), has_price=True, cost_per_hour=0.5, cost=0.5, instance_type="big")
    other = replace(
        priced, instance_type=kind, after=nodes, node_hours=nodes, cost_per_hour=0.0, cost=0.0
    )
    found = AutoscalingOutcome(
        "karpenter", (priced, other), (), {}, {}, estimated_prices=frozenset({"small"})
    )
    section, *_ = autoscaling(run_of(found))
    screen = io.StringIO()
    section.show(Console(file=screen, width=120), 1)
    assert f"at the end for {words}0.50 per hour" in screen.getvalue()
    assert f"which cost {words}0.50" in screen.getvalue()
    told = autoscaling_json(found, 0)["autoscaling"]
    assert told["cost_is_estimated"] is bool(words)
    assert [one["cost_is_estimated"] for one in told["groups"]] == [False, kind == "small"]


def test_a_run_that_takes_no_time_has_no_cost_without_prices():
    brief = replace(group("a"), node_hours=0.0)
    assert AutoscalingOutcome("cluster-autoscaler", (brief,), (), {}, {}).cost is None


def test_the_totals_say_when_nodes_were_added_and_removed():
    """The default text may leave out the list of the groups, which has the times too."""
    at = [(60, "n1", True), (90, "n2", True), (600, "n1", False)]
    moves = tuple(NodeTransition(s * 10**9, node, "a", came) for s, node, came in at)
    both = replace(group("a", added=2), removed=1)
    found, screen = AutoscalingOutcome("karpenter", (both,), moves, {}, {}), io.StringIO()
    totals, *_ = autoscaling(
        run_of(found), run_of(replace(found, groups=(group("a"),), transitions=()))
    )
    totals.show(Console(file=screen, width=200), 1)
    assert "2 added after 1m00s to 1m30s, 1 removed after 10m00s, " in screen.getvalue()
    assert "without the change: 0 added, 0 removed, " in screen.getvalue()


def test_node_groups_that_change_come_first():
    """A list of three groups that is cut off after one names the group that grew."""
    groups = group("a"), group("b"), group("c", added=2)
    screen = io.StringIO()
    found = AutoscalingOutcome("cluster-autoscaler", groups, (), {}, {})
    _, section, *_ = autoscaling(run_of(found))
    section.show(Console(file=screen, width=120), 1)
    assert "- c: 1 → 3 nodes (0 to 9)" in screen.getvalue()
    assert "- … and 2 more groups" in screen.getvalue()


def test_with_all_rows_no_workload_that_waited_is_left_out():
    waits = tuple(
        PodWait(f"shop/web-{at}", WorkloadRef("Deployment", "shop", f"web-{at}"), 0, at + 1)
        for at in range(8)
    )
    found = AutoscalingOutcome("cluster-autoscaler", (group("a"),), (), {}, {})
    (_, section, *_), screen = autoscaling(run_of(found, waits=waits)), io.StringIO()
    assert section.rows == 8
    section.show(Console(file=screen, width=120), section.rows)
    assert all(f"- deploy/shop/web-{at}: 1 bound" in screen.getvalue() for at in range(8))
    assert "more" not in screen.getvalue()


def test_pods_with_the_same_reason_are_one_row():
    waiting = {f"shop/web-{at}": "the group is full" for at in range(50)}
    found = AutoscalingOutcome("cluster-autoscaler", (group("a"),), (), waiting, {})
    assert [one.rows for one in autoscaling(run_of(found))] == [1, 1, 1, 0]


def test_nodes_that_different_pods_block_for_the_same_reason_are_one_row():
    blocked = {at: f"BlockedByPod: LocalStorageRequested, shop/web-{at}" for at in "abc"}
    staying = {**blocked, "d": "BlockedByPod: NotReplicated, shop/one", "e": "NotUnderutilized"}
    found = AutoscalingOutcome("cluster-autoscaler", (group("a"),), (), {}, staying)
    (*_, section), screen = autoscaling(run_of(found)), io.StringIO()
    assert section.rows == 3
    section.show(Console(file=screen, width=120), section.rows)
    assert screen.getvalue().splitlines() == [
        "nodes that are not removed: 5",
        "- a and 2 more: BlockedByPod: LocalStorageRequested, shop/web-a and 2 more",
        "- d: BlockedByPod: NotReplicated, shop/one",
        "- e: NotUnderutilized",
    ]


def test_nodes_whose_pods_would_not_schedule_for_the_same_reason_are_one_row():
    """Karpenter repeats the error for up to five pods of each node."""
    start, error = "Not all pods would schedule, ", "all types exceed limits (NodePool=a); no zone"
    alike = {at: f"{start}shop/{at}-1 => {error} shop/{at}-2 => {error} " for at in "ab"}
    alike["c"] = f"{start}{' '.join(f'shop/c-{at} => {error}' for at in range(5))}  and 1 other(s)"
    staying = {**alike, "d": f"{start}shop/d-1 => {error} shop/d-2 => no room "}
    found = AutoscalingOutcome("karpenter", (group("a"),), (), {}, staying)
    (*_, section), screen = autoscaling(run_of(found)), io.StringIO()
    section.show(Console(file=screen, width=200), section.rows)
    assert [one.rstrip() for one in screen.getvalue().splitlines()[1:]] == [
        f"- a and 2 more: Not all pods would schedule: {error}",
        f"- d: {start}shop/d-1 => {error} shop/d-2 => no room",
    ]


@pytest.mark.parametrize("added", [0, 1])
def test_totals_come_before_tables_if_the_autoscaler_acted(added):
    found = AutoscalingOutcome("karpenter", (group("a", added=added),), (), {}, {})
    totals, details, *_ = autoscaling(run_of(found))
    assert (totals.is_urgent, details.is_urgent) == (bool(added), False)
