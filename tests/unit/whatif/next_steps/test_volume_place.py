"""Notes name the volumes that keep pods pending; a next step ends the failure of their nodes."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.change.node_outage.node_failure import Failures
from fairlead.whatif.conditions import Conditions
from fairlead.whatif.configuration.autoscaling.autoscaler import AutoscaleOptions
from fairlead.whatif.next_steps.step_context import StepContext
from fairlead.whatif.next_steps.volume_place import name_volumes
from fairlead.whatif.question import what_if

ZONE = "topology.kubernetes.io/zone"
ELSEWHERE = "or a volume elsewhere with a copy of the data."


def volume(number, key, value):
    """A volume that only nodes with the label can use, and its claim."""
    term = {"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}
    name = f"data-{number}"
    claim = {"kind": "PersistentVolumeClaim", "namespace": "default", "name": name}
    return [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": f"pv-{number}"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "claimRef": claim,
                "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
            },
            "status": {"phase": "Bound"},
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"accessModes": ["ReadWriteOnce"], "volumeName": f"pv-{number}"},
            "status": {"phase": "Bound"},
        },
    ]


@pytest.fixture
def cluster(snapshot, make):
    """Returns a cluster with nodes a0, a1, ... and b0; a pod with a volume runs on each `a` node.

    Each volume needs the label `key` of the pod's node.
    """

    def made(count, key=ZONE):
        found = [make.node("b0", **{ZONE: "b"})]
        for number in range(count):
            node = make.node(f"a{number}", **{ZONE: "a"})
            labels = node["metadata"]["labels"]
            labels["kubernetes.io/hostname"] = f"a{number}"
            labels["eks.amazonaws.com/nodegroup"] = "group-a"
            claim = {"persistentVolumeClaim": {"claimName": f"data-{number}"}}
            spec = {"volumes": [{"name": "v", **claim}]}
            owner = make.workload("ReplicaSet", f"db-{number}", **spec)
            owner["metadata"]["uid"] = f"db-{number}"
            pod = make.pod(f"db-{number}-x", node_name=f"a{number}", owner=f"db-{number}", **spec)
            found += [node, owner, pod, *volume(number, key, labels[key])]
        return snapshot(*found)

    return made


FAILED = ClusterChange(failures=Failures(fail_zone=("a",)))


def volume_notes(answer):
    return [one for one in answer.changed.notes if one.startswith(("Volume ", "2 volumes "))]


def longer_step(answer):
    """The words of the next step with --for; "" if there is none."""
    return "".join(one.words for one in answer.next_steps if "--for" in one.code)


def replicated(make, name, node, *volumes, count=1, kind="ReplicaSet", **spec):
    """A workload whose pods all use the `volumes` of their spec and run on `node`."""
    spec["volumes"] = [{"name": f"v{number}", **one} for number, one in enumerate(volumes)]
    owner = make.workload(kind, name, replicas=count, **spec)
    owner["metadata"]["uid"] = name
    pods = [
        make.pod(f"{name}-{number}", node_name=node, owner=name, **spec) for number in range(count)
    ]
    return [owner, *pods]


def claim_of(number):
    return {"persistentVolumeClaim": {"claimName": f"data-{number}"}}


@pytest.mark.parametrize("autoscale", ["off", "cluster-autoscaler"])
def test_the_volumes_of_a_failed_zone_and_a_shorter_failure_are_named(cluster, autoscale):
    conditions = Conditions(autoscale=AutoscaleOptions(autoscale))
    answer = what_if(cluster(2), FAILED, conditions)
    [note] = volume_notes(answer)
    assert note.startswith("2 volumes (pv-0, pv-1) can be used only on a")
    assert note.endswith(f"no new pods; their 2 pods need such a node {ELSEWHERE}")
    assert longer_step(answer) == (
        "ask what happens if the failed nodes, which 2 volumes need, come back after an hour"
    )
    shorter = ClusterChange(failures=FAILED.failures, lasts="1h")
    assert not what_if(cluster(2), shorter, conditions).difference.pending


@pytest.mark.parametrize(
    ("failures", "lasts"),
    [(FAILED.failures, "8m"), (Failures(flap=("a0@8m/4m",)), ""), (FAILED.failures, "")],
)
def test_a_failure_that_ends_in_the_question_gets_no_step_with_another_end(
    cluster, failures, lasts
):
    """The node is cordoned, so the pod stays pending when the node is back."""
    answer = what_if(cluster(1), ClusterChange(failures=failures, lasts=lasts, cordon=("a0",)))
    assert volume_notes(answer)
    assert bool(longer_step(answer)) == (failures == FAILED.failures and not lasts)


def test_a_node_group_may_help_if_the_nodes_of_the_volume_have_not_failed(snapshot, make):
    """The autoscaler adds nodes only to its group, which is in another zone."""
    nodes = [make.node(name, **{ZONE: name}) for name in "ab"]
    nodes[1]["metadata"]["labels"]["eks.amazonaws.com/nodegroup"] = "group-b"
    cluster = snapshot(*nodes, *replicated(make, "db", "a", claim_of(0)), *volume(0, ZONE, "a"))
    conditions = Conditions(autoscale=AutoscaleOptions("cluster-autoscaler"))
    change = ClusterChange(cordon=("a",), delete=("pod/db-0",))
    [note] = volume_notes(what_if(cluster, change, conditions))
    assert note.endswith(f"; its pod needs such a node, or a node group there, {ELSEWHERE}")
    [note] = volume_notes(what_if(cluster, FAILED, conditions))
    assert note.endswith(f"; its pod needs such a node {ELSEWHERE}")


def test_the_volumes_of_pods_that_run_are_not_named(snapshot, make, cluster):
    change = ClusterChange(cordon=("a0",), delete=("pod/db-0-x",))
    [note] = volume_notes(what_if(cluster(2, "kubernetes.io/hostname"), change))
    assert note.startswith("Volume pv-0 ")


def test_only_the_volumes_of_the_pending_pods_of_a_stateful_set_are_named(snapshot, make):
    """db-1 cannot run elsewhere; db-0 runs on."""
    objects = [make.node(name, **{ZONE: name}) for name in "ab"]
    owner, *_ = replicated(make, "db", "a", kind="StatefulSet", count=2)
    template = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    owner["spec"] |= {"volumeClaimTemplates": [template], "podManagementPolicy": "Parallel"}
    for number, zone in enumerate("ab"):
        own, claim = volume(number, ZONE, zone)
        own["spec"]["claimRef"]["name"] = claim["metadata"]["name"] = f"data-db-{number}"
        data = {"name": "data", "persistentVolumeClaim": {"claimName": f"data-db-{number}"}}
        pod = make.pod(f"db-{number}", node_name=zone, owner="db", volumes=[data])
        pod["metadata"]["ownerReferences"][0]["kind"] = "StatefulSet"
        objects += [own, claim, pod]
    change = ClusterChange(cordon=("b",), delete=("pod/db-1",))
    [note] = volume_notes(what_if(snapshot(*objects, owner), change))
    assert note.startswith("Volume pv-1 of claim default/data-db-1 can be used only on b ")


def test_the_ephemeral_volume_of_a_deleted_pod_is_not_named(snapshot, make):
    """The replacement gets a claim of its own."""
    db = replicated(make, "db", "a", claim_of(0), {"ephemeral": {"volumeClaimTemplate": {}}})
    of_pod = volume(1, ZONE, "a")
    of_pod[0]["spec"]["claimRef"]["name"] = of_pod[1]["metadata"]["name"] = "db-0-v1"
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "db-0", "uid": "db-0", "controller": True}
    of_pod[1]["metadata"]["ownerReferences"] = [owner]
    db[1]["metadata"]["uid"] = "db-0"
    nodes = [make.node(name, **{ZONE: name}) for name in "ab"]
    cluster = snapshot(*nodes, *db, *volume(0, ZONE, "a"), *of_pod)
    answer = what_if(cluster, FAILED)
    [note] = volume_notes(answer)
    assert note.startswith("Volume pv-0 of claim default/data-0 ")
    # A pod of the snapshot would have kept the claim.
    pod = replace(answer.difference.pending[0], name="db-0", is_initial=True)
    effect = replace(answer.effect, difference=replace(answer.difference, pending=(pod,)))
    answer = replace(answer, effect=effect)
    context = StepContext(answer, cluster.manifests, lambda _: None, [], [], SchedulerConfig(), ())
    list(name_volumes(context))
    [note] = context.causes
    assert note.startswith("2 volumes (pv-0, pv-1) ")


@pytest.mark.parametrize(
    ("tolerations", "where"),
    [
        ([{"key": "dedicated", "operator": "Exists"}], "; its pod needs room there"),
        ([], ", which do not admit new pods of this kind; its pod needs such a node"),
    ],
)
def test_a_node_with_a_taint_admits_the_pods_that_tolerate_it(snapshot, make, tolerations, where):
    """a1 lacks room for the pod."""
    nodes = [make.node("a0", **{ZONE: "a"}), make.node("a1", cpu="1m", **{ZONE: "a"})]
    taint = {"key": "dedicated", "effect": "NoSchedule"}
    nodes[1]["spec"] = {"taints": [taint]}
    db = replicated(make, "db", "a0", claim_of(0), tolerations=tolerations)
    cluster = snapshot(*nodes, make.node("b", **{ZONE: "b"}), *db, *volume(0, ZONE, "a"))
    [note] = volume_notes(what_if(cluster, ClusterChange(cordon=("a0",), delete=("pod/db-0",))))
    assert note == (
        f"Volume pv-0 of claim default/data-0 can be used only on a0, a1 ({ZONE}=a){where} "
        f"{ELSEWHERE}"
    )


def test_the_step_counts_only_volumes_whose_nodes_have_failed(snapshot, make):
    """Volume pv-1 is on a cordoned node, and pv-2 can be used on another node, which is full."""
    nodes = [make.node(name, **{ZONE: name}) for name in "abc"]
    nodes.append(make.node("d", cpu="1m", **{ZONE: "d"}))
    volumes = [one for number, zone in enumerate("abc") for one in volume(number, ZONE, zone)]
    volumes[4]["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"][0]["matchExpressions"] = [
        {"key": ZONE, "operator": "In", "values": ["a", "d"]}
    ]
    pods = [replicated(make, f"db-{one}", node, claim_of(one)) for one, node in enumerate("aba")]
    cluster = snapshot(*nodes, *volumes, *(one for each in pods for one in each))
    change = ClusterChange(failures=FAILED.failures, cordon=("b",), delete=("pod/db-1-0",))
    answer = what_if(cluster, change)
    assert {note.split()[1] for note in volume_notes(answer)} == {"pv-0", "pv-1", "pv-2"}
    assert "the failed nodes, which 1 volume needs, come back" in longer_step(answer)


def test_all_pods_that_share_a_volume_are_counted(snapshot, make):
    nodes = [make.node(name, **{ZONE: name}) for name in "ab"]
    shared = volume(0, ZONE, "a")
    db = replicated(make, "db", "a", claim_of(0), count=3)
    [note] = volume_notes(what_if(snapshot(*nodes, *db, *shared), FAILED))
    assert note.startswith("Volume pv-0 ")
    assert note.endswith(f"; its 3 pods need such a node {ELSEWHERE}")


def test_a_place_without_nodes_is_named_once(snapshot, make):
    nodes = [make.node(name, **{ZONE: name}) for name in "ab"]
    db = replicated(make, "db", "a", claim_of(0))
    change = ClusterChange(delete=("node/a",))
    [note] = volume_notes(what_if(snapshot(*nodes, *db, *volume(0, ZONE, "a")), change))
    assert note == (
        f"Volume pv-0 of claim default/data-0 needs a node with {ZONE}=a, but no node has this; "
        "without one, its pod needs a volume elsewhere with a copy of the data."
    )


def test_the_volume_of_one_pending_pod_is_named_with_its_claim(cluster):
    answer = what_if(cluster(1), ClusterChange(cordon=("a0",), delete=("pod/db-0-x",)))
    assert answer.changed.notes[0] == (
        f"Volume pv-0 of claim default/data-0 can be used only on a0 ({ZONE}=a), which takes no "
        f"new pods; its pod needs such a node {ELSEWHERE}"
    )
    assert not any("--for" in one.code for one in answer.next_steps)


def test_only_the_first_places_of_many_local_volumes_are_named(cluster):
    answer = what_if(cluster(5, "kubernetes.io/hostname"), FAILED)
    named = [one for one in answer.changed.notes if one.startswith("Volume pv-")]
    assert len(named) == 3
    assert (
        "2 other volumes that pending pods need can be used only elsewhere." in answer.changed.notes
    )
