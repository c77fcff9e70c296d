"""Objects of a dump that are loaded as views of their texts are those that JSON values would be.

A listing as kubectl indents it is split into texts; in one line it is decoded as a whole. Both must
give the same views, the same stored objects and the same start of time, or the same refusal.
"""

from __future__ import annotations

import copy
import json

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

from fairlead.apiserver.registry.store import Store
from fairlead.apiserver.storage.deferred_storage import DeferredStorage
from fairlead.whatif.input.document import read_listings
from fairlead.whatif.input.error import InputError
from fairlead.whatif.snapshot.manifest import manifests
from fairlead.whatif.snapshot.snapshot import load_objects, read_snapshot
from fairlead.worlds.seeded_ids import SeededIds

TIME = "2026-01-01T00:00:00Z"
TOLERATIONS = [
    {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute"}
    for key in ("not-ready", "unreachable")
]


def meta(name, **more):
    return {
        "creationTimestamp": TIME,
        "labels": {"app": "web"},
        "name": name,
        "resourceVersion": "7",
        "uid": f"uid-{name}",
        **more,
    }


def container():
    return {
        "image": "web:1",
        "name": "app",
        "ports": [{"containerPort": 80, "protocol": "TCP"}],
        "resources": {"limits": {"memory": "1Gi"}, "requests": {"cpu": "1", "memory": "1Gi"}},
    }


def pod(name="web-0"):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta(name, namespace="shop", managedFields=[{"manager": "kubelet"}]),
        "spec": {
            "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
                {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "zone"}]}},
            "containers": [container()],
            "nodeName": "n",
            "priority": 0,
            "restartPolicy": "Always",
            "schedulerName": "default-scheduler",
            "terminationGracePeriodSeconds": 30,
            "tolerations": copy.deepcopy(TOLERATIONS),
            "topologySpreadConstraints": [
                {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}],
            "volumes": [{"emptyDir": {}, "name": "tmp"}],
        },
        "status": {
            "conditions": [
                {"lastProbeTime": None, "lastTransitionTime": TIME, "status": "True",
                 "type": "Ready"}],
            "containerStatuses": [
                {"name": "app", "state": {"running": {"startedAt": "2026-01-01T00:00:09Z"}}}],
            "phase": "Running",
            "startTime": TIME,
        },
    }  # fmt: skip


def node():
    amounts = {"cpu": "8", "memory": "16Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": meta("n"),
        "spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]},
        "status": {"allocatable": amounts, "capacity": {**amounts}},
    }


def deployment():
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": meta("web", namespace="shop"),
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [container()]},
            },
        },
        "status": {"conditions": [{"lastUpdateTime": "2026-01-01T00:00:11Z"}], "replicas": 1},
    }


def written(tmp_path, objects, indent):
    path = tmp_path / f"dump-{indent or 0}.json"
    listing = {"apiVersion": "v1", "items": objects, "kind": "List", "metadata": {}}
    path.write_text(json.dumps(listing, indent=indent))
    return path


def loaded(path):
    """Views, stored objects and start of time; or the refusal."""
    store = Store(SeededIds(0), storage=DeferredStorage())
    try:
        snapshot = read_snapshot(str(path))
        views = load_objects(snapshot, store)
    except InputError as refusal:
        return str(refusal).replace(path.name, "FILE")
    stored = {kind.resource: store.list(kind) for kind in store.storage.kinds()}
    return views, stored, snapshot.taken_at


def paths_in(value, path=()):
    """Every path below `value`."""
    yield path
    below = value if isinstance(value, dict) else {}
    if isinstance(value, list):
        below = dict(enumerate(value))
    for key, item in below.items():
        yield from paths_in(item, (*path, key))


PLACES = [
    (number, path)
    for number, one in enumerate((pod(), node(), deployment()))
    for path in paths_in(one)
    if path and path != ("metadata", "name")
]
ODD = st.sampled_from(
    [None, "", "x", " ", "-1", "2026-01-01T00:00:30Z", "2026-01-01T00:00:31.5+00:00",
     "0001-01-01T00:00:00Z", "9999-01-01T00:00:00Z", 0, -1, 7, 2**70, True, [], [None], {},
     {"a": None}, ["app"], "zone", "Never", "100m"]
)  # fmt: skip
ADDED = st.sampled_from(
    [
        ("hostNetwork", True),
        ("priorityClassName", "high"),
        ("resources", {"requests": {"cpu": "2"}}),
        ("matchLabelKeys", ["app"]),
        ("hostPort", 80),
        ("annotations", {"fairlead.dev/startup-seconds": "x"}),
        ("limits", {"cpu": "3"}),
        ("ephemeral", {"volumeClaimTemplate": {"spec": None}}),
        ("schedulingGates", [{"name": "g"}]),
        ("deletionTimestamp", TIME),
        ("ownerReferences", [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": ""}]),
        ("capacity", {"cpu": "9"}),
    ]
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("drop"), st.sampled_from(PLACES), st.none()),
        st.tuples(st.just("set"), st.sampled_from(PLACES), ODD),
        st.tuples(st.just("add"), st.sampled_from(PLACES), ADDED),
    ),
    max_size=3,
)


def changed(objects, step):
    """Change one place, unless an earlier step took it away."""
    what, (number, path), value = step
    at = objects[number]
    for key in path[:-1]:
        try:
            at = at[key]
        except (KeyError, IndexError, TypeError):
            return
    if not isinstance(at, dict) or path[-1] not in at:
        return
    if what == "drop":
        del at[path[-1]]
    elif what == "set":
        at[path[-1]] = value
    elif isinstance(at[path[-1]], dict):
        at[path[-1]][value[0]] = copy.deepcopy(value[1])


@given(steps=STEPS)
@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_texts_and_values_are_loaded_alike(tmp_path, steps):
    objects = [pod(), node(), deployment(), pod("web-1")]
    for step in steps:
        changed(objects, step)
    assert loaded(written(tmp_path, objects, 4)) == loaded(written(tmp_path, objects, None))


def test_objects_in_stored_form_remain_texts(tmp_path):
    path = written(tmp_path, [pod(), node(), deployment()], 4)
    found = manifests(read_listings(str(path)))
    assert [manifest.view is not None for manifest in found] == [True, True, True]


def test_equal_parts_of_pods_are_one_object(tmp_path):
    path = written(tmp_path, [pod("a"), pod("b")], 4)
    first, second = (one.view for one in manifests(read_listings(str(path))))
    assert first.spec.containers is second.spec.containers
    assert first.metadata.labels is second.metadata.labels


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(b'{"items": [\n {\n }\n]}\n', id="an item without a kind"),
        pytest.param(b'{"items": [\n {"kind": "Pod"\n },\n {\n ]}\n', id="an item not closed"),
        pytest.param(b'{"items": [\n {\n },\n {\n }\n] x}\n', id="text after the items"),
        pytest.param(b'{"items": [\n {\n },\n {"a": "\xff"\n }\n]}\n', id="bytes that are no text"),
        pytest.param(b'{"a": {"items": [\n {\n },\n {\n }\n]}}\n', id="items of something else"),
    ],
)  # fmt: skip
def test_a_text_that_is_no_listing_is_refused_as_if_it_were_not_split(tmp_path, text):
    path = tmp_path / "dump.json"
    refusals = []
    for content in (text, text.replace(b"\n", b" ")):
        path.write_bytes(content)
        with pytest.raises(InputError) as refusal:
            read_snapshot(str(path))
        refusals.append(str(refusal.value))
    assert refusals[0] == refusals[1]
