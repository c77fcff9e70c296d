"""What-ifs that delete PersistentVolumeClaims state whether the data is deleted."""

from __future__ import annotations

import pytest

from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.outcome.assessment.fail_on import check, parse_fail_on
from fairlead.whatif.outcome.assessment.verdict import OutcomeKind
from fairlead.whatif.question import what_if
from fairlead.whatif.result.result_json import whatif_result

OWNER = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "db-1"}
CLASS = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "ssd"},
    "provisioner": "csi.example.com",
}
SPEC = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


def volume(name, claim, policy):
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "1Gi"},
            "claimRef": {"namespace": "default", "name": claim, "uid": f"u-{claim}"},
            "persistentVolumeReclaimPolicy": policy,
            "storageClassName": "ssd",
            "csi": {"driver": "csi.example.com", "volumeHandle": name},
        },
        "status": {"phase": "Bound"},
    }


def claim(name, volume_name, owners=()):
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"u-{name}",
            "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
            "finalizers": ["kubernetes.io/pvc-protection"],
            "ownerReferences": list(owners),
        },
        "spec": {**SPEC, "storageClassName": "ssd", "volumeName": volume_name},
        "status": {"phase": "Bound"},
    }


@pytest.fixture
def database(make):
    """Makes a StatefulSet of two pods with claims, whose volumes have a reclaim policy.

    Claims are deleted after a scale-down, and with the StatefulSet.
    """

    def objects(policy="Delete", *, has_volumes=True, has_class=True):
        stateful_set = make.workload("StatefulSet", "db", replicas=2)
        stateful_set["metadata"]["uid"] = "db-1"
        stateful_set["spec"] |= {
            "volumeClaimTemplates": [
                {"metadata": {"name": "data"}, "spec": {**SPEC, "storageClassName": "ssd"}}
            ],
            "persistentVolumeClaimRetentionPolicy": {
                "whenDeleted": "Delete",
                "whenScaled": "Delete",
            },
        }
        found = [make.node("a"), stateful_set, *([CLASS] if has_class else [])]
        for number in range(2):
            pod, name = make.pod(f"db-{number}", node_name="a"), f"data-db-{number}"
            pod["metadata"] |= {
                "labels": {"app": "db"},
                "ownerReferences": [{**OWNER, "controller": True}],
            }
            source = {"persistentVolumeClaim": {"claimName": name}}
            pod["spec"]["volumes"] = [{"name": "data", **source}]
            found += [pod, claim(name, f"v-{number}", [{**OWNER, "controller": True}])]
            found += [volume(f"v-{number}", name, policy)] if has_volumes else []
        return found

    return objects


def deleted(answer):
    return [(one["claim"], one["volume"], one["reclaim_policy"])
            for one in whatif_result(answer)["deleted_claims"]]  # fmt: skip


def said(answer, kind):
    return [one.sentence for one in answer.verdict.findings if one.kind is kind]


def test_a_scale_down_deletes_data_if_the_retention_policy_says_so(database, snapshot):
    answer = what_if(snapshot(*database()), ClusterChange(scale=("sts/db=1",)))
    assert deleted(answer) == [("default/data-db-1", "v-1", "Delete")]
    assert answer.verdict.first.kind is OutcomeKind.DATA_DELETED
    assert answer.verdict.first.sentence == (
        "1 PersistentVolumeClaim is deleted, and so is its volume with all data: default/data-db-1."
    )
    assert check(parse_fail_on("data-deleted"), answer.effect).evidence == ("default/data-db-1",)
    commands = [one.command for one in answer.next_steps if one.command]
    assert [one.split(" -p ")[0] for one in commands] == ["kubectl patch pv v-1"]


def test_a_deleted_stateful_set_deletes_the_claims_that_it_owns(database, snapshot):
    answer = what_if(snapshot(*database()), ClusterChange(delete=("sts/db",)))
    assert sorted(deleted(answer)) == [
        ("default/data-db-0", "v-0", "Delete"),
        ("default/data-db-1", "v-1", "Delete"),
    ]
    [sentence] = said(answer, OutcomeKind.DATA_DELETED)
    assert sentence.startswith("2 PersistentVolumeClaims are deleted, and so are their volumes")


def test_retained_volumes_keep_their_data(database, snapshot):
    answer = what_if(snapshot(*database("Retain")), ClusterChange(scale=("sts/db=1",)))
    assert deleted(answer) == [("default/data-db-1", "v-1", "Retain")]
    assert not said(answer, OutcomeKind.DATA_DELETED)
    assert said(answer, OutcomeKind.CLAIMS_DELETED) == [
        "1 PersistentVolumeClaim is deleted, and no volume: default/data-db-1."
    ]
    assert not check(parse_fail_on("data-deleted"), answer.effect).holds


@pytest.mark.parametrize(("has_class", "policy"), [(True, "Delete"), (False, None)])
def test_the_class_states_the_reclaim_policy_of_a_volume_that_the_dump_lacks(
    database, snapshot, has_class, policy
):
    objects = database(has_volumes=False, has_class=has_class)
    answer = what_if(snapshot(*objects), ClusterChange(scale=("sts/db=1",)))
    assert deleted(answer) == [("default/data-db-1", "v-1", policy)]
    [sentence] = said(answer, OutcomeKind.DATA_DELETED)
    assert ("perhaps" in sentence) == (policy is None)


def test_an_unused_claim_is_a_difference_although_no_pod_changes(make, snapshot):
    unused = claim("old", "v")
    objects = [make.node("a"), make.pod("p", node_name="a"), CLASS, unused]
    answer = what_if(
        snapshot(*objects, volume("v", "old", "Delete")), ClusterChange(delete=("pvc/old",))
    )
    assert deleted(answer) == [("default/old", "v", "Delete")]
    assert not answer.effect.is_none
    assert [one.kind for one in answer.verdict.findings] == [OutcomeKind.DATA_DELETED]


@pytest.mark.parametrize(
    ("policy", "kind", "effect"),
    [
        ("Delete", OutcomeKind.DATA_DELETED, "and so is its volume with all data"),
        ("Retain", OutcomeKind.CLAIMS_DELETED, "and no volume"),
    ],
)
def test_the_deletion_of_a_claim_that_a_pod_uses_is_only_delayed(
    database, snapshot, policy, kind, effect
):
    """Nothing removes a deletionTimestamp, so the data is lost with the next eviction."""
    answer = what_if(snapshot(*database(policy)), ClusterChange(delete=("pvc/data-db-0",)))
    assert deleted(answer) == [("default/data-db-0", "v-0", policy)]
    assert [one["in_use"] for one in whatif_result(answer)["deleted_claims"]] == [True]
    assert not answer.effect.is_none
    assert answer.verdict.first.kind is kind
    assert answer.verdict.first.sentence == (
        "1 PersistentVolumeClaim is deleted as soon as its pods are gone, which nothing can undo, "
        f"{effect}: default/data-db-0."
    )
    is_lost = kind is OutcomeKind.DATA_DELETED
    assert check(parse_fail_on("data-deleted"), answer.effect).holds is is_lost
    commands = [one.command for one in answer.next_steps if one.command]
    assert [one.split(" -p ")[0] for one in commands] == ["kubectl patch pv v-0"] * is_lost


def test_a_claim_that_is_deleted_with_its_pod_is_listed_once(database, snapshot):
    change = ClusterChange(delete=("pvc/data-db-0", "sts/db", "pod/db-0"))
    found = whatif_result(what_if(snapshot(*database()), change))["deleted_claims"]
    assert sorted((one["claim"], one["in_use"]) for one in found) == [
        ("default/data-db-0", False),
        ("default/data-db-1", False),
    ]


def test_a_claim_that_was_already_being_deleted_is_no_effect(database, snapshot):
    objects = database()
    [terminating] = [one for one in objects if one["metadata"]["name"] == "data-db-0"]
    terminating["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    answer = what_if(snapshot(*objects), ClusterChange(delete=("pvc/data-db-0",), cordon=("a",)))
    assert deleted(answer) == []


def test_claims_of_ephemeral_volumes_are_not_listed(make, snapshot):
    pod = make.pod("p", node_name="a")
    pod["metadata"]["uid"] = "p-1"
    pod["spec"]["volumes"] = [
        {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": SPEC}}}
    ]
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "p-1", "controller": True}
    objects = [make.node("a"), pod, CLASS, claim("p-scratch", "v", [owner])]
    answer = what_if(
        snapshot(*objects, volume("v", "p-scratch", "Delete")), ClusterChange(delete=("pod/p",))
    )
    assert [one.key for one in answer.difference.removed] == ["default/p"]
    assert deleted(answer) == []


def test_a_moved_pod_of_a_stateful_set_gets_a_new_ephemeral_claim(make, snapshot):
    # The new pod's claim has the name of the old one, which pvc-protection still keeps.
    ephemeral = {
        "name": "scratch",
        "ephemeral": {"volumeClaimTemplate": {"spec": {**SPEC, "storageClassName": "ssd"}}},
    }
    stateful_set = make.workload("StatefulSet", "db")
    stateful_set["metadata"]["uid"] = "db-1"
    stateful_set["spec"]["template"]["spec"]["volumes"] = [ephemeral]
    pod = make.pod("db-0", node_name="a")
    pod["metadata"] |= {
        "uid": "p-1",
        "labels": {"app": "db"},
        "ownerReferences": [{**OWNER, "controller": True}],
    }
    pod["spec"]["volumes"] = [ephemeral]
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "db-0", "uid": "p-1", "controller": True}
    answer = what_if(
        snapshot(
            make.node("a"),
            make.node("b"),
            stateful_set,
            pod,
            CLASS,
            claim("db-0-scratch", "v", [owner]),
            volume("v", "db-0-scratch", "Delete"),
        ),
        ClusterChange(drain=("a",)),
    )
    assert [(one.pod.key, one.target) for one in answer.difference.moved] == [("default/db-0", "b")]
    assert deleted(answer) == []
