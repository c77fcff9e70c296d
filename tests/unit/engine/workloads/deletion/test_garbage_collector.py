"""GarbageCollector: dependents are deleted after or before their owner, or orphaned."""

from __future__ import annotations

import pytest

from fairlead.api.codec import decode
from fairlead.engine.core.command import DeleteObject, LookUpOwners, PatchObject, PatchStatus
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.stimulus import FailureReason, ObjectDeleted, ObjectsLoaded
from fairlead.engine.workloads.controller import Workloads
from fairlead.engine.workloads.deletion.garbage_collector import GONE_MAX, GarbageCollector
from fairlead.engine.workloads.environment import served_environment

OWNER = ("ReplicaSet", "web", "rs")


@pytest.fixture
def world(new_world):
    return new_world(GarbageCollector())


def thing(name, *owners, kind="ConfigMap", finalizers=(), deleted=False):
    """Return an object; `owners` are uids, and a `!` before a uid means blockOwnerDeletion."""
    references = [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "name": f"name-of-{uid.removeprefix('!')}",
            "uid": uid.removeprefix("!"),
            **({"blockOwnerDeletion": True} if uid.startswith("!") else {}),
        }
        for uid in owners
    ]
    meta = {"name": name, "namespace": "ns", "uid": f"uid-of-{name}"}
    if references:
        meta["ownerReferences"] = references
    if finalizers:
        meta["finalizers"] = list(finalizers)
    if deleted:
        meta["deletionTimestamp"] = "2027-01-01T00:00:00Z"
    return {"apiVersion": "v1", "kind": kind, "metadata": meta}


def names(world):
    return sorted(key[2] for key in world.objects)


def end(world, name, finalizer, kind="ConfigMap"):
    """Mark an object as deleted with this finalizer, as the API server does."""
    meta = {"deletionTimestamp": "2027-01-01T00:00:00Z", "finalizers": [finalizer]}
    world.patch(kind, name, {"metadata": meta})


def test_dependents_are_deleted_after_their_owner(world):
    """Then the dependents of the dependents, for all kinds."""
    last = thing("c", "uid-of-b")
    last["metadata"]["ownerReferences"][0]["kind"] = "Widget"
    world.load(thing("a"), thing("b", "uid-of-a", kind="Widget"), last, thing("d", "uid-of-x"))
    world.delete("ConfigMap", "a")
    assert names(world) == ["d"]


def test_owners_without_a_uid_are_told_apart_by_group_and_kind(world):
    """Three kinds have the same name; hand-written objects have no uids."""
    groups = ["", "a.example.com/", "b.example.com/"]
    owners = [{**thing("x", kind="Deployment"), "apiVersion": f"{group}v1"} for group in groups]
    owners[0]["apiVersion"] = "apps/v1"
    dependents = [thing(name) for name in ("of-apps", "of-a", "of-b")]
    for number, owner in enumerate(owners):
        owner["metadata"]["uid"] = f"u{number}"
        reference = {"apiVersion": owner["apiVersion"], "kind": "Deployment", "name": "x"}
        dependents[number]["metadata"]["ownerReferences"] = [reference]
    collector = world.controllers[0]
    views = [decode(one) for one in (*owners, *dependents)]
    collector.handle(ObjectsLoaded(views), 0)
    deleted = [collector.handle(ObjectDeleted(view), 0) for view in views[:3]]
    assert [[one.target.name for one in some] for some in deleted] == [
        ["of-apps"],
        ["of-a"],
        ["of-b"],
    ]


@pytest.mark.parametrize("policy", ["Background", "Foreground"])
def test_an_object_of_another_kind_with_the_uid_of_the_owner_is_not_the_owner(world, policy):
    """In hand-written dumps, objects of several kinds may have the same uid.

    If such a deletion counted, a Deployment would create its ReplicaSet again and again.
    """
    budget = thing("web", kind="PodDisruptionBudget")
    budget["metadata"]["uid"] = "uid-of-a"
    if policy == "Foreground":
        budget["metadata"]["finalizers"] = ["foregroundDeletion"]
    world.load(budget, thing("a"), thing("b", "!uid-of-a"))
    if policy == "Foreground":
        end(world, "web", "foregroundDeletion", kind="PodDisruptionBudget")
    else:
        world.delete("PodDisruptionBudget", "web")
    world.create(thing("late", "uid-of-a"))
    assert {"b", "late"} <= set(names(world))


def test_an_owner_that_was_never_observed_does_not_count_as_deleted(world):
    world.load(thing("a", "uid-of-nobody"))
    assert world.log == []


def test_a_dependent_with_another_owner_loses_only_the_reference(world):
    world.load(thing("a"), thing("b"), thing("c", "uid-of-a", "uid-of-b"))
    world.delete("ConfigMap", "a")
    (left,) = world.get("ConfigMap", "c")["metadata"]["ownerReferences"]
    assert left["uid"] == "uid-of-b"
    world.delete("ConfigMap", "b")
    assert names(world) == []


def test_a_dependent_of_a_deleted_owner_is_deleted_at_once(world):
    world.load(thing("a"))
    world.delete("ConfigMap", "a")
    world.create(thing("late", "uid-of-a"))
    assert names(world) == []


def test_foreground_deletion_deletes_dependents_first(world, build):
    """The owner is deleted after the termination of the pod."""
    pod = build.pod("p", ("ConfigMap", "a", "uid-of-a"))
    pod["metadata"]["ownerReferences"][0]["blockOwnerDeletion"] = True
    world.load(thing("a"), pod, thing("loose", "uid-of-a"))
    end(world, "a", "foregroundDeletion")
    assert names(world) == ["a", "p"]
    assert "finalizers" in world.get("ConfigMap", "a")["metadata"]
    world.delete("Pod", "p", grace=0)
    assert "finalizers" not in world.get("ConfigMap", "a")["metadata"]


def test_foreground_deletion_includes_dependents_of_dependents(world):
    """A dependent with dependents of its own is deleted the same way."""
    world.load(thing("a"), thing("b", "!uid-of-a"), thing("c", "!uid-of-b"))
    end(world, "a", "foregroundDeletion")
    deletion = world.sent(DeleteObject)[0]
    assert (deletion.target.name, deletion.policy) == ("b", "Foreground")


@pytest.mark.parametrize(
    ("has_own", "policy"), [(True, "Foreground"), (False, "Orphan")], ids=["with", "without"]
)
def test_a_blocking_dependent_with_a_finalizer_is_deleted_in_the_foreground(world, has_own, policy):
    """This holds if the dependent has dependents of its own."""
    own = [thing("c", "!uid-of-b")] if has_own else []
    world.load(thing("a"), thing("b", "!uid-of-a", finalizers=["orphan"]), *own)
    end(world, "a", "foregroundDeletion")
    deletion = world.sent(DeleteObject)[0]
    assert (deletion.target.name, deletion.policy) == ("b", policy)


def test_foreground_deletion_without_dependents_does_not_wait(world):
    world.load(thing("a", finalizers=["foregroundDeletion"], deleted=True))
    assert "finalizers" not in world.get("ConfigMap", "a")["metadata"]


def test_orphaned_dependents_lose_the_reference_and_are_kept(world):
    world.load(thing("a"), thing("b", "uid-of-a"))
    end(world, "a", "orphan")
    assert "finalizers" not in world.get("ConfigMap", "a")["metadata"]
    assert "ownerReferences" not in world.get("ConfigMap", "b")["metadata"]
    world.delete("ConfigMap", "a")
    assert names(world) == ["b"]


def test_a_refused_removal_of_an_orphans_owner_reference_is_repeated(new_world):
    refused = []

    def once(command):
        if isinstance(command, PatchObject) and command.target.name == "b" and not refused:
            return refused.append(command) or FailureReason.INTERNAL_ERROR
        return None

    world = new_world(GarbageCollector(), refuse=once)
    world.load(thing("a"), thing("b", "uid-of-a"))
    end(world, "a", "orphan")
    world.delete("ConfigMap", "a")
    world.run(seconds(1))
    assert names(world) == ["b"]
    assert "ownerReferences" not in world.get("ConfigMap", "b")["metadata"]
    assert len(refused) == 1


def test_a_refused_deletion_is_repeated_with_backoff(new_world):
    tries = []

    def refuse(command):
        if command.target.name == "b":
            return tries.append(command) or FailureReason.TOO_MANY_REQUESTS
        return None

    world = new_world(GarbageCollector(), refuse=refuse)
    world.load(thing("a"), thing("b", "uid-of-a"))
    world.delete("ConfigMap", "a")
    world.run(seconds(1))
    assert 4 < len(tries) < 12
    world.refuse = lambda _: None
    world.run(seconds(2))
    assert names(world) == []


def test_other_finalizers_are_not_removed(world):
    world.load(thing("a"))
    world.patch("ConfigMap", "a", {"metadata": {"finalizers": ["example.com/mine"]}})
    end(world, "a", "example.com/mine")
    assert world.get("ConfigMap", "a")["metadata"]["finalizers"] == ["example.com/mine"]
    assert world.log == []


def test_pods_of_a_replica_set_that_is_orphaning_are_neither_deleted_nor_replaced(new_world, build):
    world = new_world(Workloads(), GarbageCollector())
    owner = build.owned("ReplicaSet", "web", 1, uid="rs")
    world.load(owner, build.pod("web-a", ("ReplicaSet", "web", "rs")))
    end(world, "web", "orphan", kind="ReplicaSet")
    world.delete("ReplicaSet", "web")
    assert set(world.pods()) == {"web-a"}


def test_a_dependent_is_deleted_once(world):
    world.load(thing("a"), thing("b", "uid-of-a", finalizers=["example.com/mine"]))
    world.delete("ConfigMap", "a")
    world.patch("ConfigMap", "b", {"metadata": {"labels": {"x": "y"}}})
    assert len(world.sent(DeleteObject)) == 1


def test_a_dependent_created_during_foreground_deletion_is_deleted(new_world):
    world = new_world(GarbageCollector(), refuse=lambda command: _refused_for(command, "b"))
    world.load(thing("a"), thing("b", "!uid-of-a"))
    end(world, "a", "foregroundDeletion")
    world.create(thing("c", "!uid-of-a"))
    assert names(world) == ["a", "b"]


def test_the_status_of_an_owner_is_written_before_pods_are_deleted(new_world, build):
    """The status has the observed new generation before any pod is deleted."""
    world = new_world(
        Workloads(environment=served_environment()), GarbageCollector(looks_up_owners=True)
    )
    pod = build.pod("w", OWNER)
    pod["metadata"]["ownerReferences"][0]["blockOwnerDeletion"] = True
    world.load(build.owned("ReplicaSet", "web", 1, uid="rs"), pod)
    world.log.clear()
    meta = {"deletionTimestamp": "2027-01-01T00:00:00Z", "finalizers": ["foregroundDeletion"]}
    world.patch("ReplicaSet", "web", {"metadata": {**meta, "generation": 2}})
    acts = [one for one in world.log if isinstance(one, PatchStatus | DeleteObject)]
    assert acts[0].fields["observedGeneration"] == 2
    assert acts[1].target.kind == "Pod"


@pytest.mark.parametrize("owner_first", [True, False])
def test_an_owner_in_another_namespace_is_reported(new_world, owner_first):
    """It is reported once, in whatever order the objects are observed."""
    world = new_world(GarbageCollector(looks_up_owners=True))
    owner, dependent = thing("a"), thing("b", "uid-of-a")
    owner["metadata"]["namespace"] = "elsewhere"
    for one in (owner, dependent) if owner_first else (dependent, owner):
        world.create(one)
    (event,) = world.events
    assert (event.type, event.reason) == ("Warning", "OwnerRefInvalidNamespace")
    assert event.regarding.name == "b"
    assert event.note == (
        "ownerRef [v1/ConfigMap, namespace: ns, name: name-of-uid-of-a, uid: uid-of-a] does not "
        'exist in namespace "ns"'
    )


@pytest.mark.parametrize("looks_up_owners", [True, False])
@pytest.mark.parametrize("finalizer", ["", "foregroundDeletion"])
@pytest.mark.parametrize("is_late", [True, False], ids=["created later", "created before"])
def test_a_cluster_scoped_object_outlives_an_owner_in_a_namespace(
    new_world, looks_up_owners, finalizer, is_late
):
    world = new_world(GarbageCollector(looks_up_owners=looks_up_owners))
    role = thing("role", "uid-of-a", kind="ClusterRole")
    role["metadata"]["namespace"] = ""
    world.create(thing("a"))
    if not is_late:
        world.create(role)
    if finalizer:
        end(world, "a", finalizer)
    else:
        world.delete("ConfigMap", "a")
    if is_late:
        world.create(role)
    assert "role" in names(world)
    assert world.sent(DeleteObject) == []


def test_a_dependent_of_a_cluster_scoped_owner_is_deleted(world):
    owner = thing("a")
    owner["metadata"]["namespace"] = ""
    world.load(owner, thing("b", "uid-of-a"))
    world.delete("ConfigMap", "a", namespace="")
    assert names(world) == []


@pytest.mark.parametrize("namespace", ["", "ns"])
def test_an_owner_in_no_or_the_same_namespace_is_not_reported(new_world, namespace):
    world = new_world(GarbageCollector(looks_up_owners=True))
    owner = thing("a")
    owner["metadata"]["namespace"] = namespace
    world.load(owner, thing("b", "uid-of-a"))
    assert world.events == []


def test_an_owner_of_another_kind_than_the_reference_states_is_looked_up(new_world):
    """Upstream reads the owner by the kind of the reference, and finds none."""
    world = new_world(GarbageCollector(looks_up_owners=True))
    world.load(thing("a", kind="Widget"), thing("b", "uid-of-a"))
    world.log.clear()
    world.delete("Widget", "a")
    assert [one.target.name for one in world.log if isinstance(one, LookUpOwners)] == ["b"]


def test_only_the_newest_deleted_owners_are_remembered(new_world):
    """An older owner is looked up, so that a cluster that runs for weeks needs no more memory."""
    world = new_world(GarbageCollector(looks_up_owners=True))
    world.refuse = lambda one: FailureReason.CONFLICT if isinstance(one, LookUpOwners) else None
    world.load(*(thing(f"o{number}") for number in range(GONE_MAX + 1)))
    for number in range(GONE_MAX + 1):
        world.delete("ConfigMap", f"o{number}")
    world.log.clear()
    world.create(thing("a", "uid-of-o1"))
    world.create(thing("b", "uid-of-o0"))
    sent = [(type(one), one.target.name) for one in world.log]
    assert sent == [(DeleteObject, "a"), (LookUpOwners, "b")]


def _refused_for(command, name):
    is_about = isinstance(command, DeleteObject) and command.target.name == name
    return FailureReason.CONFLICT if is_about else None
