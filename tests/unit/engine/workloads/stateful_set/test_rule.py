"""StatefulSets: pods with stable names, rolling updates and revisions."""

from __future__ import annotations

import pytest

from fairlead.engine.core.command import CreateObject, DeleteObject
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.stimulus import FailureReason
from fairlead.engine.workloads.config import WorkloadsConfig
from fairlead.engine.workloads.controller import Workloads
from fairlead.engine.workloads.deletion.garbage_collector import GarbageCollector
from fairlead.engine.workloads.environment import served_environment
from fairlead.engine.workloads.identity import ordinal_of, template_hash

OWNER = ("StatefulSet", "db", "sts")


@pytest.fixture
def world(new_world):
    return new_world(Workloads(), GarbageCollector(), place=lambda pod: "n1", runs=True)


def stateful_set(build, replicas, **fields):
    return build.owned("StatefulSet", "db", replicas, uid="sts", **fields)


@pytest.mark.parametrize(
    ("owner", "name", "ordinal"),
    [
        ("db", "db-0", 0),
        ("db", "db-12", 12),
        ("db", "db-x", None),
        ("db", "db", None),
        ("db", "my-db-0", None),
        ("my-db", "my-db-3", 3),
        ("db", "db-", None),
    ],
)
def test_the_ordinals_of_pods(owner, name, ordinal):
    assert ordinal_of(owner, name) == ordinal


def test_missing_ordinals_are_created_with_their_labels(world, build):
    world.load(stateful_set(build, 3), build.pod("db-1", OWNER))
    assert set(world.pods()) == {"db-0", "db-1", "db-2"}
    pod = world.get("Pod", "db-2")
    labels = dict(pod["metadata"]["labels"])
    assert labels.pop("controller-revision-hash").startswith("db-")
    assert labels == {
        "app": "web",
        "statefulset.kubernetes.io/pod-name": "db-2",
        "apps.kubernetes.io/pod-index": "2",
    }
    assert pod["spec"]["hostname"] == "db-2"
    assert world.replaces() == {}


def test_a_deleted_pod_is_replaced_after_its_name_is_free(world, build):
    world.load(stateful_set(build, 2), build.pod("db-0", OWNER), build.pod("db-1", OWNER))
    world.delete("Pod", "db-0")
    assert set(world.pods()) == {"db-1"}
    world.delete("Pod", "db-0", grace=0)
    assert set(world.pods()) == {"db-0", "db-1"}
    assert world.replaces() == {"db-0": "db-0"}


def test_a_finished_pod_is_deleted_and_replaced(world, build):
    world.load(stateful_set(build, 1), build.pod("db-0", OWNER))
    before = world.pods()["db-0"]["metadata"]["uid"]
    world.patch_status("Pod", "db-0", {"phase": "Failed"})
    assert world.pods()["db-0"]["metadata"]["uid"] != before
    assert len(world.sent(DeleteObject)) == 1


def test_a_finished_pod_that_is_being_deleted_is_not_deleted_again(world, build):
    world.load(stateful_set(build, 1), build.pod("db-0", OWNER))
    world.delete("Pod", "db-0")
    world.patch_status("Pod", "db-0", {"phase": "Failed"})
    assert not world.sent(DeleteObject)
    world.delete("Pod", "db-0", grace=0)
    assert set(world.pods()) == {"db-0"}


def test_scaling_down_deletes_the_highest_ordinals(world, build):
    world.load(stateful_set(build, 3), *(build.pod(f"db-{place}", OWNER) for place in range(3)))
    world.patch("StatefulSet", "db", {"spec": {"replicas": 1}})
    assert set(world.pods()) == {"db-0", "db-1"}
    world.delete("Pod", "db-2", grace=0)
    assert set(world.pods()) == {"db-0"}
    world.delete("Pod", "db-1", grace=0)
    assert set(world.pods(alive=False)) == {"db-0"}


def test_pods_deleted_by_scaling_down_are_not_replaced(world, build):
    world.load(stateful_set(build, 2), build.pod("db-0", OWNER), build.pod("db-1", OWNER))
    world.patch("StatefulSet", "db", {"spec": {"replicas": 1}})
    world.delete("Pod", "db-1", grace=0)
    world.patch("StatefulSet", "db", {"spec": {"replicas": 2}})
    assert set(world.pods()) == {"db-0", "db-1"}
    assert world.replaces() == {}


def test_pods_with_other_names_are_ignored(world, build):
    world.load(stateful_set(build, 1), build.pod("db-canary", OWNER))
    assert set(world.pods()) == {"db-canary", "db-0"}


def test_a_pod_is_created_after_another_pod_has_freed_its_name(world, build):
    """Another pod has the name, so the creation is refused and repeated later."""
    world.load(build.pod("db-0"), stateful_set(build, 1))
    assert world.sent(CreateObject)
    world.delete("Pod", "db-0", grace=0)
    world.run(seconds(100))
    assert world.pods()["db-0"]["metadata"]["ownerReferences"][0]["uid"] == "sts"


def test_a_refused_pod_is_created_again_with_the_same_name(world, build):
    down = [True]
    world.refuse = lambda one: (
        FailureReason.INTERNAL_ERROR if down[0] and isinstance(one, CreateObject) else None
    )
    world.load(stateful_set(build, 1), build.pod("db-0", OWNER))
    world.delete("Pod", "db-0", grace=0)
    assert world.pods() == {}
    down[0] = False
    world.run(seconds(1))
    assert world.replaces() == {"db-0": "db-0"}


def test_pods_of_a_deleted_stateful_set_are_deleted(world, build):
    world.load(stateful_set(build, 2), build.pod("db-0", OWNER))
    world.delete("StatefulSet", "db")
    assert world.pods() == {}


# --- one after the other ------------------------------------------------------------


@pytest.fixture
def seen(new_world):
    """A world that writes status and revisions as for clients; pods do not start by themselves."""
    controller = Workloads(environment=served_environment())
    return new_world(controller, place=lambda pod: "n1").load()


def images(world):
    return {
        name: pod["spec"]["containers"][0]["image"] for name, pod in sorted(world.pods().items())
    }


def status(world):
    return world.get("StatefulSet", "db")["status"]


def test_a_new_process_keeps_the_revisions_of_a_stateful_set_that_is_being_deleted(
    new_world, build
):
    """The garbage collector may already have deleted its ControllerRevisions."""
    controller = Workloads(environment=served_environment())
    ending = stateful_set(build, 1)
    ending["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    ending["status"] = {"currentRevision": "db-1", "updateRevision": "db-1", "replicas": 1}
    world = new_world(controller).load(ending)
    assert status(world)["currentRevision"] == "db-1"
    assert status(world)["updateRevision"] == "db-1"


def finish_deletion(world):
    """Remove every terminating pod, and start its successor."""
    world.runs = True
    for name in [one for one in world.pods(alive=False) if one not in world.pods()]:
        world.delete("Pod", name, grace=0)


def test_a_pod_is_created_after_the_previous_pod_is_ready(seen, build):
    seen.create(stateful_set(build, 3))
    assert set(seen.pods()) == {"db-0"}
    seen.start("db-0")
    seen.settle()
    assert set(seen.pods()) == {"db-0", "db-1"}
    assert (status(seen)["replicas"], status(seen)["readyReplicas"]) == (2, 1)


def test_parallel_pod_management_creates_all_pods_at_once(seen, build):
    seen.create(stateful_set(build, 3, podManagementPolicy="Parallel"))
    assert set(seen.pods()) == {"db-0", "db-1", "db-2"}


def test_a_pod_is_created_after_the_previous_pod_is_available(seen, build):
    seen.create(stateful_set(build, 2, minReadySeconds=10))
    seen.start("db-0")
    seen.settle()
    assert set(seen.pods()) == {"db-0"}
    seen.run(seconds(10))
    assert set(seen.pods()) == {"db-0", "db-1"}


def test_a_terminating_pod_of_a_stopped_node_delays_higher_ordinals(world, build):
    """The pod stays terminating because its kubelet is down; higher ordinals wait, too."""
    world.load(stateful_set(build, 3), *(build.pod(f"db-{one}", OWNER) for one in range(3)))
    world.delete("Pod", "db-0")
    world.delete("Pod", "db-2", grace=0)
    world.run(seconds(3600))
    assert set(world.pods()) == {"db-1"}
    world.delete("Pod", "db-0", grace=0)
    assert set(world.pods()) == {"db-0", "db-1", "db-2"}


def test_a_running_pod_without_conditions_counts_as_ready(world, build):
    """A reduced dump may have pods without conditions."""
    pods = [build.pod(f"db-{one}", OWNER) for one in range(2)]
    for one in pods:
        one["status"] = {"phase": "Running"}
    world.load(stateful_set(build, 2), *pods)
    world.delete("Pod", "db-1", grace=0)
    assert set(world.pods()) == {"db-0", "db-1"}


def test_the_first_ordinal_can_be_configured(world, build):
    world.load(stateful_set(build, 2, ordinals={"start": 5}))
    assert set(world.pods()) == {"db-5", "db-6"}


def test_an_update_starts_with_the_highest_ordinal(seen, build):
    seen.runs = True
    seen.create(stateful_set(build, 3))
    first = status(seen)["currentRevision"]
    seen.runs = False
    seen.patch("StatefulSet", "db", {"spec": {"template": build.template("web:2")}})
    assert set(seen.pods()) == {"db-0", "db-1"}
    assert status(seen)["currentRevision"] == first != status(seen)["updateRevision"]
    finish_deletion(seen)
    assert images(seen) == {"db-0": "web:1", "db-2": "web:2"}
    finish_deletion(seen)
    finish_deletion(seen)
    assert set(images(seen).values()) == {"web:2"}
    found = status(seen)
    assert found["currentRevision"] == found["updateRevision"] != first
    assert found["updatedReplicas"] == found["currentReplicas"] == 3
    labels = {pod["metadata"]["labels"]["controller-revision-hash"] for pod in seen.pods().values()}
    assert labels == {found["updateRevision"]}


def test_an_update_waits_for_a_pod_that_is_not_ready(seen, build):
    seen.runs = True
    seen.create(stateful_set(build, 2))
    seen.patch("StatefulSet", "db", {"spec": {"template": build.template("web:2")}})
    seen.runs = False
    seen.delete("Pod", "db-1", grace=0)
    assert images(seen) == {"db-0": "web:1", "db-1": "web:2"}
    seen.run(seconds(3600))
    assert images(seen) == {"db-0": "web:1", "db-1": "web:2"}


def test_pods_below_the_partition_are_not_updated(seen, build):
    """A lost pod below the partition is recreated with the old revision."""
    seen.runs = True
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}
    seen.create(stateful_set(build, 2, updateStrategy=rolling))
    seen.patch("StatefulSet", "db", {"spec": {"template": build.template("web:2")}})
    finish_deletion(seen)
    seen.delete("Pod", "db-0", grace=0)
    assert images(seen) == {"db-0": "web:1", "db-1": "web:2"}
    assert status(seen)["currentRevision"] != status(seen)["updateRevision"]


def test_the_partition_counts_replicas_from_the_first_ordinal(seen, build):
    seen.runs = True
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}
    seen.create(stateful_set(build, 2, updateStrategy=rolling, ordinals={"start": 5}))
    seen.patch("StatefulSet", "db", {"spec": {"template": build.template("web:2")}})
    finish_deletion(seen)
    assert images(seen) == {"db-5": "web:1", "db-6": "web:2"}


def test_on_delete_does_not_delete_outdated_pods(seen, build):
    seen.runs = True
    seen.create(stateful_set(build, 2, updateStrategy={"type": "OnDelete"}))
    seen.patch("StatefulSet", "db", {"spec": {"template": build.template("web:2")}})
    seen.delete("Pod", "db-0", grace=0)
    assert images(seen) == {"db-0": "web:2", "db-1": "web:1"}


def test_an_update_waits_until_surplus_pods_are_deleted(seen, build):
    """In upstream, scaling precedes updates."""
    seen.runs = True
    seen.create(stateful_set(build, 3))
    spec = {"replicas": 2, "template": build.template("web:2")}
    seen.patch("StatefulSet", "db", {"spec": spec})
    assert images(seen) == {"db-0": "web:1", "db-1": "web:1"}
    seen.delete("Pod", "db-2", grace=0)
    assert images(seen) == {"db-0": "web:1"}


def test_in_parallel_an_update_does_not_wait_for_surplus_pods(seen, build):
    seen.runs = True
    seen.create(stateful_set(build, 3, podManagementPolicy="Parallel"))
    spec = {"replicas": 2, "template": build.template("web:2")}
    seen.patch("StatefulSet", "db", {"spec": spec})
    assert images(seen) == {"db-0": "web:1"}


def test_the_update_revision_is_current_when_all_pods_are_ready(seen, build):
    """They need not be available."""
    seen.runs = True
    seen.create(stateful_set(build, 1, minReadySeconds=60))
    seen.run(seconds(60))
    seen.patch("StatefulSet", "db", {"spec": {"template": build.template("web:2")}})
    finish_deletion(seen)
    found = status(seen)
    assert found["availableReplicas"] == 0
    assert found["currentRevision"] == found["updateRevision"]


@pytest.mark.parametrize(
    ("is_on", "kept"), [(True, {"db-0", "db-1"}), (False, {"db-0", "db-1", "db-2"})]
)
def test_with_the_feature_gate_max_unavailable_pods_are_replaced_at_a_time(
    new_world, build, is_on, kept
):
    config = WorkloadsConfig(max_unavailable_stateful_set=is_on)
    controller = Workloads(config, served_environment())
    world = new_world(controller, place=lambda pod: "n1", runs=True).load()
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}}
    world.create(stateful_set(build, 4, updateStrategy=rolling))
    world.patch("StatefulSet", "db", {"spec": {"template": build.template("web:2")}})
    assert set(world.pods()) == kept


def test_revisions_are_kept_for_a_rollback(seen, build):
    seen.runs = True
    seen.create(stateful_set(build, 1, revisionHistoryLimit=1))
    for number in (2, 3, 1):
        seen.patch("StatefulSet", "db", {"spec": {"template": build.template(f"web:{number}")}})
        finish_deletion(seen)
    kept = {
        one["data"]["spec"]["template"]["spec"]["containers"][0]["image"]: one["revision"]
        for key, one in seen.objects.items()
        if key[0] == "ControllerRevision"
    }
    assert kept == {"web:3": 3, "web:1": 4}
    (newest,) = [
        one
        for key, one in seen.objects.items()
        if key[0] == "ControllerRevision" and one["revision"] == 4
    ]
    assert newest["metadata"]["name"] == status(seen)["updateRevision"]
    assert newest["metadata"]["ownerReferences"][0]["uid"] == "sts"
    assert newest["data"]["spec"]["template"]["$patch"] == "replace"


def test_a_loaded_revision_is_not_rolled_out_again(world, build):
    """Another cluster computed the revision's name, and the snapshot has no ControllerRevision."""
    label = {"controller-revision-hash": "db-abc", "app": "web"}
    one = stateful_set(build, 1) | {"status": {"updateRevision": "db-abc"}}
    world.load(one, build.pod("db-0", OWNER, labels=label))
    assert world.log == []
    world.delete("Pod", "db-0", grace=0)
    labels = world.pods()["db-0"]["metadata"]["labels"]
    assert labels["controller-revision-hash"] == "db-abc"


@pytest.mark.parametrize(
    "data",
    [
        {"spec": "x"},
        {"spec": {"template": [1]}},
        {"spec": {"template": {"metadata": 5}}},
        {"spec": {"template": {"spec": {"volumes": [5]}}}},
    ],
    ids=["spec", "template", "metadata", "volumes"],
)
def test_a_malformed_template_of_a_revision_is_empty(world, build, data):
    """The API accepts any data in a ControllerRevision, and refuses the pod without containers."""
    partition = {"type": "RollingUpdate", "rollingUpdate": {"partition": 5}}
    one = stateful_set(build, 1, updateStrategy=partition)
    reference = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "sts"}
    revision = {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": "db-abc",
            "namespace": "ns",
            "labels": {"app": "web"},
            "ownerReferences": [{**reference, "controller": True}],
        },
        "data": data,
        "revision": 1,
    }
    world.load(one | {"status": {"currentRevision": "db-abc"}}, revision)
    (pod,) = world.pods().values()
    assert "containers" not in pod["spec"]


def test_a_new_process_continues_to_count_collisions(seen, build):
    """Another template gets the name that it would have got without the restart."""
    seen.load(stateful_set(build, 1) | {"status": {"collisionCount": 1}})
    assert status(seen)["collisionCount"] == 1
    assert status(seen)["updateRevision"] == f"db-{template_hash(build.template(), 1)}"


def test_a_revision_without_an_object_is_derived_from_pods(world, build):
    label = {"controller-revision-hash": "db-abc", "app": "web"}
    world.load(stateful_set(build, 1), build.pod("db-0", OWNER, labels=label))
    assert world.log == []


def test_creations_and_deletions_are_recorded_with_upstreams_messages(seen, build):
    seen.runs = True
    seen.create(stateful_set(build, 1))
    seen.patch("StatefulSet", "db", {"spec": {"replicas": 0}})
    assert [(event.reason, event.note) for event in seen.events] == [
        ("SuccessfulCreate", "Create Pod db-0 in StatefulSet db successful"),
        ("SuccessfulDelete", "Delete Pod db-0 in StatefulSet db successful"),
    ]


# --- claims -----------------------------------------------------------------------------------

TEMPLATE = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}


def created(world):
    return [command.target.name for command in world.sent(CreateObject) if is_own(command)]


def is_own(command):
    return command.target.kind in ("Pod", "PersistentVolumeClaim")


def claim(name, **meta):
    meta = {"name": name, "namespace": "ns", **meta}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": {}}


def test_missing_claims_are_created_before_their_pod(seen, build):
    """A claim that exists is used as it is."""
    seen.create(claim("data-db-1"))
    templates = [TEMPLATE, {**TEMPLATE, "metadata": {"name": "log"}}]
    seen.create(
        stateful_set(build, 2, volumeClaimTemplates=templates, podManagementPolicy="Parallel")
    )
    assert created(seen) == ["data-db-0", "log-db-0", "db-0", "log-db-1", "db-1"]
    assert [event.note for event in seen.events][:3] == [
        "Create Claim data-db-0 Pod db-0 in StatefulSet db success",
        "Create Claim log-db-0 Pod db-0 in StatefulSet db success",
        "Create Pod db-0 in StatefulSet db successful",
    ]


def test_the_last_of_several_claim_templates_with_one_name_counts(seen, build):
    """Two volumes of one name would make the pod invalid."""
    last = {**TEMPLATE, "spec": {"accessModes": ["ReadWriteMany"]}}
    seen.create(stateful_set(build, 1, volumeClaimTemplates=[TEMPLATE, last]))
    assert created(seen) == ["data-db-0", "db-0"]
    [made] = [one for one in seen.sent(CreateObject) if one.target.name == "data-db-0"]
    assert made.manifest["spec"]["accessModes"] == ["ReadWriteMany"]
    assert [one["name"] for one in seen.pods()["db-0"]["spec"]["volumes"]] == ["data"]


def test_a_pod_is_created_only_after_a_refused_claim(seen, build):
    """The refusal does not depend on the pod, for example because of a ResourceQuota."""
    seen.refuse = lambda command: (
        FailureReason.FORBIDDEN
        if isinstance(command, CreateObject) and command.target.kind == "PersistentVolumeClaim"
        else None
    )
    seen.create(stateful_set(build, 1, volumeClaimTemplates=[TEMPLATE]))
    assert seen.pods() == {}
    failed = "in StatefulSet db failed error:"
    assert {(event.type, event.reason) for event in seen.events} == {("Warning", "FailedCreate")}
    assert [event.note for event in seen.events] == [
        f"Create Claim data-db-0 for Pod db-0 {failed} refused by the test",
        f"Create Pod db-0 {failed} failed to create PVC data-db-0: refused by the test",
    ]
    seen.refuse = lambda command: None
    seen.run(seconds(5))
    assert set(seen.pods()) == {"db-0"}


def test_claims_of_the_snapshot_are_not_created_again(world, build):
    """Otherwise, the API server would refuse the claim, and the pod would be created later."""
    world.load(stateful_set(build, 1, volumeClaimTemplates=[TEMPLATE]), claim("data-db-0"))
    assert created(world) == ["db-0"]


def test_the_event_about_a_pod_names_all_claims_that_it_cannot_use(seen, build):
    """There is no event about the creation of a claim that exists, as in upstream."""
    seen.refuse = lambda command: (
        FailureReason.ALREADY_EXISTS
        if isinstance(command, CreateObject) and command.target.kind == "PersistentVolumeClaim"
        else None
    )
    templates = [TEMPLATE, {**TEMPLATE, "metadata": {"name": "log"}}]
    seen.create(stateful_set(build, 1, volumeClaimTemplates=templates))
    refused = [f"failed to create PVC {one}-db-0: refused by the test" for one in ("data", "log")]
    assert [event.note for event in seen.events] == [
        f"Create Pod db-0 in StatefulSet db failed error: [{', '.join(refused)}]"
    ]


def test_a_pod_whose_name_is_taken_waits_without_an_event(seen, build):
    seen.refuse = lambda command: (
        FailureReason.ALREADY_EXISTS
        if isinstance(command, CreateObject) and command.target.kind == "Pod"
        else None
    )
    seen.create(stateful_set(build, 1))
    assert seen.events == []
    seen.refuse = lambda command: None
    seen.run(seconds(5))
    notes = [event.note for event in seen.events]
    assert notes == ["Create Pod db-0 in StatefulSet db successful"]


def test_a_pod_waits_while_its_claim_is_being_deleted(seen, build):
    """A new pod would keep the claim, because claims in use are protected."""
    seen.create(claim("data-db-0", finalizers=["kubernetes.io/pvc-protection"]))
    seen.delete("PersistentVolumeClaim", "data-db-0")
    seen.create(stateful_set(build, 1, volumeClaimTemplates=[TEMPLATE]))
    assert [event.note for event in seen.events] == [
        "Create Pod db-0 in StatefulSet db failed error: pvc data-db-0 is being deleted"
    ]
    seen.patch("PersistentVolumeClaim", "data-db-0", {"metadata": {"finalizers": None}})
    seen.run(seconds(5))
    assert created(seen) == ["data-db-0", "db-0"]


def test_two_stateful_sets_wait_for_the_claim_that_both_need(world, build):
    """The claim is created once; data-a + b-0 and data + a-b-0 give the same name."""
    data_a = {**TEMPLATE, "metadata": {"name": "data-a"}}
    world.load(
        build.owned("StatefulSet", "b", 1, uid="b", volumeClaimTemplates=[data_a]),
        build.owned("StatefulSet", "a-b", 1, uid="a-b", volumeClaimTemplates=[TEMPLATE]),
    )
    assert created(world) == ["data-a-b-0", "b-0", "a-b-0"]
