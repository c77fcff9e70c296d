"""The search for nodes: trials that end early have the same result as complete trials."""

from __future__ import annotations

from itertools import combinations, combinations_with_replacement

import pytest
from tests.unit.whatif.planner.conftest import deployment

from fairlead.api.well_known_label import HOSTNAME, ZONE
from fairlead.engine.scheduling.decision import Failure
from fairlead.testing.random_cluster import Chance
from fairlead.whatif.configuration.autoscaling.instance_type_file import StatedType
from fairlead.whatif.planner.cluster_size.node_offer import node_offers
from fairlead.whatif.planner.cluster_size.search import SizeSearch
from fairlead.whatif.planner.cluster_size.survival import Survival
from fairlead.whatif.run.progress import NoProgress


def terms(app, key):
    selector = {"matchLabels": {"app": app}}
    required = [{"topologyKey": key, "labelSelector": selector}]
    return {"requiredDuringSchedulingIgnoredDuringExecution": required}


def constraint(app, key):
    selector = {"matchLabels": {"app": app}}
    rule = {"topologyKey": key, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    return {"topologySpreadConstraints": [{**rule, "labelSelector": selector}]}


def any_rule(chance, app):
    """Return fields of a pod's spec that limit where the pods of `app` may run."""
    near = {"affinity": {"podAffinity": terms("w0", chance.of((HOSTNAME, ZONE)))}}
    apart = {"affinity": {"podAntiAffinity": terms(app, HOSTNAME)}}
    zone = {"nodeSelector": {ZONE: chance.of(("z1", "z2"))}}
    return chance.of(({}, near, apart, apart, zone, constraint(app, ZONE)))


def crowded(make, chance):
    """Return nodes in two zones, with workloads whose pods are on random nodes."""
    names = [f"n{number}" for number in range(12)]
    labels = [{ZONE: chance.of(("z1", "z2")), HOSTNAME: name} for name in names]
    objects = [make.node(name, cpu="8", **one) for name, one in zip(names, labels, strict=True)]
    for number in range(6):
        nodes, cpu = chance.some(names, 9), chance.of(("300m", "1300m", "2"))
        app = f"w{number}"
        objects += deployment(make, app, nodes, cpu=cpu, **any_rule(chance, app))
    return objects


def search_of(model, seed):
    replaced = list(model.table.nodes())
    offers = node_offers(model, replaced, (), 0.0)
    return SizeSearch(model, offers, Survival(), NoProgress(), seed), replaced


def test_a_pod_that_is_refused_first_is_refused_in_any_order(planner, make, monkeypatch):
    """If `_known_refusal` finds a pod, a complete trial in the usual order fails, too."""
    known_refusal, refused = SizeSearch._known_refusal, []

    def checked(search, pods):
        failure = known_refusal(search, pods)
        if failure is not None:
            with search._model.hypothesis():
                decisions = [search._model.schedule(pod) for pod in pods]
            assert any(isinstance(decision, Failure) for decision in decisions)
            refused.append(failure)
        return failure

    monkeypatch.setattr(SizeSearch, "_known_refusal", checked)
    for seed in range(14):
        search, replaced = search_of(planner(*crowded(make, Chance(seed))).model, seed)
        search.run(replaced, 5)
    assert len(refused) > 10


ZONES = (("a", "z1"), ("b", "z2"), ("c", "z1"))


def moved(planner, make, *pods):
    """Return a search from which node a was removed, and the replacements of its pods.

    Node b is in zone z2 and has a pod of w1; node c is in zone z1 and has room for two cores.
    """
    nodes = [make.node(name, cpu="4", **{ZONE: zone, HOSTNAME: name}) for name, zone in ZONES]
    other = make.pod("other", cpu="2", node_name="c", owner="other")
    search, _ = search_of(planner(*nodes, other, *pods).model, 0)
    return search, search._fail(["a"])


def pod_of(make, app, node, cpu, memory, **spec):
    pod = make.pod(f"{app}-{node}-{cpu}", node_name=node, owner=app, **spec)
    pod["metadata"]["labels"] = {"app": app}
    pod["spec"]["containers"][0]["resources"]["requests"] = {"cpu": cpu, "memory": memory}
    return pod


SPREAD = constraint("w1", ZONE)
NEAR = {"affinity": {"podAffinity": terms("w0", HOSTNAME)}}


@pytest.mark.parametrize(
    ("first", "spec", "cpu"), [("w0", NEAR, "500m"), ("w1", SPREAD, "3")], ids=["near", "spread"]
)
def test_a_pod_that_another_pod_makes_schedulable_is_not_refused_first(
    planner, make, first, spec, cpu
):
    """The first pod, which has more memory, admits the second to its node, or to zone z2."""
    there = pod_of(make, "w1", "b", "500m", "1Gi", **SPREAD)
    large = pod_of(make, first, "a", "1", "12Gi")
    search, pods = moved(planner, make, there, large, pod_of(make, "w1", "a", cpu, "1Gi", **spec))
    search._note_refused(pods[1])
    with search._model.hypothesis():
        assert isinstance(search._model.schedule(pods[1]), Failure)
    assert search._known_refusal(pods) is None
    assert not any(isinstance(search._model.schedule(pod), Failure) for pod in pods)


@pytest.mark.long
def test_a_rebuild_that_ends_early_is_not_cheaper(planner, make, monkeypatch):
    """A complete rebuild succeeds at a lower cost if and only if the search keeps it."""
    rebuilt, outcomes = SizeSearch._rebuilt, set()

    def complete(search, names):
        """Return whether all pods of the nodes in `names` find places on cheaper nodes."""
        cost = search.result.cost
        pods = search._fail(names)
        for name in names:
            del search.result.nodes[name]
        return all(search._place(pod) is None for pod in pods) and search.result.cost < cost - 1e-9

    def checked(search, names):
        state = dict(search.result.nodes), search._number, search.result.cycles
        with search._model.hypothesis():
            is_cheaper = complete(search, names)
        search.result.nodes, search._number, search.result.cycles = state
        assert rebuilt(search, names) == is_cheaper
        outcomes.add(is_cheaper)
        return is_cheaper

    monkeypatch.setattr(SizeSearch, "_rebuilt", checked)
    # Other changes do not replace several nodes before a rebuild can do so.
    monkeypatch.setattr(SizeSearch, "_substituted", lambda *_: False)
    for seed in range(8):
        search, replaced = search_of(planner(*crowded(make, Chance(seed))).model, seed)
        search.run(replaced, 5)
    assert outcomes == {True, False}


def any_types(chance):
    """Return three types that differ in size, in memory per core, and in price per core."""
    types = []
    for name in ("t0", "t1", "t2"):
        cpu, gib = chance.of((2, 4, 8, 8)), chance.of((2, 4, 8))
        price = round(cpu * (0.03 + 0.004 * gib) * chance.of((0.9, 1.0, 1.1)), 2)
        size = {"cpu": str(cpu), "memory": f"{cpu * gib}Gi", "pods": "110"}
        types.append(StatedType(name, size, prices={("on-demand", ""): price}))
    return types


def few_pods(make, chance):
    """Return a node with the pods of three workloads, which request cpu and memory."""
    objects = [make.node("n", cpu="64", **{HOSTNAME: "n"})]
    for number in range(3):
        cpu, memory = chance.of(("300m", "900m", "1300m", "1700m")), chance.of((512, 2048, 3500))
        app = f"w{number}"
        apart = {"affinity": {"podAntiAffinity": terms(app, HOSTNAME)}}
        rule = chance.of(({}, {}, apart))
        made = deployment(make, app, ["n"] * chance.of((1, 2, 3, 4)), cpu=cpu, **rule)
        for one in made:
            spec = one["spec"] if one["kind"] == "Pod" else one["spec"]["template"]["spec"]
            spec["containers"][0]["resources"]["requests"]["memory"] = f"{memory}Mi"
        objects += made
    return objects


def cheapest_of_all(model, types, limit):
    """Return the price of the cheapest set of nodes on which the scheduler places all pods.

    The pods are placed one after another, the largest first. Sets for `limit` or more are left out.
    Return `limit` if no cheaper set is enough.
    """
    offers = node_offers(model, list(model.table.nodes()), types, 0.0)
    search = SizeSearch(model, offers, Survival(), NoProgress())
    pods = search._take_away(list(model.table.nodes()))
    most = int(limit / min(one.price for one in offers))
    for count in range(1, most + 1):
        for some in combinations_with_replacement(offers, count):
            price = sum(one.price for one in some)
            if price < limit - 1e-9:
                with model.hypothesis():
                    for one in some:
                        search._add(one)
                    if not any(isinstance(model.schedule(pod), Failure) for pod in pods):
                        limit = price
    return limit


@pytest.mark.parametrize("seed", [5, 26, 27, 40, 48, 70, 78, 85, 87, 95])
def test_no_other_set_of_few_nodes_is_cheaper(planner, make, seed):
    """Each cheaper set of any three types is too small for the pods."""
    objects, types = few_pods(make, Chance(seed)), any_types(Chance(seed + 1000))
    model = planner(*objects).model
    replaced = list(model.table.nodes())
    offers = node_offers(model, replaced, types, 0.0)
    found = SizeSearch(model, offers, Survival(), NoProgress()).run(replaced, 3)
    assert not found.unplaceable
    assert cheapest_of_all(planner(*objects).model, types, found.cost) >= found.cost - 1e-9


@pytest.mark.parametrize("seed", [15, 17, 26])
def test_a_search_that_has_tried_all_changes_has_tried_all_choices_of_nodes(planner, make, seed):
    """With seed 17, the random choices alone miss a choice."""
    chance, objects = Chance(seed), [make.node("n", cpu="64", **{HOSTNAME: "n"})]
    for number in range(4):
        cpu = chance.of(("900m", "1300m", "1700m"))
        objects += deployment(make, f"w{number}", ["n"] * chance.of((2, 3, 4)), cpu=cpu)
    model = planner(*objects).model
    replaced = list(model.table.nodes())
    offers = node_offers(model, replaced, any_types(Chance(seed + 1000)), 0.0)
    search = SizeSearch(model, offers, Survival(), NoProgress())
    found = search.run(replaced, 10)
    names = sorted(found.nodes)
    choices = {one for size in (2, 3, 5, len(names)) for one in combinations(names, size)}
    assert found.tried_all_changes
    assert search._untried.keys() == choices
    assert not any(next(changes, None) for changes in search._untried.values())
