"""PodIndex: counts of pods per node and topology domain, by their labels and terms."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fairlead.api.codec import decode
from fairlead.api.objects import LabelSelector
from fairlead.engine.core.stimulus import ObjectChanged, ObjectDeleted
from fairlead.engine.state.cluster import Cluster
from fairlead.engine.state.fork import fork
from fairlead.engine.state.pod_index.affinity_term import TermKind
from fairlead.engine.state.pod_index.domain_counts import DomainCounts
from fairlead.engine.state.pod_index.pod_index import _TERMS_OF_MAX
from fairlead.engine.state.pod_index.pod_selector import PodSelector
from fairlead.engine.state.pod_info import PodInfo
from fairlead.testing.builders import make_pod

WEB, DB = {"app": "web"}, {"app": "db"}
PAIR = (("w", WEB), ("d", DB))
ZONE = "zone"
ANTI = (TermKind.REQUIRED_ANTI_AFFINITY,)


class Town:
    """A cluster of nodes in zones, with the pod_index of its table."""

    def __init__(self):
        self.cluster = Cluster()
        self.table = self.cluster.table
        self.pod_index = self.table.pod_index

    def node(self, name, zone):
        meta = {"name": name, "labels": {} if zone is None else {ZONE: zone}}
        allocatable = {"allocatable": {"cpu": "4", "pods": "10"}}
        node = {"apiVersion": "v1", "kind": "Node", "metadata": meta, "status": allocatable}
        self.cluster.apply(ObjectChanged(decode(node)))

    def pod(self, name, node="", labels=WEB, *, leaving=False, hates=None, priority=0):
        meta = {"name": name, "namespace": "ns", "uid": name, "labels": labels}
        if leaving:
            meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        spec = {"nodeName": node, "containers": [{"name": "c"}], "priority": priority}
        if hates:
            term = {"topologyKey": ZONE, "labelSelector": {"matchLabels": hates}}
            required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
            spec["affinity"] = {"podAntiAffinity": required}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
        self.cluster.apply(ObjectChanged(decode(pod)))
        return self.cluster.pods[f"ns/{name}"]

    def gone(self, pod):
        self.cluster.apply(ObjectDeleted(pod.pod))

    def watch(self, labels=WEB, weight=1, *, counts_terminating=True):
        """Live counts by zone of the pods with `labels`."""
        selector = PodSelector(
            [(frozenset({"ns"}), LabelSelector(match_labels=labels))],
            counts_terminating=counts_terminating,
        )
        counts = DomainCounts(self.pod_index.nodes, self.table.label_column(ZONE).domains)
        self.pod_index.watch(selector, counts, weight)
        return counts

    def by_zone(self, counts):
        """Return {zone: sum} of refreshed counts; zones without a sum are left out."""
        column = self.table.label_column(ZONE)
        sums = counts.refresh().sums
        assert not sums[-1]
        return {zone: int(sums[i]) for i, zone in enumerate(column.values) if sums[i]}


@pytest.fixture
def town():
    found = Town()
    for name, zone in (("a", "z1"), ("b", "z1"), ("c", "z2"), ("bare", None)):
        found.node(name, zone)
    return found


def test_counts_follow_added_and_deleted_pods(town):
    """Sums count weights, `pods` counts pods; pods outside a zone do not count."""
    counts = town.watch(weight=5)
    first = town.pod("p1", "a")
    town.pod("p2", "c")
    town.pod("p3", "bare")
    town.pod("p4", "a", DB)
    assert town.by_zone(counts) == {"z1": 5, "z2": 5}
    assert counts.pods == 2
    town.pod("p5", "b")
    assert town.by_zone(counts) == {"z1": 10, "z2": 5}
    town.gone(first)
    assert town.by_zone(counts) == {"z1": 5, "z2": 5}
    town.table.validate()


def test_a_new_count_includes_existing_pods(town):
    """It also includes later pods with new labels."""
    town.pod("p1", "a")
    counts = town.watch()
    assert town.by_zone(counts) == {"z1": 1}
    town.pod("p2", "c", {**WEB, "rev": "2"})
    assert town.by_zone(counts) == {"z1": 1, "z2": 1}


@pytest.mark.parametrize(("counts_terminating", "left"), [(True, {"z1": 1}), (False, {})])
def test_counts_follow_a_pod_that_becomes_terminating(town, counts_terminating, left):
    """For selectors that ignore terminating pods."""
    counts = town.watch(counts_terminating=counts_terminating)
    town.pod("p", "a")
    assert town.by_zone(counts) == {"z1": 1}
    town.pod("p", "a", leaving=True)
    assert town.by_zone(counts) == left
    town.table.validate()


def test_no_pod_has_a_priority_below_that_of_its_class_and_terms(town):
    """Pods of one class can have different priorities, and a pod can get another one."""
    pod = town.pod("p", "a", hates=DB, priority=5)
    town.pod("other", "a", priority=9)
    found = town.pod_index.pod_class_of(pod).where, town.pod_index.terms_of(pod)[0].where
    assert [one.lowest_priority for one in found] == [5, 5]
    town.pod("p", "a", hates=DB, priority=-1)
    assert [one.lowest_priority for one in found] == [-1, -1]
    town.table.validate()


def test_counts_follow_a_pod_with_changed_labels(town):
    """The node and the spec of the pod are unchanged."""
    counts = town.watch()
    town.pod("p", "a", DB)
    assert town.by_zone(counts) == {}
    town.pod("p", "a")
    assert town.by_zone(counts) == {"z1": 1}
    town.pod("p", "a", DB)
    assert town.by_zone(counts) == {}
    town.table.validate()


def test_counts_follow_the_pods_of_a_relabelled_or_recreated_node(town):
    """While the node is deleted, its pods belong to no domain."""
    counts = town.watch()
    town.pod("p", "a")
    town.node("a", "z3")
    assert town.by_zone(counts) == {"z3": 1}
    town.cluster.apply(ObjectDeleted(town.table.find("a").node))
    assert town.by_zone(counts) == {}
    town.node("a", "z2")
    assert town.by_zone(counts) == {"z2": 1}
    town.table.validate()


def test_an_unchanged_node_starts_no_new_epoch(town):
    """So heartbeats cause no recount; changes of labels and taints do."""
    before = town.pod_index.nodes.value
    town.node("a", "z1")
    assert town.pod_index.nodes.value == before
    town.node("a", "z2")
    assert town.pod_index.nodes.value == before + 1


def test_hypothetical_pods_are_counted_and_reverted(town):
    """Forks change the same index."""
    counts = town.watch()
    placed, other = town.pod("p", "a"), town.pod("q", "", DB)
    hermit = town.pod("hermit", "", DB, hates=WEB)
    with fork(town.table) as hypothesis:
        hypothesis.remove_pod(town.table.find("a"), placed)
        hypothesis.add_pod(town.table.find("c"), placed)
        hypothesis.add_pod(town.table.find("c"), other)
        hypothesis.add_pod(town.table.find("c"), hermit)
        assert town.by_zone(counts) == {"z2": 1}
        assert town.pod_index.repelling == 1
        town.table.validate()
    assert town.by_zone(counts) == {"z1": 1}
    assert town.pod_index.repelling == 0
    town.table.validate()


def test_released_counts_are_not_updated_any_more(town):
    """The index drops them."""
    counts = town.watch()
    pod = town.pod("p", "a")
    town.pod_index.unwatch(counts)
    assert town.by_zone(counts) == {}
    assert not town.pod_index.pod_class_of(pod).where.counters
    town.pod("q", "a", {**WEB, "rev": "2"})
    assert town.by_zone(counts) == {}


def test_weights_of_selectors_that_match_the_same_pods_are_summed(town):
    """Each pod is still counted once."""
    counts = town.watch(weight=3)
    selector = PodSelector([(None, LabelSelector())], counts_terminating=True)
    town.pod_index.watch(selector, counts, 4)
    town.pod("p", "a")
    assert town.by_zone(counts) == {"z1": 7}
    assert counts.pods == 1
    town.pod("q", "a", DB)
    assert town.by_zone(counts) == {"z1": 11}


def test_terms_of_placed_pods_are_found_by_the_pods_that_they_match(town):
    """Pods with equal terms share the term; a term without placed pods is on no node."""
    one, two = town.pod("h1", "a", DB, hates=WEB), town.pod("h2", "c", DB, hates=WEB)
    assert town.pod_index.terms_of(one) == town.pod_index.terms_of(two)
    web = town.pod_index.pod_class_of(town.pod("web"))
    (found,) = town.pod_index.terms_matching(web, ANTI, {})
    assert sorted(town.table.at(row).name for row in found.where.rows) == ["a", "c"]
    assert town.pod_index.repelling == 2
    db = town.pod_index.pod_class_of(one)
    assert town.pod_index.terms_matching(db, ANTI, {}) == ()
    assert town.pod_index.terms_matching(web, (TermKind.PREFERRED,), {}) == ()


def test_classes_and_terms_that_were_dropped_are_added_again(town):
    """Classes without pods are dropped above a limit; counts and terms stay correct."""
    counts = town.watch()
    hermits = [town.pod(f"h{i}", "a", {"app": f"{i}"}, hates={"a": f"{i}"}) for i in range(4)]
    for hermit in hermits:
        town.gone(hermit)
    stale = town.pod("stale", "", WEB)
    known = town.pod_index.pod_class_of(stale)
    town.pod_index._sweep_at = 2
    for i in range(6):
        town.pod(f"p{i}", "c", {**WEB, "rev": f"{i}"})
    assert known.is_removed
    assert len(town.pod_index._terms) == 0
    town.table.add_pod(town.table.find("a"), stale)
    assert not town.pod_index.pod_class_of(stale).is_removed
    assert town.by_zone(counts) == {"z1": 1, "z2": 6}
    town.table.validate()


def test_a_sweep_keeps_classes_and_terms_that_have_pods(town):
    """A dropped class shares a label with a kept one, which is still found by the label."""
    stays = town.pod("stays", "a", {**WEB, "rev": "1"}, hates=DB)
    town.gone(town.pod("goes", "a", {**WEB, "rev": "2"}, hates=DB))
    kept, term = town.pod_index.pod_class_of(stays), town.pod_index.terms_of(stays)
    town.pod_index._sweep_at = 2
    db = town.pod_index.pod_class_of(town.pod("db", "", DB))
    assert list(town.pod_index.classes()) == [kept, db]
    assert town.pod_index.terms_matching(db, ANTI, {}) == term
    assert town.pod_index.terms_of(stays) == term
    assert town.by_zone(town.watch()) == {"z1": 1}
    town.table.validate()


def test_only_classes_with_a_required_label_are_candidates(town):
    """A selector without a required label may match every class."""
    web, db = (town.pod_index.pod_class_of(town.pod(n, "a", labels)) for n, labels in PAIR)
    assert list(town.pod_index.candidates(LabelSelector(match_labels=DB))) == [db]
    assert list(town.pod_index.candidates(LabelSelector(match_labels={"app": "no"}))) == []
    assert list(town.pod_index.candidates(LabelSelector())) == [web, db]


def test_terms_are_unchanged_after_an_overflow_of_their_cache(town):
    """Terms are cached by shape and namespace; a full cache is cleared."""
    term = {"topologyKey": ZONE, "namespaces": ["ns"], "labelSelector": {"matchLabels": DB}}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    pod = make_pod("p", node="a", spec={"affinity": {"podAntiAffinity": required}})
    shape = town.cluster.shapes.shape_of(pod)
    terms = set()
    for number in range(_TERMS_OF_MAX + 1):
        meta = replace(pod.metadata, namespace=f"{number}")
        terms.add(town.pod_index.terms_of(PodInfo(replace(pod, metadata=meta), shape)))
    assert len(terms) == 1
    assert len(town.pod_index._terms_of) == 1
