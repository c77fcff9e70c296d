"""Objects of a dump that are loaded as views of their texts are those that JSON values would be.

A listing is split into texts for a snapshot, and decoded as a whole elsewhere. Both must give the
same views, the same stored objects and the same start of time, or the same refusal.
"""

from __future__ import annotations

import copy
import json
from itertools import pairwise

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, example, given, settings
from msgspec import Raw

from fairlead.api.text.nesting import DEPTH_MAX
from fairlead.apiserver.admission.quota.ledger import QuotaLedgers
from fairlead.apiserver.kind import POD, Kind
from fairlead.apiserver.registry.dump.replicas import DumpedReplicas
from fairlead.apiserver.registry.store import Store
from fairlead.apiserver.storage.deferred_storage import DeferredStorage
from fairlead.apiserver.storage.storage import Storage
from fairlead.engine.core.command import Condition, ObjectRef, PatchStatus
from fairlead.engine.core.instant import seconds
from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.configuration.autoscaling.autoscaler import (
    ADDS_NODES,
    AutoscaleOptions,
    read_autoscalers,
    unsimulated_in_plan,
)
from fairlead.whatif.configuration.autoscaling.karpenter.config import karpenter_config
from fairlead.whatif.input.document import read, read_listings
from fairlead.whatif.input.error import InputError
from fairlead.whatif.input.pod_columns import encode_columns, encode_list
from fairlead.whatif.question import what_if
from fairlead.whatif.run.experiment_run import run_experiment
from fairlead.whatif.scenario.scenario import experiment_of, read_scenario
from fairlead.whatif.snapshot.decoder import pod_texts
from fairlead.whatif.snapshot.decoder.dump_decoder import DumpDecoder
from fairlead.whatif.snapshot.dump_note import dump_notes
from fairlead.whatif.snapshot.live.live_snapshot import LiveObjects, _decoded, _texts
from fairlead.whatif.snapshot.manifest import Manifest, ReplicaManifests, contents_of, entries_of
from fairlead.whatif.snapshot.manifest_reader import manifests
from fairlead.whatif.snapshot.samples import samples
from fairlead.whatif.snapshot.snapshot import (
    Snapshot,
    load_objects,
    parse_snapshot,
    read_snapshot,
    snapshot_of_texts,
    start_of_time,
)
from fairlead.whatif.snapshot.validation.size_limit import refuse_excess
from fairlead.worlds.perform import perform
from fairlead.worlds.pod_views import PodViews
from fairlead.worlds.seeded_ids import SeededIds
from fairlead.worlds.simulation.pod_status_write import PodStatusWrites
from fairlead.worlds.simulation.viewed_object import ViewedObjects

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
                {"name": "app", "state": {"running": {"startedAt": "2026-01-01T00:00:09Z"}},
                 "allocatedResources": {"cpu": "1"}, "resources": {"requests": {"cpu": "1"}}}],
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


def deployment(name="web", image="web:1"):
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": meta(name, namespace="shop"),
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [container() | {"image": image}]},
            },
        },
        "status": {"conditions": [{"lastUpdateTime": "2026-01-01T00:00:11Z"}], "replicas": 1},
    }


def written(tmp_path, objects):
    path = tmp_path / "dump.json"
    listing = {"apiVersion": "v1", "items": objects, "kind": "List", "metadata": {}}
    path.unlink(missing_ok=True)  # it may still be mapped
    path.write_text(json.dumps(listing, indent=4))
    return path


def written_as_columns(tmp_path, objects):
    path = tmp_path / "snapshot.json"
    path.unlink(missing_ok=True)
    path.write_bytes(encode_columns(texts_of(objects), {}))
    return path


def read_values(path):
    """Return what `read_snapshot` returns, read as JSON values."""
    documents = read(path)
    found = manifests(documents)
    refuse_excess(found)
    return Snapshot(path, tuple(found), start_of_time(documents, found))


def loaded(path, reader):
    """Return (views, stored objects, start time), or the refusal."""
    store = Store(SeededIds(0), storage=DeferredStorage())
    try:
        snapshot = reader(str(path))
        views = load_objects(snapshot, store)
    except InputError as refusal:
        return str(refusal)
    stored = {kind.resource: store.list(kind) for kind in store.storage.kinds()}
    return list(views), stored, snapshot.taken_at


def texts_of(objects):
    return [json.dumps(one, separators=(",", ":")).encode() for one in objects]


def read_texts(objects):
    """Return a reader of `objects` as a cluster returns them, as separate texts."""
    return lambda path: snapshot_of_texts(path, texts_of(objects), {})


def read_as_they_arrive(objects):
    """Return a reader of `objects` as a cluster returns them, decoded one by one on arrival."""
    kind = Kind("", "", "", "", is_custom=True)  # the texts contain their kinds

    def reader(path):
        items = list(_decoded(DumpDecoder(), kind, map(Raw, texts_of(objects))))
        return snapshot_of_texts(path, items, {})

    return reader


def paths_in(value, path=()):
    """Return every path below `value`."""
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
    if path and path not in (("metadata", "name"), ("kind",))
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
    """Change one place, unless an earlier step has removed it."""
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
    objects.insert(0, deployment("before", "web:0"))  # its template is often like that of "web"
    path = written(tmp_path, objects)
    expected = loaded(path, read_values)
    assert loaded(path, read_snapshot) == expected
    assert loaded(path, read_texts(objects)) == expected
    assert loaded(path, read_as_they_arrive(objects)) == expected


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (
            {"phase": "Ended"},
            'status.phase: Unsupported value: "Ended"',
        ),
        (
            {"resources": {"requests": {"cpu": "a"}}},
            'status.resources.requests[cpu]: Invalid value: "a"',
        ),
        (
            {"containerStatuses": [{"name": "app", "allocatedResources": {"cpu": "a"}}]},
            'status.containerStatuses[0].allocatedResources[cpu]: Invalid value: "a"',
        ),
        (
            {"initContainerStatuses": [{"name": "i", "resources": {"limits": {"cpu": "a"}}}]},
            'status.initContainerStatuses[0].resources.limits[cpu]: Invalid value: "a"',
        ),
    ],
)
def test_an_invalid_status_of_one_of_two_equal_pods_is_refused(tmp_path, number, change, problem):
    pods = [pod("web-0"), pod("web-1")]
    pods[number]["status"] |= change
    path = written(tmp_path, [node(), *pods])
    assert loaded(path, read_snapshot).startswith(f"{path}: Pod shop/web-{number}: {problem}")
    assert loaded(path, read_values) == loaded(path, read_snapshot)


OWNER = {"apiVersion": "apps/v1", "controller": True, "kind": "ReplicaSet", "name": "web",
         "uid": "uid-web"}  # fmt: skip
PREFIX = {"generateName": "web-"}
RELATIONS = [
    pytest.param(PREFIX, id="a generateName"),
    pytest.param({"ownerReferences": [OWNER]}, id="an owner"),
]


def replica_set():
    found = deployment()
    return found | {"kind": "ReplicaSet", "status": {"replicas": 1}}


@pytest.mark.parametrize("make", [pod, replica_set, deployment])
def test_an_object_in_stored_form_with_two_controllers_is_refused(tmp_path, make):
    found = make()
    found["metadata"]["ownerReferences"] = [OWNER, OWNER | {"name": "old", "uid": "uid-old"}]
    path = written(tmp_path, [node(), found])
    assert loaded(path, read_snapshot).startswith(
        f"{path}: {found['kind']} shop/{found['metadata']['name']}: metadata.ownerReferences: "
        'Invalid value: "ReplicaSet/old": Only one reference can have Controller set to true.'
    )
    assert loaded(path, read_values) == loaded(path, read_snapshot)


def pinned_to(node):
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return {"nodeAffinity": required}


def pods_of_a_workload(relation=PREFIX, *, are_pinned=False):
    """Return pods whose texts differ like those of a ReplicaSet; their metadata have `relation`.

    If `are_pinned` is set, they differ like those of a DaemonSet.
    """
    for number, suffix in enumerate("bcdfghjk"):
        one = pod(f"web-{suffix}")
        one["metadata"] |= copy.deepcopy(relation)
        one["metadata"]["resourceVersion"] = str(100 + number)
        one["spec"]["nodeName"] = f"n{number}"
        one["spec"]["volumes"].append({"name": f"token-{suffix}", "projected": {}})
        one["status"]["podIP"] = f"10.0.0.{number}"
        one["status"]["containerStatuses"][0]["containerID"] = f"containerd://{suffix}"
        if are_pinned:
            one["spec"]["affinity"] = pinned_to(f"n{number}")
        yield one


PIN = (*["spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"],
       "nodeSelectorTerms", 0, "matchFields", 0, "values", 0)  # fmt: skip
VARYING = [
    ("metadata", "name"),
    ("metadata", "resourceVersion"),
    ("metadata", "uid"),
    ("spec", "nodeName"),
    ("spec", "volumes", 1, "name"),
    ("status", "podIP"),
    ("status", "startTime"),
    ("status", "containerStatuses", 0, "containerID"),
    PIN,
]
OF_A_POD = [path for number, path in PLACES if number == 0]
ODD_TEXT = st.sampled_from(['"', "\\", "\n", "\x7f0", "é", "\xa0", "", "web-0", "A"])
VARIED = st.lists(
    st.tuples(
        st.sampled_from(["drop", "set", "set", "set", "add"]),
        st.tuples(st.integers(0, 7), st.sampled_from(VARYING) | st.sampled_from(OF_A_POD)),
        ODD_TEXT | ODD,
    ),
    max_size=4,
)


@given(
    steps=VARIED,
    relation=st.sampled_from([PREFIX, {"ownerReferences": [OWNER]}]),
    are_pinned=st.booleans(),
    order=st.sampled_from([range(9), (8, *reversed(range(8))), (4, 5, 6, 7, 8, 0, 1, 2, 3)]),
)
@example(  # pods whose texts differ in the name of a field
    steps=[("drop", (0, ("status", "startTime")), ""), ("drop", (1, ("status", "podIP")), "")],
    relation=PREFIX,
    are_pinned=False,
    order=range(9),
)
@example(  # a name between the names of another group
    steps=[("set", (0, ("metadata", "name")), "web-dd"), ("set", (0, ("spec", "priority")), 1)],
    relation=PREFIX,
    are_pinned=False,
    order=range(9),
)
@example(  # a pod that is pinned to another node, whose name is malformed
    steps=[("set", (3, PIN), " ")], relation=PREFIX, are_pinned=True, order=range(9)
)
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_pods_with_equal_texts_are_loaded_like_decoded_values(
    tmp_path, steps, relation, are_pinned, order
):
    objects = [*pods_of_a_workload(relation, are_pinned=are_pinned), node()]
    for what, place, value in steps:
        changed(objects, (what, place, ("x", value) if what == "add" else value))
    objects = [objects[index] for index in order]
    path = written(tmp_path, objects)
    expected = loaded(path, read_values)
    assert loaded(path, read_snapshot) == expected
    assert loaded(path, read_texts(objects)) == expected
    assert loaded(path, read_as_they_arrive(objects)) == expected
    # A snapshot file has the same objects, so only the name of the file may differ in a refusal.
    columns = loaded(written_as_columns(tmp_path, objects), read_snapshot)
    if isinstance(expected, str):
        assert isinstance(columns, str)
        assert columns.partition(": ")[2] == expected.partition(": ")[2]
    else:
        assert columns == expected


@pytest.mark.parametrize("relation", RELATIONS)
def test_pods_after_the_first_three_share_their_equal_parts(tmp_path, relation):
    path = written(tmp_path, list(pods_of_a_workload(relation)))
    found = [one.content for one in manifests(read_listings(str(path)))]
    assert [one.template is None for one in found] == [True] * 3 + [False] * 5
    assert found[3].view.status.container_statuses is found[7].view.status.container_statuses
    assert found[3].value["spec"]["containers"] is found[7].value["spec"]["containers"]


def test_a_pod_like_another_does_not_keep_its_own_text():
    texts = texts_of(pods_of_a_workload())
    found = [
        one.content for one in snapshot_of_texts("c", [*texts, *texts_of([node()])], {}).manifests
    ]
    assert [isinstance(one.text, bytes) for one in found] == [True] * 3 + [False] * 5 + [True]
    assert [bytes(one.text) for one in found[:-1]] == texts


def test_only_one_of_the_pods_that_are_certainly_replicas_is_a_sample():
    texts = texts_of([*pods_of_a_workload(), node()])
    found = snapshot_of_texts("c", texts, {}).manifests
    left_out = [two for one, two in pairwise(found) if two.is_replica_of(one)]
    assert [one.ref.name for one in left_out] == ["web-g", "web-h", "web-j", "web-k"]
    assert [one.ref for one in samples(found)] == [one.ref for one in found if one not in left_out]


@pytest.mark.parametrize(("rows_max", "lengths"), [(9, [5]), (2, [2, 2, 1])])
def test_neighbouring_replicas_become_columns(monkeypatch, rows_max, lengths):
    monkeypatch.setattr(pod_texts, "_ROWS_MAX", rows_max)
    texts = texts_of([*pods_of_a_workload(), node()])
    found = snapshot_of_texts("c", texts, {}).manifests
    entries = [one for one in entries_of(found) if isinstance(one, ReplicaManifests)]
    assert [len(one.replicas) for one in entries] == [one for one in lengths if one > 1]
    assert [bytes(one.content.text) for one in found] == texts


def test_notes_about_a_dump_do_not_make_the_replicas():
    """A dump of 100,000 pods would need 130 MB for them."""
    snapshot = snapshot_of_texts("c", texts_of([*pods_of_a_workload(), node()]), {})
    assert list(dump_notes(snapshot))
    assert "_all" not in vars(snapshot.manifests)
    assert snapshot.manifests[0].ref.name
    assert "_all" in vars(snapshot.manifests)


def test_an_invalid_annotation_in_a_live_cluster_becomes_a_note():
    """In a file, it is an error. In a cluster, it would block the questions of all users."""
    objects = [pod("a"), pod("b"), node()]
    for one in objects[:2]:
        one["metadata"]["annotations"] = {"fairlead.dev/run-duration": "xx"}
    objects[2]["metadata"]["annotations"] = {"fairlead.dev/kubelet": "gone"}
    texts = texts_of(objects)
    with pytest.raises(InputError, match=r"Pod shop/a: metadata.annotations\[fairlead.dev/run-d"):
        parse_snapshot("c", encode_list(texts, {}))
    snapshot = snapshot_of_texts("c", texts, {})
    notes = [one for one in dump_notes(snapshot) if "annotations[" in one]
    assert [(one.partition(": metadata")[0], one.rpartition("; ")[2]) for one in notes] == [
        ("Pod shop/a and 1 more", "this value has no effect."),
        ("Node n", "this value has no effect."),
    ]
    assert what_if(snapshot, ClusterChange(drain=("n",))).difference


def test_a_what_if_does_not_make_the_replicas():
    snapshot = snapshot_of_texts("c", texts_of([*pods_of_a_workload(), node()]), {})
    what_if(snapshot, ClusterChange(drain=("n",)))
    assert len(snapshot.manifests.samples) < len(snapshot.manifests)
    assert "_all" not in vars(snapshot.manifests)


def test_a_scenario_does_not_make_the_replicas(write):
    """A sweep reads the dump once for each case."""
    items = [*pods_of_a_workload(), node()]
    write("dump.json", json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    extra = "objects: [{apiVersion: v1, kind: ConfigMap, metadata: {name: extra}}]"
    path = write("s.yaml", f"cluster: {{files: [dump.json]}}\n{extra}\n")
    experiment = experiment_of(path, read_scenario(path))
    run_experiment(experiment)
    assert len(samples(experiment.initial)) < len(experiment.initial)
    assert "_all" not in vars(experiment.initial)


@pytest.mark.parametrize("autoscale", ["off", "auto", "cluster-autoscaler"])
def test_choosing_the_autoscaler_does_not_make_the_replicas(autoscale):
    of_group = node()
    of_group["metadata"]["labels"] = {"eks.amazonaws.com/nodegroup": "a"}
    snapshot = snapshot_of_texts("c", texts_of([*pods_of_a_workload(), of_group]), {})
    read_autoscalers("c", snapshot.manifests, AutoscaleOptions(autoscale))
    assert unsimulated_in_plan(snapshot.manifests, ADDS_NODES) == ()
    assert len(snapshot.manifests.samples) < len(snapshot.manifests)
    assert "_all" not in vars(snapshot.manifests)


@pytest.mark.parametrize("requests_less", [True, False])
def test_the_newest_pod_of_a_daemon_set_may_be_a_replica_of_an_old_pod(write, requests_less):
    """A change of the requests was reverted after it had reached one pod."""
    daemon_set = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "ds"}
    owned = {"ownerReferences": [{**daemon_set, "controller": True}]}
    pods = list(pods_of_a_workload(owned, are_pinned=True))
    for number, one in enumerate(pods):
        one["metadata"]["creationTimestamp"] = f"2026-01-01T00:0{number}:00Z"
        is_changed = number == len(pods) - 2
        if is_changed == requests_less:
            one["spec"]["containers"][0]["resources"]["requests"]["ephemeral-storage"] = "1Gi"
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container()]}}
    template["spec"]["containers"][0]["resources"]["requests"]["ephemeral-storage"] = "1Gi"
    agent = deployment() | {"kind": "DaemonSet", "metadata": meta("agent", namespace="shop")}
    agent["spec"] = {"selector": agent["spec"]["selector"], "template": template}
    pool = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": meta("default"),
        "spec": {"template": {"spec": {"requirements": []}}},
    }
    found = snapshot_of_texts("c", texts_of([*pods, node(), agent, pool]), {}).manifests
    assert len(found.samples) < len(found)
    types = write("types.csv", "name,cpu,memory\nsmall,4,16Gi\n")
    _, notes = karpenter_config("c", found, types)
    about = "newest pod of DaemonSet shop/agent (ephemeral-storage) requests less"
    assert any(about in note for note in notes) == requests_less
    assert "_all" not in vars(found)


def test_pods_that_are_not_replicas_do_not_become_columns():
    pods = list(pods_of_a_workload())
    for number, one in enumerate(pods):
        one["metadata"]["labels"]["index"] = str(number)
    found = snapshot_of_texts("c", texts_of([*pods, node()]), {}).manifests
    assert {type(one) for one in entries_of(found)} == {Manifest}
    assert found[7].content.template is not None


def test_items_of_a_typed_list_get_their_kind():
    texts = texts_of(pods_of_a_workload())
    items = [Raw(b"{" + one.split(b",", 2)[2]) for one in texts]
    assert [json.loads(one) for one in _texts(POD, items)] == [json.loads(one) for one in texts]


def test_objects_are_decoded_on_arrival_and_keep_their_texts():
    texts = texts_of(pods_of_a_workload())
    items = [Raw(b"{" + one.split(b",", 2)[2]) for one in texts]
    found = list(_decoded(DumpDecoder(), POD, [*items, Raw(b'{"spec": 1e999}')]))
    assert [isinstance(one, bytes) for one in found] == [False] * 8 + [True]
    assert [json.loads(bytes(one)) for one in found[:-1]] == [json.loads(one) for one in texts]
    assert all(one.dumped.template is not None for one in found[3:-1])


def test_a_large_cluster_has_a_short_repr():
    """When a coroutine ends, asyncio.run makes a repr of its result."""
    live = LiveObjects("c", 0, ((POD, texts_of(pods_of_a_workload())),), ())
    assert len(repr(live)) < 200


def test_pods_of_a_column_are_made_from_a_template(tmp_path):
    path = written_as_columns(tmp_path, list(pods_of_a_workload()))
    found = [one.content for one in manifests(read_listings(str(path)))]
    assert all(one.template is not None for one in found)
    assert found[1].value["spec"]["containers"] is found[7].value["spec"]["containers"]


def renamed(pods, app):
    """Return the pods `web-*` as pods of another workload `app`."""
    return json.loads(
        json.dumps(pods).replace('"web-', f'"{app}-').replace("uid-web", f"uid-{app}")
    )


def test_only_columns_with_other_pods_between_their_names_are_divided(tmp_path):
    web = list(pods_of_a_workload())
    path = written_as_columns(tmp_path, [*renamed(web, "api"), *web, pod("web-dd"), node()])
    store = Store(SeededIds(0), storage=DeferredStorage(0))
    found = store.load(contents_of(read_snapshot(path).manifests), 0).replicas
    names = [one.metadata.name for replicas in found for one in replicas]
    assert names == sorted(names)
    assert len(names) == 17
    (kept,) = (one for one in found if isinstance(one, DumpedReplicas))
    assert [*kept.names] == [f"api-{letter}" for letter in "bcdfghjk"]


def loaded_replicas(tmp_path, objects):
    path = written(tmp_path, [*objects, node()])
    store = Store(SeededIds(0), storage=DeferredStorage(0))
    return store.load(contents_of(read_snapshot(path).manifests), 0).replicas


@pytest.mark.parametrize(
    ("rows_max", "order"),
    [
        (9, (3, 4, 5, 0, 1, 2, 6, 7)),
        (9, (1, 3, 5, 7, 6, 4, 2, 0)),
        (2, (3, 4, 5, 0, 7, 1, 6, 2)),
    ],
)
def test_first_pods_of_a_workload_join_its_columns(tmp_path, monkeypatch, rows_max, order):
    """They are decoded before there is a template; other pods are listed before and after them."""
    monkeypatch.setattr(pod_texts, "_ROWS_MAX", rows_max)
    pods = list(pods_of_a_workload())
    found = loaded_replicas(tmp_path, [pods[index] for index in order])
    (kept,) = (one for one in found if isinstance(one, DumpedReplicas))
    others = [one.names[0] for one in found if one is not kept]
    assert sorted([*others, *kept.names]) == [f"web-{letter}" for letter in "bcdfghjk"]
    assert len(kept) >= 7  # a pod before or after all others stays separate
    assert all(one.metadata.name in kept.names for one in kept)


def test_a_pod_with_another_priority_does_not_join_the_columns_of_its_workload(tmp_path):
    pods = list(pods_of_a_workload())
    pods[4]["spec"]["priority"] = 1
    found = loaded_replicas(tmp_path, [*pods[:4], *pods[5:], pods[4]])
    assert not any(isinstance(one, DumpedReplicas) for one in found)
    assert [one.metadata.name for replicas in found for one in replicas] == [
        f"web-{letter}" for letter in "bcdfghjk"
    ]


def test_conditions_of_pods_in_columns_are_written_to_their_views(tmp_path):
    path = written_as_columns(tmp_path, [*pods_of_a_workload(), node()])
    contents = list(contents_of(read_snapshot(path).manifests))
    assert any(isinstance(one, DumpedReplicas) for one in contents)
    storage = DeferredStorage(0)
    store, plain = Store(SeededIds(0), storage=storage), Store(SeededIds(0), storage=Storage(0))
    views = PodViews()
    views.load(store.load(contents, 0))
    plain.load(contents, 0)
    writes = PodStatusWrites(ViewedObjects(POD, storage, views, QuotaLedgers(storage)))
    for suffix in "dk":
        target = ObjectRef("Pod", "shop", f"web-{suffix}", f"uid-web-{suffix}")
        command = PatchStatus(target, conditions=(Condition("Ready", "False"),))
        assert writes.perform(command, seconds(9)) is not None
        perform(plain, command, seconds(9))
    assert store.list(POD) == plain.list(POD)


def test_an_escaped_string_becomes_a_column_only_if_no_view_reads_it(tmp_path):
    pods = list(pods_of_a_workload())
    for number, one in enumerate(pods):
        fields = {"f:podIPs": {f'k:{{"ip":"10.0.0.{number}"}}': {}}}
        one["metadata"]["managedFields"] = [{"fieldsV1": fields, "manager": "kubelet"}]
    objects = [*pods, node()]
    path = written_as_columns(tmp_path, objects)
    found = [one.content for one in manifests(read_listings(str(path)))]
    assert found[7].template is not None
    assert found[7].managed_fields == tuple(objects[7]["metadata"]["managedFields"])
    assert found[7].value["metadata"]["uid"] == objects[7]["metadata"]["uid"]
    assert loaded(path, read_snapshot) == loaded(written(tmp_path, objects), read_snapshot)


def test_objects_in_stored_form_remain_texts(tmp_path):
    path = written(tmp_path, [pod(), node(), deployment()])
    found = manifests(read_listings(str(path)))
    assert [manifest.view is not None for manifest in found] == [True, True, True]


def test_equal_parts_of_pods_are_one_object(tmp_path):
    path = written(tmp_path, [pod("a"), pod("b")])
    first, second = (one.view for one in manifests(read_listings(str(path))))
    assert first.spec.containers is second.spec.containers
    assert first.metadata.labels is second.metadata.labels


def test_equal_amounts_of_nodes_are_one_object(tmp_path):
    path = written(tmp_path, [node(), node() | {"metadata": meta("m")}])
    first, second = (one.view.status for one in manifests(read_listings(str(path))))
    assert first.allocatable is second.allocatable
    assert first.capacity is second.capacity


@pytest.mark.parametrize("place", [("spec", "taints"), ("status", "conditions")])
@pytest.mark.parametrize("field", ["effect", "status", "lastHeartbeatTime", "lastTransitionTime"])
@pytest.mark.parametrize("value", ["", "Wrong", None, 7, "2026-01-01T00:00:30Z"])
def test_a_node_like_an_earlier_one_is_loaded_like_its_value(tmp_path, place, field, value):
    condition = {"type": "Ready", "status": "True", "lastHeartbeatTime": TIME}
    first = node()
    first["status"]["conditions"] = [condition | {"lastTransitionTime": TIME}]
    second = copy.deepcopy(first) | {"metadata": meta("m")}
    second[place[0]][place[1]][0][field] = value
    path = written(tmp_path, [first, second])
    assert loaded(path, read_snapshot) == loaded(path, read_values)


def test_equal_parts_of_templates_are_one_object(tmp_path):
    path = written(tmp_path, [deployment("a", "web:1"), deployment("b", "web:2")])
    first, second = (
        one.view.spec.template["spec"]["containers"][0]
        for one in manifests(read_listings(str(path)))
    )
    assert first["ports"] is second["ports"]
    assert (first["image"], second["image"]) == ("web:1", "web:2")
    assert list(first) == list(second)


def with_rbd_image(image, key="image"):
    """Return a deployment with a volume; the volume has an image, too."""
    found = deployment()
    volume = {"name": "data", "rbd": {"monitors": ["a"], key: image}}
    found["spec"]["template"]["spec"]["volumes"] = [volume]
    return found


def with_labels_of_template(labels):
    found = deployment(image="web:2")
    found["spec"]["template"]["metadata"]["labels"] = labels
    return found


def with_spec(**fields):
    found = deployment(image="web:2")
    found["spec"] |= fields
    return found


def with_template_metadata(**fields):
    found = deployment(image="web:2")
    template = found["spec"]["template"]
    template["metadata"] = fields | template["metadata"]
    return found


def applied(null):
    """Return a deployment with the annotation of kubectl apply, which contains `null`."""
    found = deployment()
    annotation = {"kubectl.kubernetes.io/last-applied-configuration": json.dumps(null)}
    found["metadata"] = meta("web", namespace="shop", annotations=annotation)
    return found


@pytest.mark.parametrize(
    ("found", "is_stored"),
    [
        pytest.param(with_template_metadata(creationTimestamp=None), True, id="1.33 and earlier"),
        pytest.param(with_template_metadata(annotations=None), False, id="null annotations"),
        pytest.param(
            with_template_metadata(annotations={"a\\": None}), False, id="after a backslash"
        ),
        pytest.param(applied({"creationTimestamp": None, "a": 1}), True, id="within a string"),
    ],
)
@pytest.mark.parametrize("indent", [None, 2])
def test_a_workload_with_a_null_is_loaded_like_its_value(tmp_path, found, is_stored, indent):
    assert (
        DumpDecoder().decode(json.dumps(found, indent=indent).encode()) is not None
    ) is is_stored
    path = written(tmp_path, [node(), deployment("first"), found])
    assert loaded(path, read_snapshot) == loaded(path, read_values)


@pytest.mark.parametrize(
    "place", [(), ("spec",), ("spec", "template"), ("spec", "template", "spec")]
)
@pytest.mark.parametrize(
    "deep",
    [
        "[" * 480 + "]" * 480,
        '{"a":' * 240 + "{}" + "}" * 240,
        '[{"a":' * DEPTH_MAX + "1" + "}]" * DEPTH_MAX,
        '[{"a":' * (DEPTH_MAX // 2) + "1" + "}]" * (DEPTH_MAX // 2),
    ],
    ids=["lists", "objects", "both", "just too deep"],
)
def test_a_workload_that_is_nested_too_deeply_is_refused(tmp_path, place, deep):
    """Otherwise, recursive functions that read its value would fail."""
    found = deployment()
    outer = found
    for name in place:
        outer = outer[name]
    outer["unknown"] = json.loads(deep)
    with pytest.raises(InputError, match="Deployment shop/web: is nested too deeply"):
        read_snapshot(str(written(tmp_path, [node(), found])))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(with_rbd_image("a"), with_rbd_image("b"), id="an image of a volume"),
        pytest.param(
            with_rbd_image("web:1"), deployment(image="web:1"), id="only one has a volume"
        ),
        pytest.param(deployment(image="a"), deployment(image="b\\c"), id="an escaped image"),
        pytest.param(deployment(image="a"), deployment(image="\u00e4"), id="an image not in ASCII"),
        pytest.param(deployment(image="a"), deployment(image=""), id="an empty image"),
        pytest.param(deployment(), with_labels_of_template({"app": "a b"}), id="a wrong label"),
        pytest.param(deployment(), with_labels_of_template({"app": 1}), id="a label of wrong type"),
        pytest.param(
            deployment(),
            with_template_metadata(creationTimestamp=None),
            id="a null in the metadata",
        ),
        pytest.param(deployment(), with_spec(replicas=-1), id="a wrong number of replicas"),
        pytest.param(deployment(), with_spec(replicas=2**70), id="a long integer"),
        pytest.param(
            deployment(),
            with_spec(copy=deployment(image="web:2")["spec"]["template"]["spec"]),
            id="a copy of the template's spec",
        ),
        pytest.param(
            deployment(),
            {"copy": deployment(image="web:2")["spec"]["template"]["spec"], **deployment()},
            id="a copy before the template's spec",
        ),
    ],
)
def test_a_template_like_an_earlier_one_is_loaded_like_its_value(tmp_path, one, other):
    metas = [{"metadata": meta(name, namespace="shop")} for name in ("a", "b")]
    objects = [node(), one | metas[0], other | metas[1]]
    path = written(tmp_path, objects)
    assert loaded(path, read_snapshot) == loaded(path, read_values)


def test_an_image_with_an_escaped_key_is_not_taken_for_another(tmp_path):
    """Such a key is valid. The image of the volume could be taken for that of the container."""
    objects = [
        with_rbd_image(image) | {"metadata": meta(name, namespace="shop")}
        for name, image in (("a", "web:1"), ("b", "web:2"))
    ]
    path = written(tmp_path, [node(), *objects])
    of_containers = '"image": "web:1",'  # no comma follows the image of a volume
    path.write_text(path.read_text().replace(of_containers, '"im\\u0061ge": "web:1",'))
    assert loaded(path, read_snapshot) == loaded(path, read_values)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(b'{"kind": "List", "items": [{}]}', id="an item without a kind"),
        pytest.param(b'{"kind": "List", "items": [{"kind": "Pod"}, {]}', id="an item not closed"),
        pytest.param(b'{"kind": "List", "items": [{}]} x', id="text after the list"),
        pytest.param(b'{"kind": "List", "items": [{"a": "\xff"}]}', id="bytes that are not UTF-8"),
        pytest.param(b'{"kind": "List", "items": [{"a": 1e999}]}', id="a number out of range"),
        pytest.param(b'{"kind": "List", "items": {}}', id="items that are not a list"),
        pytest.param(b'{"kind": 1, "items": [{}]}', id="a kind that is not a string"),
    ],
)
def test_a_text_that_is_not_a_listing_is_refused_with_the_usual_error(tmp_path, text):
    path = tmp_path / "dump.json"
    path.write_bytes(text)
    refusals = []
    for reader in (read_snapshot, read_values):
        with pytest.raises(InputError) as refusal:
            reader(str(path))
        refusals.append(str(refusal.value))
    assert refusals[0] == refusals[1]


@pytest.mark.parametrize(
    ("field", "is_stored"),
    [
        ({"securityContext": {}}, True),
        ({"nodeSelector": {}}, False),
        ({"tolerations": []}, False),
        ({"hostNetwork": False}, False),
        ({"serviceAccountName": ""}, False),
        ({"schedulerName": 'says "hostNetwork": false'}, True),
        ({"securityContext": {"runAsUser": 0}, "hostPID": False}, False),
    ],
)
def test_a_workload_with_an_empty_field_that_is_not_stored_is_decoded_as_json(field, is_stored):
    """Otherwise its template would never equal that of the ReplicaSet created from it."""
    found = deployment()
    found["spec"]["template"]["spec"] |= field
    decoded = DumpDecoder().decode(json.dumps(found).encode())
    assert (decoded is not None) is is_stored
