"""Any dump gives an answer or a one-line error."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.input.document import Document
from fairlead.whatif.input.error import InputError
from fairlead.whatif.question import what_if
from fairlead.whatif.snapshot.manifest_reader import manifests
from fairlead.whatif.snapshot.snapshot import DEFAULT_START, Snapshot
from fairlead.whatif.snapshot.validation.size_limit import refuse_excess

META = {"namespace": "d", "labels": {"app": "w"}, "uid": "u", "resourceVersion": "7"}
CONTAINER = {
    "name": "c",
    "image": "i",
    "ports": [{"hostPort": 80, "containerPort": 80}],
    "resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2"}},
}
SELECTOR = {
    "matchLabels": {"app": "w"},
    "matchExpressions": [{"key": "x", "operator": "DoesNotExist"}],
}
POD_SPEC = {
    "containers": [CONTAINER],
    "initContainers": [{**CONTAINER, "name": "init", "restartPolicy": "Always", "ports": []}],
    "priority": 5,
    "priorityClassName": "low",
    "nodeSelector": {"pool": "a"},
    "tolerations": [{"key": "k", "operator": "Exists", "effect": "NoSchedule"}],
    "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchExpressions": [
            {"key": "pool", "operator": "In", "values": ["a"]}]}]}}},
    "terminationGracePeriodSeconds": 10,
    "overhead": {"cpu": "10m"},
}  # fmt: skip
OWNER = {
    "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "o", "controller": True,
}  # fmt: skip
CLUSTER = [
    {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n1", "labels": {"pool": "a"}, "annotations": {"x": "y"}},
        "spec": {"taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]},
        "status": {
            "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"},
            "conditions": [{"type": "Ready", "status": "True",
                            "lastTransitionTime": "2026-01-01T00:00:00Z"}],
            "images": [{"names": ["i"], "sizeBytes": 1000}],
        },
    },
    {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n2", "labels": {"pool": "a"}},
     "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}}},
    {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**META, "name": "bound", "ownerReferences": [OWNER],
                     "annotations": {"fairlead.dev/run-duration": "48h"}},
        "spec": {**POD_SPEC, "nodeName": "n1"},
        "status": {"phase": "Running", "startTime": "2026-01-01T00:00:00Z",
                   "conditions": [{"type": "Ready", "status": "True"}]},
    },
    {"apiVersion": "v1", "kind": "Pod", "metadata": {**META, "name": "waits", "uid": "v"},
     "spec": POD_SPEC, "status": {"phase": "Pending", "nominatedNodeName": "n2"}},
    {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {**META, "name": "w", "uid": "w"},
     "spec": {"replicas": 2, "selector": SELECTOR, "template": {
         "metadata": {"labels": {"app": "w"}}, "spec": {"containers": [CONTAINER]}}}},
    {"apiVersion": "batch/v1", "kind": "Job", "metadata": {**META, "name": "j", "uid": "j"},
     "spec": {"parallelism": 1, "template": {"spec": {
         "containers": [CONTAINER], "restartPolicy": "Never"}}}},
    {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
     "metadata": {**META, "name": "b", "uid": "b"},
     "spec": {"minAvailable": "50%", "selector": SELECTOR},
     "status": {"disruptionsAllowed": 0, "disruptedPods": {}}},
    {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "low"},
     "value": 5, "globalDefault": True, "preemptionPolicy": "Never"},
]  # fmt: skip
ODD: st.SearchStrategy[object] = st.sampled_from(
    [None, "", "x", "-1", "1e99", "n1", "0", "*", "\x00", "é" * 300, 0, -1, 1, 2**31, 2**63, 10**40,
     1.5, -0.0, True, False, [], {}, [None], [[]], [{}], {"": ""}, {"a": None}, {"a": {"b": []}},
     ["x", "x"], "2026-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"]
)  # fmt: skip
DELETE = object()


def paths(value, path=()):
    """Return every path in a JSON value."""
    yield path
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from paths(item, (*path, key))


PLACES = [path for path in paths(CLUSTER) if len(path) > 1]


def changed(path, value, original=CLUSTER):
    """Return `original` with `value` at `path`."""
    cluster = copy.deepcopy(original)
    *parents, last = path
    place = cluster
    for step in parents:
        place = place[step]
    if value is DELETE:
        del place[last]
    else:
        place[last] = value
    return cluster


def ask(cluster):
    found = manifests([Document("f.yaml", cluster)])
    refuse_excess(found)
    return what_if(Snapshot("f.yaml", tuple(found), DEFAULT_START), ClusterChange(drain=("n1",)))


def test_a_what_if_of_the_unmodified_cluster_has_an_answer():
    changed = ask(copy.deepcopy(CLUSTER)).changed
    assert [one.pod.key for one in changed.undrained] == ["d/bound"]  # the budget allows none


def refusal_of(cluster):
    """Return the one-line refusal of `cluster`, or "" if it is answered."""
    try:
        ask(cluster)
    except InputError as refused:
        return str(refused)
    return ""


@settings(max_examples=100)
@given(st.sampled_from(PLACES), ODD | st.just(DELETE))
def test_a_dump_with_one_invalid_value_is_answered_or_refused_in_one_line(path, value):
    """A what-if raises no exception but InputError, whatever values the dump has."""
    line = refusal_of(changed(path, value))
    assert "\n" not in line
    assert not line or line.startswith(("f.yaml: ", "--drain: "))


@pytest.mark.long
@settings(max_examples=4_000)
@given(st.sampled_from(PLACES), st.sampled_from(PLACES), ODD, ODD)
def test_a_dump_with_two_invalid_values_is_answered_or_refused(path, other, value, another):
    """The same for two invalid values, with more examples."""
    cluster = changed(path, value)
    try:
        cluster = changed(other, another, cluster)
    except (KeyError, IndexError, TypeError):
        return  # the first value has replaced the place of the second
    assert "\n" not in refusal_of(cluster)
