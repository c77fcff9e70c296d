"""Counts that plugins keep up to date equal counts over all pods on all nodes.

The same plugins are used while a cluster changes at random. Each result must equal the result of
counting from scratch, over columns and node by node.
"""

from __future__ import annotations

from math import floor, log

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.api.nodes.taint import find_untolerated
from fairlead.api.objects import Namespace
from fairlead.api.selector import selector_matches
from fairlead.engine.core.stimulus import ObjectDeleted
from fairlead.engine.state.fork import fork

HOST, ZONE = "kubernetes.io/hostname", "zone"
NODES = ("n0", "n1", "n2", "n3")
SPREAD, AFFINITY = "PodTopologySpread", "InterPodAffinity"
HARD = "DoNotSchedule"

labels = st.dictionaries(st.sampled_from("ab"), st.sampled_from("xy"), max_size=2)
selectors = st.none() | st.fixed_dictionaries({"matchLabels": labels})
keys = st.sampled_from([HOST, ZONE])
policies = st.sampled_from(["Honor", "Ignore"])
namespaces = st.sampled_from(["one", "two"])


@st.composite
def terms(draw):
    """A pod affinity term."""
    term = {"topologyKey": draw(keys)}
    selector = draw(selectors)
    if selector is not None:
        term["labelSelector"] = selector
    match draw(st.integers(0, 3)):
        case 1:
            term["namespaces"] = [draw(namespaces)]
        case 2:
            term["namespaceSelector"] = {}
        case 3:
            term["namespaceSelector"] = {"matchLabels": {"team": "t"}}
    return term


weighted = st.fixed_dictionaries({"weight": st.integers(1, 100), "podAffinityTerm": terms()})
some_terms = st.fixed_dictionaries(
    {
        "requiredDuringSchedulingIgnoredDuringExecution": st.lists(terms(), max_size=2),
        "preferredDuringSchedulingIgnoredDuringExecution": st.lists(weighted, max_size=2),
    }
)
affinities = st.none() | st.fixed_dictionaries(
    {"podAffinity": some_terms, "podAntiAffinity": some_terms}
)
constraints = st.lists(
    st.fixed_dictionaries(
        {
            "maxSkew": st.integers(1, 3),
            "topologyKey": keys,
            "whenUnsatisfiable": st.sampled_from([HARD, "ScheduleAnyway"]),
            "minDomains": st.integers(1, 3),
            "nodeAffinityPolicy": policies,
            "nodeTaintsPolicy": policies,
        },
        optional={"labelSelector": st.fixed_dictionaries({"matchLabels": labels})},
    ),
    max_size=3,
)


@st.composite
def pod_fields(draw):
    """Strategy for the fields of a pod."""
    fields = {"namespace": draw(namespaces), "labels": draw(labels)}
    fields["topologySpreadConstraints"] = draw(constraints)
    affinity = draw(affinities)
    if affinity is not None:
        fields["affinity"] = affinity
    if draw(st.booleans()):
        fields["nodeSelector"] = {"disk": "ssd"}
    return fields


node_fields = st.fixed_dictionaries(
    {
        "zone": st.none() | st.sampled_from(["z1", "z2"]),
        "labels": st.dictionaries(st.just("disk"), st.sampled_from(["ssd", "hdd"])),
        "taints": st.sampled_from([[], [{"key": "k", "effect": "NoSchedule"}]]),
    }
)
changes = st.one_of(
    st.tuples(st.just("pod"), st.integers(0, 7), st.sampled_from(NODES), pod_fields()),
    st.tuples(st.just("leave"), st.integers(0, 7)),
    st.tuples(st.just("delete"), st.integers(0, 7)),
    st.tuples(st.just("relabel"), st.integers(0, 7), labels),
    st.tuples(st.just("node"), st.sampled_from(NODES), node_fields),
    st.tuples(st.just("drop"), st.sampled_from(NODES)),
    st.tuples(st.just("team"), namespaces, st.booleans()),
)


class Story:
    """Applies changes to a scene, and keeps the pods' JSON for later changes."""

    def __init__(self, scene):
        self.scene = scene
        self.pods = {}
        for name in NODES:
            self.node(name, {"zone": "z1", "labels": {}, "taints": []})

    def apply(self, change):
        getattr(self, change[0])(*change[1:])

    def pod(self, number, node, fields):
        self.delete(number)
        self.pods[number] = {"name": f"p{number}", "node": node, **fields}
        self.scene.pod(**self.pods[number])

    def leave(self, number):
        if number in self.pods:
            self.pods[number]["leaving"] = True
            self.scene.pod(**self.pods[number])

    def relabel(self, number, new):
        if number in self.pods:
            self.pods[number]["labels"] = new
            self.scene.pod(**self.pods[number])

    def delete(self, number):
        gone = self.pods.pop(number, None)
        if gone is not None:
            self.scene.gone(self.scene.cluster.pods[f"{gone['namespace']}/{gone['name']}"])

    def node(self, name, fields):
        zone = fields["zone"]
        self.scene.node(name, labels={ZONE: zone, **fields["labels"]}, taints=fields["taints"])

    def drop(self, name):
        info = self.scene.table.find(name)
        if info is not None and self.scene.table.count > 1:
            self.scene.cluster.apply(ObjectDeleted(info.node))

    def team(self, name, is_in):
        meta = {"name": name, "labels": {"team": "t"} if is_in else {}}
        self.scene.put({"apiVersion": "v1", "kind": "Namespace", "metadata": meta})


# --- counting from scratch ---------------------------------------------------------------------


def placed(scene):
    """Return (pod, node) of every placed pod."""
    return [(pod, node) for node in scene.table.nodes() for pod in node.pods.values()]


def counts_on(constraint, pod, node):
    """Return whether the node inclusion policies of `constraint` include the node."""
    wanted = pod.pod.spec.node_selector
    fits = all(node.labels.get(key) == value for key, value in wanted.items())
    untainted = find_untolerated(node.node.spec.taints, (), ("NoSchedule",)) is None
    return (fits or constraint.node_affinity_policy == "Ignore") and (
        untainted or constraint.node_taints_policy == "Ignore"
    )


def is_counted(constraint, pod, other):
    """Return whether `other` counts for a constraint of `pod`."""
    selector = constraint.label_selector
    if selector is None or not selector.match_labels:
        return False
    return (
        other.namespace == pod.namespace
        and not other.terminating
        and selector_matches(selector, other.labels)
    )


def walked_spread(scene, pod):
    """Return {node: rejection} of the hard constraints: "", "skew" or "label"."""
    hard = [c for c in pod.pod.spec.topology_spread_constraints if c.when_unsatisfiable == HARD]
    if not hard:
        return "skipped"
    having_all = [n for n in scene.table.nodes() if all(c.topology_key in n.labels for c in hard)]
    result = {node.name: "" for node in scene.table.nodes()}
    for constraint in reversed(hard):
        key = constraint.topology_key
        tally = {n.labels[key]: 0 for n in having_all if counts_on(constraint, pod, n)}
        for node in having_all:
            if counts_on(constraint, pod, node):
                tally[node.labels[key]] += sum(
                    is_counted(constraint, pod, other) for other in node.pods.values()
                )
        lowest = min(tally.values()) if len(tally) >= constraint.min_domains else 0
        own = selector_matches(constraint.label_selector, pod.labels)
        for node in scene.table.nodes():
            if key not in node.labels:
                result[node.name] = "label"
            elif tally.get(node.labels[key], 0) + own - lowest > constraint.max_skew:
                result[node.name] = "skew"
    return result


def walked_spread_scores(scene, pod):
    """Return {node: raw score} of the soft constraints; all nodes are feasible."""
    soft = [c for c in pod.pod.spec.topology_spread_constraints if c.when_unsatisfiable != HARD]
    if not soft:
        return "skipped"
    kept = [n for n in scene.table.nodes() if all(c.topology_key in n.labels for c in soft)]
    totals = dict.fromkeys((node.name for node in kept), 0.0)
    for constraint in soft:
        key = constraint.topology_key
        domains = len(kept) if key == HOST else len({n.labels[key] for n in kept})
        for node in kept:
            near = [node] if key == HOST else [n for n in kept if counts_on(constraint, pod, n)]
            pods = sum(
                is_counted(constraint, pod, other)
                for one in near
                if one.labels[key] == node.labels[key]
                for other in one.pods.values()
            )
            totals[node.name] += pods * log(domains + 2) + (constraint.max_skew - 1)
    raw = {node.name: 0 for node in scene.table.nodes()}
    return raw | {name: floor(total + 0.5) for name, total in totals.items()}


def terms_of(pod, kind, strength):
    """The terms of `pod`: `kind` is pod_affinity or pod_anti_affinity."""
    affinity = pod.pod.spec.affinity
    found = getattr(affinity, kind) if affinity else None
    return getattr(found, f"{strength}_during_scheduling_ignored_during_execution", ())


def means(scene, owner, term, other):
    """Return whether a term of `owner` matches `other`."""
    own = () if term.namespaces or term.namespace_selector else (owner.namespace,)
    objects = {n.key: n.metadata.labels for n in scene.cluster.related.all_of(Namespace)}
    team = objects.get(other.namespace, {})
    return selector_matches(term.label_selector, other.labels) and (
        other.namespace in (*own, *term.namespaces)
        or selector_matches(term.namespace_selector, team)
    )


def same_domain(term, one, other):
    """Return whether two nodes are in the same domain of the term."""
    key = term.topology_key
    return key in one.labels and one.labels[key] == other.labels.get(key)


def walked_affinity(scene, pod):
    """Return {node: rejection}: "", "affinity", "anti" or "existing"."""
    wanted = terms_of(pod, "pod_affinity", "required")
    unwanted = terms_of(pod, "pod_anti_affinity", "required")
    everybody = placed(scene)
    hermits = [
        (term, node)
        for other, node in everybody
        for term in terms_of(other, "pod_anti_affinity", "required")
        if means(scene, other, term, pod) and term.topology_key in node.labels
    ]
    if not (wanted or unwanted or hermits):
        return "skipped"
    friends = [n for o, n in everybody if all(means(scene, pod, t, o) for t in wanted)]
    somewhere = any(t.topology_key in n.labels for t in wanted for n in friends)
    first = not somewhere and all(means(scene, pod, term, pod) for term in wanted)
    result = {}
    for node in scene.table.nodes():
        has_keys = all(term.topology_key in node.labels for term in wanted)
        met = all(any(same_domain(t, n, node) for n in friends) for t in wanted)
        repelled = any(
            means(scene, pod, t, o) and same_domain(t, n, node)
            for t in unwanted
            for o, n in everybody
        )
        if wanted and not (has_keys and (met or first)):
            result[node.name] = "affinity"
        elif repelled:
            result[node.name] = "anti"
        else:
            near_hermit = any(same_domain(term, n, node) for term, n in hermits)
            result[node.name] = "existing" if near_hermit else ""
    return result


def scoring_terms(owner, *, is_placed):
    """Return (term, weight) of the terms of `owner` that score; required ones of placed pods do."""
    required = terms_of(owner, "pod_affinity", "required") if is_placed else ()
    return [
        *((term, 1) for term in required),
        *((t.pod_affinity_term, t.weight) for t in terms_of(owner, "pod_affinity", "preferred")),
        *(
            (t.pod_affinity_term, -t.weight)
            for t in terms_of(owner, "pod_anti_affinity", "preferred")
        ),
    ]


def walked_affinity_scores(scene, pod):
    """Return {node: raw score}; all nodes are feasible."""
    met = [
        (term, node, weight)
        for other, node in placed(scene)
        for owner, target in ((pod, other), (other, pod))
        for term, weight in scoring_terms(owner, is_placed=owner is other)
        if means(scene, owner, term, target)
    ]
    found = [(term, node, weight) for term, node, weight in met if term.topology_key in node.labels]
    if not found:
        return "skipped"
    return {
        node.name: sum(weight for term, n, weight in found if same_domain(term, n, node))
        for node in scene.table.nodes()
    }


# --- the properties ----------------------------------------------------------------------------

SHORT = {
    "": "",
    "node(s) didn't match pod topology spread constraints": "skew",
    "node(s) didn't match pod topology spread constraints (missing required label)": "label",
    "node(s) didn't match pod affinity rules": "affinity",
    "node(s) didn't match pod anti-affinity rules": "anti",
    "node(s) didn't satisfy existing pods anti-affinity rules": "existing",
}


def shortened(verdicts):
    """Verdicts with short names for the messages."""
    if verdicts == "skipped":
        return verdicts
    return {name: SHORT[message] for name, message in verdicts.items()}


def check(scene, pod):
    """Check that every result for `pod` equals the result of counting over all pods."""
    spread, affinity = scene.plugin(SPREAD), scene.plugin(AFFINITY)
    assert shortened(scene.verdicts(spread, pod)) == walked_spread(scene, pod)
    assert shortened(scene.verdicts(affinity, pod)) == walked_affinity(scene, pod)
    assert scene.raw_scores(spread, pod) == walked_spread_scores(scene, pod)
    assert scene.raw_scores(affinity, pod) == walked_affinity_scores(scene, pod)


stories = st.lists(changes, max_size=12)
fewer = settings(max_examples=settings().max_examples // 3)  # counting from scratch takes long


@fewer
@given(story=stories, askers=st.lists(pod_fields(), min_size=1, max_size=2))
def test_updated_counts_equal_counts_over_all_pods(new_scene, story, askers):
    """The counts are compared after every change, for the same pods."""
    scene = new_scene()
    tale = Story(scene)
    pods = [scene.incoming(f"asker{i}", **fields) for i, fields in enumerate(askers)]
    for change in story:
        tale.apply(change)
        for pod in pods:
            check(scene, pod)
        scene.table.validate()


@fewer
@given(story=stories, asker=pod_fields(), moved=pod_fields())
def test_counts_follow_a_fork_and_its_end(new_scene, story, asker, moved):
    """The counts are compared within the fork and after it."""
    scene = new_scene()
    tale = Story(scene)
    for change in story:
        tale.apply(change)
    pod, other = scene.incoming("asker", **asker), scene.incoming("other", **moved)
    check(scene, pod)
    with fork(scene.table) as hypothesis:
        for node in scene.table.nodes():
            for victim in list(node.pods.values()):
                hypothesis.remove_pod(node, victim)
            hypothesis.add_pod(node, other)
            break
        check(scene, pod)
        scene.table.validate()
    check(scene, pod)
    scene.table.validate()


@fewer
@given(story=stories, asker=pod_fields(), moved=pod_fields(), name=st.sampled_from(NODES))
def test_add_pod_and_remove_pod_revert_each_other(new_scene, story, asker, moved, name):
    """The order does not matter, and clones are not affected."""
    scene = new_scene()
    tale = Story(scene)
    for change in story:
        tale.apply(change)
    tale.node(name, {"zone": "z1", "labels": {}, "taints": []})
    pod, other = scene.incoming("asker", **asker), scene.incoming("other", **moved)
    node, rows = scene.table.find(name), scene.rows()
    for plugin in (scene.plugin(SPREAD), scene.plugin(AFFINITY)):
        state = scene.started(plugin, pod)
        if state is None:
            continue

        def codes(state, plugin=plugin):
            return plugin.filter_columns(state, pod, scene.table, rows).codes

        before = codes(state)
        for do, undo in (
            (plugin.add_pod, plugin.remove_pod),
            (plugin.remove_pod, plugin.add_pod),
        ):
            supposed = state.clone()
            do(supposed, pod, other, node)
            scene.verdicts(plugin, pod, supposed)
            assert np.array_equal(codes(state), before)
            undo(supposed, pod, other, node)
            assert np.array_equal(codes(supposed), before)


def test_pods_that_differ_only_in_requests_share_their_counts(new_scene):
    """Each cached count costs time with every added or deleted pod."""
    scene = new_scene()
    scene.node("n0", labels={ZONE: "z1"})
    selector = {"matchLabels": {"a": "x"}}
    wanted = [{"topologyKey": ZONE, "labelSelector": selector}]
    fields = {
        "affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": wanted}},
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": ZONE,
                "whenUnsatisfiable": HARD,
                "labelSelector": selector,
            }
        ],
    }
    for size in range(1, 5):
        container = {"name": "c", "resources": {"requests": {"cpu": size}}}
        pod = scene.incoming(f"p{size}", containers=[container], **fields)
        for name in (SPREAD, AFFINITY):
            scene.started(scene.plugin(name), pod)
    assert len(scene.table.pod_index._watches_of) == 2
