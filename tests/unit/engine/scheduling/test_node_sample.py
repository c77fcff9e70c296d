"""Node sampling: the number of nodes that are evaluated, their order and the next start."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.engine.core.reporter import PodPlaced, PodPreempting
from fairlead.engine.framework.profile import Profile
from fairlead.engine.scheduling.node_sample import ADAPTIVE, NodeOrder, feasible_nodes_to_find
from fairlead.engine.state.node_table import NodeTable
from fairlead.testing.builders import make_budget, make_node, make_pod

ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"


@pytest.mark.parametrize(
    ("percentage", "nodes", "expected"),
    [
        (10, 99, 99), (10, 100, 100), (10, 1000, 100), (10, 5000, 500), (50, 150, 100),
        (ADAPTIVE, 99, 99), (ADAPTIVE, 1000, 420), (ADAPTIVE, 5000, 500), (ADAPTIVE, 6000, 300),
        (ADAPTIVE, 100_000, 5000),
    ],
)  # fmt: skip
def test_how_many_nodes_are_enough(percentage, nodes, expected):
    """upstream: schedule_one_test.go: TestNumFeasibleNodesToFind."""
    assert feasible_nodes_to_find(percentage, nodes) == expected


@pytest.fixture
def order():
    """The node order, which lists nodes as upstream does."""

    class Listed:
        def __init__(self):
            self.table = NodeTable()
            self._order = NodeOrder(self.table)

        def put(self, *names, zone=None, **labels):
            zoned = {} if zone is None else {ZONE: zone}
            for name in names:
                self.table.put_node(make_node(name, labels=zoned | labels))

        def __str__(self):
            return "".join(self.table.at(row).name for row in self._order.rows().tolist())

    return Listed()


def test_nodes_of_zones_alternate(order):
    order.put("a", "b", "c", zone="1")
    order.put("d", zone="2")
    order.put("e", "f", zone="3")
    assert str(order) == "adebfc"


def test_zones_are_identified_by_region_and_beta_labels_take_precedence(order):
    order.put("a", "b", zone="1", **{REGION: "x"})
    order.put("c", zone="1", **{REGION: "y"})
    order.put("d", **{"failure-domain.beta.kubernetes.io/zone": "1", ZONE: "2", REGION: "y"})
    assert str(order) == "acbd"


def test_a_node_that_changes_its_zone_is_last_in_the_new_zone(order):
    order.put("a", "b", zone="1")
    order.put("c", zone="2")
    assert str(order) == "acb"
    order.put("a", zone="2")
    assert str(order) == "bca"


def test_a_recreated_node_is_last(order):
    order.put("a", "b", "c")
    assert str(order) == "abc"
    order.table.remove_node("a")
    order.put("d", "a")
    assert str(order) == "bcda"


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from(["", "1", "2", None]))))
def test_an_updated_order_equals_a_new_one(steps):
    """In the steps, None deletes the node."""
    table, looks = NodeTable(), []
    following = NodeOrder(table)
    for name, zone in steps:
        if zone is not None:
            table.put_node(make_node(name, labels={ZONE: zone}))
        elif table.find(name) is not None:
            table.remove_node(name)
        looks.append(following.rows())
    rows = following.rows().tolist()
    assert sorted(rows) == [node.row for node in table.nodes()]
    zones = [table.at(row).labels[ZONE] for row in rows]
    for zone in set(zones):
        places = [place for place, one in enumerate(zones) if one == zone]
        # The n-th node of a zone follows the first n nodes of each zone that has as many.
        assert all(place >= order for order, place in enumerate(places))


# All nodes have equal scores, so the choice shows which nodes were evaluated.
PLUGINS = (("PrioritySort", 0), ("NodeName", 0), ("NodeResourcesFit", 1), ("DefaultBinder", 0))


@pytest.fixture
def cluster(stage):
    """A scheduler that evaluates a tenth of 1,200 nodes, and records how many it found feasible."""

    def make(*objects, percentage=10, nodes=1200, **profile):
        profiles = (Profile(plugins=PLUGINS, node_percentage=percentage, **profile),)
        named = (make_node(f"n{number:04}") for number in range(nodes))
        return stage(*named, *objects, profiles=profiles)

    return make


def placements(scene):
    """Return (node number, number of feasible nodes) of every placement."""
    found = scene.records.of(PodPlaced)
    return [(int(record.node[1:]), record.feasible) for record in found]


def test_a_search_ends_with_enough_nodes_and_the_next_continues_there(cluster):
    """upstream: schedule_one.go: findNodesThatPassFilters."""
    scene = cluster(*(make_pod(f"p{number}") for number in range(11)))
    scene.steps()
    found = placements(scene)
    assert [feasible for _, feasible in found] == [120] * 11
    assert [node // 120 for node, _ in found] == [*range(10), 0]


def test_infeasible_nodes_are_also_evaluated(cluster):
    """The first 240 nodes are full, so the first search reaches the 360th, the next the 480th."""
    full = (make_pod(f"x{i}", node=f"n{i:04}", requests={"cpu": "4"}) for i in range(240))
    pods = [make_pod(f"p{number}", requests={"cpu": "1"}) for number in range(2)]
    scene = cluster(*full, *pods)
    scene.steps()
    assert [(node // 120, feasible) for node, feasible in placements(scene)] == [(2, 120), (3, 120)]


def test_all_nodes_are_evaluated_if_too_few_fit(stage):
    selector = {"spec": {"nodeName": "", "nodeSelector": {"x": "y"}}}
    others = (make_node(f"n{number:04}") for number in range(1200))
    fitting = [make_node(f"n{number}", labels={"x": "y"}) for number in range(7000, 7005)]
    profiles = (Profile(plugins=(*PLUGINS, ("NodeAffinity", 0)), node_percentage=10),)
    scene = stage(*others, *fitting, make_pod("p", **selector), profiles=profiles)
    scene.steps()
    assert placements(scene)[0][1] == 5


def test_the_sample_is_limited_to_the_nodes_of_pre_filter(stage):
    """The percentage applies to the nodes that PreFilter returns."""
    terms = [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [f"n{i:04}"]}]}
        for i in range(150)
    ]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    profiles = (Profile(plugins=(*PLUGINS, ("NodeAffinity", 0)), node_percentage=10),)
    nodes = (make_node(f"n{number:04}") for number in range(1200))
    pod = make_pod("p", spec={"affinity": {"nodeAffinity": required}})
    scene = stage(*nodes, pod, profiles=profiles)
    scene.steps()
    assert placements(scene)[0][1] == 100


def test_a_pod_restricted_to_missing_nodes_does_not_move_the_next_start(stage):
    named = {"key": "metadata.name", "operator": "In", "values": ["absent"]}
    terms = {"nodeSelectorTerms": [{"matchFields": [named]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    pods = (make_pod("p", spec={"affinity": {"nodeAffinity": required}}), make_pod("q"))
    profiles = (Profile(plugins=(*PLUGINS, ("NodeAffinity", 0)), node_percentage=10),)
    scene = stage(*(make_node(f"n{number:04}") for number in range(1200)), *pods, profiles=profiles)
    scene.step()
    scene.all_done()
    scene.step()
    assert placements(scene)[0][0] < 120


def test_by_default_every_node_is_evaluated(cluster):
    scene = cluster(make_pod("p"), percentage=None)
    scene.steps()
    assert placements(scene)[0][1] == 1200


@pytest.fixture
def preempting(stage):
    """Returns (nominated node, number of candidates) for a pod and ten full nodes."""

    def make(args, seed=0, budget=()):
        nodes = [make_node(f"n{number}") for number in range(10)]
        victims = [
            make_pod(f"v{number}", node=f"n{number}", priority=number, requests={"cpu": "4"},
                     labels={"v": str(number)})
            for number in range(10)
        ]  # fmt: skip
        budgets = [make_budget(f"b{number}", {"v": str(number)}, allowed=0) for number in budget]
        pod = make_pod("p", priority=100, requests={"cpu": "4"})
        profiles = (Profile(args={"DefaultPreemption": args}),)
        scene = stage(*nodes, *victims, *budgets, pod, profiles=profiles, seed=seed)
        scene.step()
        [record] = scene.records.of(PodPreempting)
        return int(record.node[1:]), record.candidates

    return make


def test_by_default_every_candidate_is_evaluated(preempting):
    assert preempting({}) == (0, 10)


def test_a_sample_of_candidates_starts_at_a_random_node_and_is_limited(preempting):
    """The best of three consecutive nodes; upstream: preemption.go: DryRunPreemption."""
    args = {"minCandidateNodesAbsolute": 3, "minCandidateNodesPercentage": 0}
    found = {preempting(args, seed) for seed in range(80)}
    assert {candidates for _, candidates in found} == {3}
    assert {node for node, _ in found} == set(range(8))


def test_the_percentage_counts_if_it_gives_more_candidates(preempting):
    args = {"minCandidateNodesAbsolute": 3, "minCandidateNodesPercentage": 50}
    assert preempting(args)[1] == 5


def test_the_other_limit_keeps_its_default(preempting):
    assert preempting({"minCandidateNodesPercentage": 10})[1] == 10


def test_the_search_continues_until_a_candidate_violates_no_budget(preempting):
    args = {"minCandidateNodesAbsolute": 2, "minCandidateNodesPercentage": 0}
    found = {preempting(args, seed, budget=range(9)) for seed in range(30)}
    assert {node for node, _ in found} == {9}
    # At most the wanted number of candidates with budget violations is kept.
    assert {candidates for _, candidates in found} == {2, 3}
