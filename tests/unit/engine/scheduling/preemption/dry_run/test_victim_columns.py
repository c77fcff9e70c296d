"""Dry runs on many nodes at once find the same victims as dry runs on each node."""

from __future__ import annotations

import numpy as np
import pytest

from fairlead.api.codec import decode_as
from fairlead.api.lazy_dict import LazyDict
from fairlead.api.objects import DeviceClass, PodDisruptionBudget
from fairlead.engine.core.status import SUCCESS, Code, Status, unschedulable
from fairlead.engine.core.stimulus import ObjectChanged, ObjectDeleted, ObjectsLoaded
from fairlead.engine.core.tie_break import TieBreak
from fairlead.engine.framework.candidate import Candidate, CandidateRule
from fairlead.engine.framework.interface import Locality
from fairlead.engine.framework.preemption.nominator import Nominator
from fairlead.engine.framework.profile import DEFAULT_PLUGINS, Profile
from fairlead.engine.framework.waiting_pods import WaitingPods
from fairlead.engine.scheduling.compose import PluginHandle, build_profile
from fairlead.engine.scheduling.evaluation import evaluate
from fairlead.engine.scheduling.feasibility import find_nodes_that_fit
from fairlead.engine.scheduling.nominated_pods import only_fit
from fairlead.engine.scheduling.preemption.dry_run import victim_columns
from fairlead.engine.scheduling.preemption.dry_run.victim_columns import (
    NO_POD,
    VictimColumns,
    guarded_rows,
)
from fairlead.engine.scheduling.preemption.dry_run.victims import (
    NO_VICTIMS,
    select_victims_by_resources,
    select_victims_on_node,
)
from fairlead.engine.scheduling.preemption.policy import RULES, PreemptionPolicy
from fairlead.engine.state import change_log
from fairlead.engine.state.cluster import Cluster
from fairlead.engine.state.disruption_budgets import DisruptionBudgets
from fairlead.engine.state.pod_info import PodInfo
from fairlead.testing.builders import make_node, make_pod
from fairlead.testing.plugin_scene import PluginScene
from fairlead.testing.random_cluster import GPU, Chance

FEWEST_VICTIMS = next(rule for rule in RULES if rule.name == "fewest victims")
NODES = [f"n{number:02}" for number in range(60)]


def budget(allowed, name="guard"):
    """Return a budget that allows this many disruptions of the guarded pods."""
    return decode_as(
        PodDisruptionBudget,
        {
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"selector": {"matchLabels": {"app": "guarded"}}},
            "status": {"disruptionsAllowed": allowed},
        },
    )


def any_pod(chance, name):
    """A pod on some node; pods of different sizes have the same priority and start."""
    return make_pod(
        name,
        node=chance.of(NODES),
        priority=chance.of([1, 1, 2, 3, 10]),
        labels={"app": chance.of(["a", "a", "a", "guarded"])},
        requests={"cpu": chance.of(["300m", "700m", "1100m"]), "memory": chance.of(["1Gi", "2Gi"])},
        status={"startTime": chance.of(["2026-01-01T00:00:00Z", "2026-01-01T00:00:07Z"])},
    )


def by_node(served, pod):
    """Return the candidates and rejections from a trial on each potential node."""
    framework, found = served.framework, find_nodes_that_fit(served.plans, pod)
    table, budgets = framework.cluster.table, framework.cluster.budgets()
    potential = evaluate(served, pod).preemption.potential_nodes
    return {
        name: select_victims_on_node(framework, found.state, pod, table.find(name), budgets)
        for name in potential
    }


def at_once(served, pod):
    """Return the candidates and rejections of the search for a nomination."""
    search = evaluate(served, pod).preemption
    return {**search.candidates, **search.rejected}


def test_a_budget_whose_pods_are_deleted_guards_no_node():
    """The index keeps the labels of the deleted pods for some time."""
    cluster, pod = Cluster(), make_pod("p", node="n00", labels={"app": "guarded"})
    for stimulus in (ObjectChanged(make_node("n00")), ObjectChanged(pod)):
        cluster.apply(stimulus)
    row, budgets = np.array([cluster.table.find("n00").row]), DisruptionBudgets([budget(0)])
    assert guarded_rows(cluster.table, budgets, row).tolist() == [True]
    cluster.apply(ObjectDeleted(pod))
    assert guarded_rows(cluster.table, budgets, row).tolist() == [False]


def test_nodes_without_pods_of_lower_priority_are_rejected():
    """The reason names the victims, not the resources that are missing."""
    scene = PluginScene(nodes=map(make_node, NODES))
    priorities = dict(zip(NODES, [9, 1, 10] * 20, strict=True))
    for name, priority in priorities.items():
        full = make_pod(f"p-{name}", node=name, priority=priority, requests={"cpu": 4})
        scene.add(full)
    search = scene.evaluate(make_pod("new", priority=9, requests={"cpu": 3})).preemption
    assert set(search.candidates) == {name for name in NODES if priorities[name] == 1}
    assert search.rejected == {name: NO_VICTIMS for name in NODES if priorities[name] != 1}


@pytest.mark.parametrize("seed", range(40))
def test_victims_among_pods_of_equal_size(seed):
    """The least important pods, ordered by name in the end, as in a trial on the node."""
    chance = Chance(seed)
    requests = chance.of([{"cpu": "500m"}, {"memory": "1Gi"}, {"cpu": "500m", "memory": "1Gi"}, {}])
    scene = PluginScene(nodes=[make_node("n", cpu=4, memory="8Gi", pods=8)])
    for number in range(8):
        name = f"{chance.below(90)}-{number}"
        start = chance.of(["2026-01-01T00:00:00Z", "2026-01-01T00:00:07Z"])
        priority = chance.of([1, 1, 2, 10])
        pod = make_pod(
            name, node="n", priority=priority, requests=requests, status={"startTime": start}
        )
        scene.add(pod)
    pod = scene.info(make_pod("new", priority=9, requests={"cpu": chance.of(["1", "2500m"])}))
    served, node = scene.profile, scene.cluster.table.find("n")
    found = find_nodes_that_fit(served.plans, pod)
    fit = only_fit(found.plan, found.state)
    for policy in PreemptionPolicy(), PreemptionPolicy(order=lambda victim: victim.key):
        one_by_one = select_victims_on_node(served.framework, found.state, pod, node, (), policy)
        loaded = scene.cluster.table.representatives
        assert select_victims_by_resources(fit, pod, node, loaded, (), (), policy) == one_by_one


@pytest.mark.parametrize("seed", range(20))
def test_victims_among_loaded_pods_are_those_among_pods_that_arrived_one_by_one(seed):
    """PodInfos are made only for the victims."""
    chance = Chance(seed)
    pods = [
        make_pod(
            f"{app}-{chance.below(90)}-{number}",
            node="n",
            priority=priority,
            labels={"app": app},
            requests={"cpu": "500m"},
            status={"startTime": f"2026-01-01T00:00:0{chance.below(2)}Z"} if has_start else {},
        )
        for app in "cab"
        for priority, has_start in [(chance.of([1, 1, 2, 10]), chance.one_in(2))]
        for number in range(3)
    ]
    answers = []
    for loads in ([pods], [[pod] for pod in pods]):
        scene = PluginScene(nodes=[make_node("n", cpu="4500m")])
        for load in loads:
            scene.cluster.apply(ObjectsLoaded(load))
        pod = scene.info(make_pod("new", priority=9, requests={"cpu": "1"}))
        node, loaded = scene.cluster.table.find("n"), scene.cluster.table.representatives
        found = find_nodes_that_fit(scene.profile.plans, pod)
        fit = only_fit(found.plan, found.state)
        answer = select_victims_by_resources(fit, pod, node, loaded, (), ())
        answers.append([one.key for one in answer.victims])
        stored = node.stored_pods
        late = stored.group_sizes().total() if isinstance(stored, LazyDict) else 0
        assert late == (len(pods) - len(answer.victims) if loads == [pods] else 0)
    assert answers[0] == answers[1]


@pytest.mark.parametrize(("seed", "log_length"), [(0, 1 << 16), (1, 8), (2, 64)])
def test_many_nodes_together_are_evaluated_like_single_nodes(seed, log_length, monkeypatch):
    """Also after changes of nodes, pods, budgets and nominations that overflow the logs."""
    monkeypatch.setattr(change_log, "_LENGTH_MAX", log_length)
    chance, cluster, nominator = Chance(seed), Cluster(), Nominator()
    for name in NODES:
        cluster.apply(ObjectChanged(make_node(name, cpu=4, memory="8Gi", pods=chance.of([3, 9]))))
        lasting = make_pod(f"lasting-{name}", node=name, priority=2, requests={"cpu": "300m"})
        cluster.apply(ObjectChanged(lasting))  # so that nothing fits without preemption
    served = build_profile(Profile(), PluginHandle(cluster, nominator, WaitingPods()), TieBreak(0))
    placed = {}
    for number in range(480):
        placed[number] = any_pod(chance, f"p{number}")
        cluster.apply(ObjectChanged(placed[number]))
    if seed:
        cluster.apply(ObjectChanged(budget(0)))
    seen = set()
    for step in range(6):
        wanted = {"cpu": chance.of(["3800m", "4", "5"]), "memory": "2Gi"}
        waiting = make_pod(f"new-{step}", priority=chance.of([3, 9]), requests=wanted)
        pod = PodInfo(waiting, cluster.shapes.shape_of(waiting))
        found = at_once(served, pod)
        assert found == by_node(served, pod)
        assert found == at_once(served, pod)  # trials are reverted
        seen |= {type(answer) for answer in found.values()}
        nominator.nominate(pod, chance.of(NODES))
        if seed:
            cluster.apply(ObjectChanged(budget(chance.below(4))))
        for _ in range(12 * (step % 2)):  # with logs that are too short in odd steps
            node = make_node(chance.of(NODES), cpu=4, memory="8Gi", pods=chance.of([3, 9]))
            cluster.apply(ObjectChanged(node))
        for _ in range(30 * (step % 2 == 0)):
            gone = chance.of(sorted(placed))
            cluster.apply(ObjectDeleted(placed.pop(gone)))
            placed[1_000 * (step + 1) + gone] = new = any_pod(chance, f"q{step}-{gone}")
            cluster.apply(ObjectChanged(new))
    assert Status in seen
    assert len(seen) > 1


class SparesPrecious:
    """A plugin that decides which pods may be victims: all but those with a label."""

    name = "SparesPrecious"

    def is_eligible_victim(self, _pod, victim):
        return "precious" not in victim.labels


# --- columns ---------------------------------------------------------------------------------


class Columns:
    """The columns of a small cluster, and the same results found node by node."""

    def __init__(self, *nodes):
        self.scene = PluginScene(nodes=nodes)
        self.table = self.scene.cluster.table
        self.kept = victim_columns.VictimColumns(self.table)

    def rows(self):
        return [node.row for node in self.table.nodes()]

    def lowest(self, row):
        return min((pod.priority for pod in self.table.at(row).pods.values()), default=NO_POD)

    def with_victims(self, pod):
        return [row for row in self.rows() if self.lowest(row) < pod.priority]

    def together(self, pod):
        """Return the cost or the status on each node with victims; SUCCESS if it fits now."""
        rows = self.with_victims(pod)
        result = self.kept.costs(self._fit(pod), pod, np.array(rows, np.int64), RULES)
        return [
            tuple(result.costs[:, at]) if result.is_candidate[at] else result.statuses[code]
            for at, code in enumerate(result.codes)
        ]

    def one_by_one(self, pod):
        """Return the same, computed node by node."""
        fit, answers = self._fit(pod), []
        for row in self.with_victims(pod):
            node, loaded = self.table.at(row), self.table.representatives
            answer = select_victims_by_resources(fit, pod, node, loaded, (), ())
            if isinstance(answer, Candidate):
                answers.append(tuple(rule.cost(answer) for rule in RULES))
            else:
                answers.append(SUCCESS if answer.code is Code.ERROR else answer)
        return answers

    def _fit(self, pod):
        served = self.scene.profile
        found = find_nodes_that_fit(served.plans, pod)
        return only_fit(found.plan, found.state)


def small_pod(chance, name, node):
    """A pod of some size; many have the same priority and start."""
    sizes = {"300m": "1Gi", "700m": "2Gi", "1100m": "1Gi", "0": "0"}
    cpu = chance.of(list(sizes))
    return make_pod(
        name,
        node=node,
        priority=chance.of([-5, 1, 1, 2, 10]),
        requests={"cpu": cpu, "memory": sizes[cpu]} | ({GPU: 1} if chance.one_in(4) else {}),
        status={"startTime": f"2026-01-01T00:00:0{chance.of([0, 0, 7])}Z"},
    )


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("log_length", [6, 1 << 16])
def test_cached_columns_give_the_costs_of_single_nodes(seed, log_length, monkeypatch):
    """Given nodes and pods that are added and deleted, also if rows are added or reused.

    The columns have no more slots than a node had pods.
    """
    monkeypatch.setattr(change_log, "_LENGTH_MAX", log_length)
    chance, most = Chance(seed), 0
    columns, nodes, pods, seen = Columns(), {}, {}, set()
    for step in range(200):
        if len(nodes) < 6 or chance.one_in(8):
            name = f"n{step}"
            nodes[name] = make_node(
                name, cpu=4, memory="8Gi", pods=chance.of([0, 3, 9]), devices={GPU: chance.below(3)}
            )
            columns.scene.add(nodes[name])
        elif chance.one_in(12):
            columns.scene.remove(nodes.pop(chance.of(sorted(nodes))))
        elif pods and chance.one_in(3):
            columns.scene.remove(pods.pop(chance.of(sorted(pods))))
        else:
            for number in range(chance.below(5)):
                name = f"{chance.of('abcdef')}{step}-{number}"  # not in the order of their arrival
                pods[name] = small_pod(chance, name, chance.of(sorted(nodes)))
                columns.scene.add(pods[name])
        most = max(most, *(len(node.pods) for node in columns.table.nodes()))
        if chance.one_in(3):
            continue
        assert columns.kept.refresh() is True
        assert len(columns.kept._priority) <= most
        lowest = columns.kept.lowest_priorities()
        assert [lowest[row] for row in columns.rows()] == list(map(columns.lowest, columns.rows()))
        wanted = {"cpu": chance.of(["1", "3800m", "5"]), "memory": "2Gi"}
        wanted |= {GPU: 2} if chance.one_in(2) else {}
        pod = columns.scene.info(make_pod("new", priority=chance.of([2, 9]), requests=wanted))
        found = columns.together(pod)
        assert found == columns.one_by_one(pod)
        seen |= set(found)
    assert len(seen) > 30


def test_of_equally_important_pods_the_first_by_name_is_reprieved_first():
    """One core is left beside the preemptor: for pod a, or for b and c, which arrived first."""
    columns = Columns(make_node("n", cpu=4))
    for name, cpu in (("b", "400m"), ("c", "600m"), ("a", "1")):
        columns.scene.add(make_pod(name, node="n", requests={"cpu": cpu}))
    columns.kept.refresh()
    pod = columns.scene.info(make_pod("new", priority=9, requests={"cpu": 3}))
    (costs,) = columns.together(pod)
    assert dict(zip(RULES, costs, strict=True))[FEWEST_VICTIMS] == 2
    assert [costs] == columns.one_by_one(pod)


def test_only_changed_nodes_are_read_again(monkeypatch):
    """To read all nodes takes as long as hundreds of searches."""
    read, facts = [], VictimColumns._facts

    def recorded(kept, nodes):
        read.append([node.name for node in nodes])
        return facts(kept, nodes)

    monkeypatch.setattr(VictimColumns, "_facts", recorded)
    columns = Columns(make_node("a"), make_node("b"), make_node("c"))
    columns.scene.add(make_pod("p", node="a"), make_pod("q", node="b"))
    columns.kept.refresh()
    columns.scene.add(make_pod("r", node="b"), make_pod("s", node="b"))
    columns.kept.refresh()
    columns.kept.refresh()
    assert read == [["a", "b", "c"], ["b"]]


def test_columns_that_would_take_too_much_memory_are_not_kept(monkeypatch):
    """They are written again as soon as the pods are few enough."""
    columns = Columns(make_node("n"))
    monkeypatch.setattr(victim_columns, "_ENTRIES_MAX", 2 * columns.table.capacity)
    pods = [make_pod(f"p{number}", node="n", requests={"cpu": 2}) for number in range(3)]
    pod = columns.scene.info(make_pod("new", priority=9, requests={"cpu": 3}))
    columns.scene.add(*pods[:2])
    assert columns.kept.refresh() is True
    columns.scene.add(pods[2])
    assert columns.kept.refresh() is False
    assert columns.kept._priority.size == 0
    columns.scene.remove(pods[0])
    assert columns.kept.refresh() is True
    assert columns.together(pod) == columns.one_by_one(pod)


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (PreemptionPolicy(), True),
        (PreemptionPolicy(rules=RULES[1:]), True),
        (
            PreemptionPolicy(rules=(*RULES, CandidateRule("name", lambda to: len(to.node.name)))),
            False,
        ),
        (PreemptionPolicy(order=lambda pod: pod.key), False),
        (PreemptionPolicy(eligibility=(SparesPrecious(),)), False),
    ],
)
def test_columns_support_only_the_default_order_and_rules(policy, expected):
    assert victim_columns.can_rate(policy) is expected


def test_many_nodes_are_evaluated_one_by_one_if_a_device_class_provides_a_resource():
    """In a profile without DynamicResources, which would need a trial on each node."""
    plugins = tuple(one for one in DEFAULT_PLUGINS if one[0] != "DynamicResources")
    scene = PluginScene(profile=Profile(plugins=plugins))
    spec = {"extendedResourceName": GPU}
    scene.add(decode_as(DeviceClass, {"metadata": {"name": "gpu"}, "spec": spec}))
    for name in NODES:
        scene.add(make_node(name, devices={GPU: 1}))
        scene.add(make_pod(f"p-{name}", node=name, priority=1, requests={GPU: 1}))
    search = scene.evaluate(make_pod("new", priority=9, requests={GPU: 1})).preemption
    assert list(search.candidates) == NODES


def test_a_few_nodes_beside_many_guarded_ones_are_evaluated_one_by_one():
    """One node in three has no guarded pod."""
    scene = PluginScene(nodes=map(make_node, NODES))
    scene.add(budget(0))
    for number, name in enumerate(NODES):
        labels = {"app": "guarded"} if number % 3 else {}
        scene.add(make_pod(f"p-{name}", node=name, labels=labels, requests={"cpu": 4}))
    search = scene.evaluate(make_pod("new", priority=9, requests={"cpu": 3})).preemption
    breached = [to.pdb_violations for to in search.candidates.values()]
    assert breached == [min(number % 3, 1) for number in range(len(NODES))]


def test_a_plugin_that_selects_victims_also_works_on_many_nodes():
    """Columns do not call the plugin, so they are not used."""
    scene = PluginScene(SparesPrecious, nodes=map(make_node, NODES))
    for number, name in enumerate(NODES):
        labels = {"precious": ""} if number % 2 else {}
        scene.add(make_pod(f"p-{name}", node=name, labels=labels, requests={"cpu": 4}))
    search = scene.evaluate(make_pod("new", priority=9, requests={"cpu": 3})).preemption
    assert list(search.candidates) == NODES[::2]
    assert list(search.rejected) == NODES[1::2]


class Opened:
    """A Filter of the node alone. Its rejection is not final, so preemption looks at the node."""

    name = "Opened"
    locality = Locality.NODE

    def filter(self, state, pod, node):
        return unschedulable("closed") if "closed" in node.labels else SUCCESS


def test_nodes_rejected_by_an_earlier_plugin_stay_rejected():
    """Columns read only resources, and would find the cheapest victims on closed nodes."""
    profile = Profile(plugins=((Opened.name, 0), *DEFAULT_PLUGINS))
    scene = PluginScene(Opened, profile=profile)
    for number, name in enumerate(NODES):
        is_closed = number % 2
        scene.add(make_node(name, labels={"closed": ""} if is_closed else {}))
        priority = 1 if is_closed else 2
        scene.add(make_pod(f"p-{name}", node=name, priority=priority, requests={"cpu": 4}))
    search = scene.evaluate(make_pod("new", priority=9, requests={"cpu": 3})).preemption
    assert list(search.candidates) == NODES[::2]
    assert list(search.rejected) == NODES[1::2]


@pytest.mark.parametrize(("allowed", "expected"), [(-1, True), (0, True), (1, True), (2, False)])
def test_a_node_is_guarded_if_its_selected_pods_exceed_the_budget(allowed, expected):
    """Two pods of node n are selected, and no pods of the other nodes."""
    scene = PluginScene(nodes=[make_node("n"), make_node("other")])
    guarded = {"app": "guarded"}
    scene.add(make_pod("a", node="n", labels=guarded), make_pod("b", node="n", labels=guarded))
    scene.add(make_pod("c", node="n"), make_pod("d", node="other"))
    scene.add(make_pod("e", namespace="else", node="other", labels=guarded))
    table = scene.cluster.table
    rows = [table.find(name).row for name in ("other", "n")]
    found = guarded_rows(table, DisruptionBudgets([budget(allowed)]), np.array(rows))
    assert found.tolist() == [False, expected]


def test_a_node_is_guarded_by_any_of_several_budgets():
    """The last one allows everything."""
    scene = PluginScene(nodes=[make_node("n")])
    scene.add(make_pod("a", node="n", labels={"app": "guarded"}))
    budgets = DisruptionBudgets([budget(0), budget(5, "z")])
    table = scene.cluster.table
    assert guarded_rows(table, budgets, np.array([table.find("n").row])).tolist() == [True]


def test_shapes_of_deleted_pods_are_dropped(monkeypatch):
    """Otherwise the columns of a scheduler that runs for months would grow."""
    monkeypatch.setattr(victim_columns, "_KINDS_SPARE", 4)
    cluster = Cluster()
    cluster.apply(ObjectChanged(make_node("n")))
    columns = victim_columns.VictimColumns(cluster.table)
    for number in range(40):
        pod = make_pod("p", node="n", requests={"cpu": f"{100 + number}m"})
        cluster.apply(ObjectChanged(pod))
        assert columns.refresh()
        cluster.apply(ObjectDeleted(pod))
    assert len(columns._kinds) <= 2 * 2 + 4 + 1


def workload(chance, app):
    """The pods of one workload on random nodes; workloads may tie in priority and start."""
    has_start, priority = chance.one_in(2), chance.below(3)
    requests = {"cpu": chance.of(["100m", "200m", "300m"])}
    return [
        make_pod(
            f"{app}-{number}",
            node=chance.of(NODES[:30]),
            priority=priority,
            labels={"app": app},
            requests=requests,
            status={"startTime": f"2026-01-01T00:00:0{chance.below(3)}Z"} if has_start else {},
        )
        for number in range(chance.of([1, 4, 40]))
    ]


def facts(columns):
    """The priority, start and requests of each pod in each column, in order."""
    shown = []
    for priority, start, kind in zip(
        columns._priority.T, columns._start.T, columns._kind.T, strict=True
    ):
        used = priority != NO_POD
        kinds = [columns._kinds[one].requests for one in kind[used].tolist()]
        shown.append((priority[used].tolist(), start[used].tolist(), kinds))
    return shown


@pytest.mark.parametrize("seed", range(30))
def test_loaded_pods_are_read_like_added_pods(seed, monkeypatch):
    """Also after some pods or nodes were deleted, and when the log overflows."""
    monkeypatch.setattr(change_log, "_LENGTH_MAX", 40 if seed % 5 == 0 else 1 << 16)
    chance = Chance(seed)
    loads = [[pod for app in "dbca" for pod in workload(chance, f"{app}{load}")] for load in "xy"]
    extra = make_pod("extra", node=NODES[0], priority=1, requests={"cpu": "1"})
    loaded, updated = Cluster(), Cluster()

    def both(stimulus):
        loaded.apply(stimulus)
        updated.apply(stimulus)

    for number, pods in enumerate(loads):
        objects = [*(map(make_node, NODES) if not number else ()), *pods]
        loaded.apply(ObjectsLoaded(objects))
        for one in objects:
            updated.apply(ObjectChanged(one))
        if chance.one_in(2):
            both(ObjectChanged(extra))
    for _ in range(chance.of([0, 0, 3, 50])):
        pod = chance.of(chance.of(loads))
        name = chance.of(NODES[:30])
        both(chance.of([ObjectDeleted(pod), ObjectChanged(pod), ObjectChanged(make_node(name))]))
        if chance.one_in(4):
            both(ObjectDeleted(make_node(name)))
            for one in [one for pods in loads for one in pods if chance.one_in(2)]:
                if one.spec.node_name == name:
                    both(ObjectDeleted(one))
            both(ObjectChanged(make_node(chance.of([name, "new"]))))
    columns = [VictimColumns(cluster.table) for cluster in (loaded, updated)]
    assert all(one.refresh() for one in columns)
    assert facts(columns[0]) == facts(columns[1])


def test_pods_of_a_deleted_node_do_not_belong_to_the_next_node_in_its_row():
    cluster, pods = Cluster(), [make_pod(f"p-{number}", node="a") for number in range(4)]
    cluster.apply(ObjectsLoaded([make_node("a"), *pods]))
    for change in (ObjectDeleted(make_node("a")), ObjectChanged(make_node("b"))):
        cluster.apply(change)
    columns = VictimColumns(cluster.table)
    assert columns.refresh()
    assert columns.lowest_priorities()[cluster.table.find("b").row] == NO_POD


@pytest.mark.parametrize("start", ["", "2026-01-01T00:00:00Z"])
@pytest.mark.parametrize("is_changed", [False, True])
@pytest.mark.parametrize("priorities", [(0, 1, 2), (0, 0, 0)])
def test_loaded_pods_are_read_without_creating_pod_infos(start, is_changed, priorities):
    """Equally important pods are also ordered by name without a PodInfo.

    This also holds if other pods have been added to their nodes since.
    """
    pods = [
        make_pod(
            f"{app}-{number}",
            node=NODES[number],
            priority=priority,
            labels={"app": app},
            requests={"cpu": cpu},
            status={"startTime": start} if start else {},
        )
        for app, cpu, priority in zip("cab", ("1", "2", "3"), priorities, strict=True)
        for number in range(30)
    ]
    cluster = Cluster()
    cluster.apply(ObjectsLoaded([*map(make_node, NODES), *pods]))
    for name in NODES if is_changed else ():
        cluster.apply(ObjectChanged(make_pod(f"new-{name}", node=name, priority=3)))
    assert VictimColumns(cluster.table).refresh()
    stored = [node.stored_pods for node in cluster.table.nodes()]
    late = [pods for pods in stored if isinstance(pods, LazyDict)]
    assert sum(pods.group_sizes().total() for pods in late) == len(pods)
