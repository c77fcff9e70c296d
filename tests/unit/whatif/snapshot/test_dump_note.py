"""The notes of an answer about kinds that a dump lacks, and about versions other than 1.36."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from fairlead.apiserver.kind import find_kind
from fairlead.cli.commands.snapshot_anonymous import rewrite
from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.input.error import InputError
from fairlead.whatif.question import what_if
from fairlead.whatif.result.result_json import whatif_result
from fairlead.whatif.snapshot.dump_note import dump_notes
from fairlead.whatif.snapshot.snapshot import TAKEN_AT, Snapshot, parse_snapshot, read_snapshot
from fairlead.worlds.local.bootstrap.nodes import node_info

BUDGET = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
}
QUOTA = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "q", "namespace": "default"},
    "spec": {"hard": {"pods": "5"}},
}
LEASE = {
    "apiVersion": "coordination.k8s.io/v1",
    "kind": "Lease",
    "metadata": {"name": "a", "namespace": "kube-node-lease"},
    "spec": {"holderIdentity": "a", "renewTime": "2026-01-01T00:00:00.000000Z"},
}
COMPLETE = (BUDGET, QUOTA, LEASE)


@pytest.fixture
def notes(make, snapshot):
    """Returns the notes of an answer about nodes with `kubelets`, and about `objects`."""

    def run(*objects, kubelets=("v1.36.2",), pods=None):
        nodes = [make.node(f"n{number}") for number in range(len(kubelets))]
        for node, version in zip(nodes, kubelets, strict=True):
            node["metadata"]["uid"] = node["metadata"]["name"]
            node["status"]["nodeInfo"] = {"kubeletVersion": version}
        if pods is None:  # almost every dump has this pod
            pods = (make.pod("kube-proxy", "kube-system", node_name="n0"),)
        return what_if(snapshot(*nodes, *objects, *pods), ClusterChange()).changed.notes

    return run


def test_a_complete_dump_of_1_36_has_no_note(notes):
    assert notes(*COMPLETE) == ()


@pytest.mark.parametrize(
    ("namespaces", "beginning"),
    [
        (["shop"], "All pods of the dump are in the namespace shop, so nodes may have less room"),
        (["shop", "web"], "The dump has no pods of the namespace kube-system, so nodes may have"),
        (["shop", "kube-system"], None),
        (["kube-system"], None),
        (["openshift-dns", "shop"], None),
        (["openshift-dns"], "All pods of the dump are in the namespace openshift-dns, so nodes"),
        (
            [],
            "The dump has no pods, so this answer leaves out the pods of the cluster. kubectl get",
        ),
    ],
)
def test_a_dump_with_pods_of_only_one_namespace_has_a_note(notes, make, namespaces, beginning):
    pods = [make.pod(node_name="n0") for _ in namespaces]
    for pod, namespace in zip(pods, namespaces, strict=True):
        pod["metadata"]["namespace"] = namespace
    found = [note for note in notes(*COMPLETE, pods=pods) if "namespace" in note]
    assert [note.startswith(beginning) for note in found] == ([True] if beginning else [])


@pytest.mark.parametrize(
    ("replicas", "namespaces", "has_note"),
    [(2, (), True), (2, ("shop",), True), (2, ("default",), False), (0, ("shop",), False)],
)
def test_workloads_whose_pods_the_dump_lacks_are_named(notes, make, replicas, namespaces, has_note):
    """Their pods are created anew in the answer; `namespaces` are those of the dump's pods."""
    web = make.workload(replicas=replicas) | {"status": {"replicas": replicas}}
    pods = [make.pod(namespace=namespace, node_name="n0") for namespace in namespaces]
    found = "\n".join(notes(*COMPLETE, web, pods=pods))
    beginning = "The dump has no pods of Deployment default/web, although its status counts pods."
    assert (beginning in found) == has_note


def test_no_drain_is_suggested_if_the_dump_lacks_pods(make, snapshot):
    """Nothing is known about the pods that the drain would evict."""
    nodes = [make.node("a"), make.node("b")]
    nodes[0]["metadata"]["uid"] = "a"
    pod = make.pod("web", "kube-system", node_name="b")
    for pods, has_step in (((), False), ((pod,), True)):
        answer = what_if(snapshot(*nodes, *pods), ClusterChange(drain=("a",)))
        commands = [one.command for one in answer.next_steps if one.command]
        assert bool(commands) == has_step


def test_objects_of_the_system_s_namespace_show_that_the_dump_has_all_namespaces(notes, make):
    """A cluster may have no pods in kube-system, but it always has other objects there."""
    lease = {**LEASE, "metadata": {"name": "kube-scheduler", "namespace": "kube-system"}}
    found = notes(*COMPLETE, lease, pods=[make.pod(node_name="n0")])
    assert not [note for note in found if "namespace" in note]


@pytest.mark.parametrize(("number", "has_note"), [(0, True), (1, True), (2, False)])
def test_simulated_nodes_have_no_pods_of_the_system(make, snapshot, number, has_note):
    """`kubectl get nodes,pods -A` of a cluster that `fairlead up` runs; `number` of 2 nodes."""
    nodes = [make.node("n0"), make.node("n1")]
    for at, node in enumerate(nodes):
        node["metadata"]["uid"] = f"u{at}"
        node["status"]["nodeInfo"] = node_info(at) if at < number else {"kubeletVersion": "v1.36.0"}
    found = dump_notes(snapshot(*nodes, make.pod(node_name="n0"), *COMPLETE))
    assert any("All pods of the dump are in the namespace" in note for note in found) == has_note


def test_a_snapshot_that_fairlead_has_read_has_all_namespaces(make):
    node, pod = make.node("n0"), make.pod(node_name="n0")
    node["metadata"]["uid"] = "n0"
    for taken in ({}, {"annotations": {TAKEN_AT: "2026-01-01T00:00:00.000000Z"}}):
        text = {"apiVersion": "v1", "kind": "List", "metadata": taken, "items": [node, pod]}
        read = parse_snapshot("dump.json", json.dumps(text).encode())
        assert any("namespace default" in note for note in dump_notes(read)) is not bool(taken)


def test_a_copy_of_a_dump_has_the_note_of_the_dump(make, tmp_path):
    """`fairlead snapshot --from` does not read the cluster, so the copy lacks namespaces, too."""
    node, pod = make.node("n0"), make.pod(node_name="n0")
    node["metadata"]["uid"] = "n0"
    path, copy = tmp_path / "dump.json", str(tmp_path / "copy.json")
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [node, pod]}))
    rewrite(Path(copy), str(path), None, None, as_list=False)
    rewrite(tmp_path / "second.json", copy, tmp_path / "key", None, as_list=True)
    for source in (copy, tmp_path / "second.json"):
        assert any(
            "of the dump are in the namespace" in one for one in dump_notes(read_snapshot(source))
        )


def test_empty_files_of_a_dump_are_named(make, tmp_path):
    (tmp_path / "nodes.json").write_text(json.dumps(make.node("n0")))
    (tmp_path / "kueue.json").write_text("")
    found = list(dump_notes(read_snapshot(tmp_path)))
    assert any(one.startswith(f"Empty files were skipped: {tmp_path}/kueue.json.") for one in found)


def test_each_missing_kind_is_named(notes, make):
    pod = make.pod(node_name="n0", owner="rs", priorityClassName="gold", priority=5)
    pod["metadata"]["annotations"] = {"kubernetes.io/limit-ranger": "set cpu"}
    [note, _] = notes(pod, pods=())
    assert note == (
        "The dump has no replicasets (their pods are replaced one for one), priorityclasses (new "
        "pods cannot name them), limitranges (new workloads get no default requests), "
        "poddisruptionbudgets (nothing limits evictions) and resourcequotas (nothing limits new "
        "pods)."
    )


@pytest.mark.parametrize(
    ("claim", "node", "expected"),
    [
        pytest.param(
            {"resourceClaimTemplateName": "gpu"},
            "n0",
            "The dump has no resourceclaims (devices in use count as free), resourceclaimtemplates "
            "(new pods that need devices stay pending), resourceslices (there are no devices for "
            "new pods) and deviceclasses (new pods get no devices).",
            id="a bound pod has a claim from a template",
        ),
        pytest.param(
            {"resourceClaimTemplateName": "gpu"},
            "",
            "The dump has no resourceclaimtemplates (new pods that need devices stay pending), "
            "resourceslices (there are no devices for new pods) and deviceclasses (new pods get no "
            "devices).",
            id="the claim of a pending pod may not exist yet",
        ),
        pytest.param(
            {"resourceClaimName": "shared"},
            "",
            "The dump has no resourceclaims (devices in use count as free), resourceslices (there "
            "are no devices for new pods) and deviceclasses (new pods get no devices).",
            id="a pod names a claim",
        ),
    ],
)
def test_pods_with_devices_need_the_kinds_of_their_claims(make, snapshot, claim, node, expected):
    """Without claims, a drained pod could take a device that another pod uses."""
    node_object = make.node("n0")
    node_object["metadata"]["uid"] = "n0"
    pod = make.pod(node_name=node, resourceClaims=[{"name": "gpu", **claim}])
    assert expected in dump_notes(snapshot(node_object, pod, *COMPLETE))


@pytest.mark.parametrize(
    ("kinds", "named"),
    [("ABC", "(A, B, C)"), ("ABCD", "(A, B, C and 1 more)"), ("ABCDE", "(A, B, C and 2 more)")],
)
def test_a_note_names_three_kinds_and_counts_the_others(notes, kinds, named):
    owners = [{"apiVersion": "a.io/v1", "kind": kind, "name": "x", "uid": kind} for kind in kinds]
    owned = {**BUDGET, "metadata": {**BUDGET["metadata"], "ownerReferences": owners}}
    said = f"Custom resources own budgets that allow no eviction now {named}. "
    assert any(note.startswith(said) for note in notes(owned, QUOTA, LEASE))


@pytest.mark.parametrize(
    ("api", "allowed", "has_note"),
    [
        pytest.param("postgresql.cnpg.io/v1", 0, True, id="a custom resource, no eviction allowed"),
        pytest.param("postgresql.cnpg.io/v1", 1, False, id="a custom resource, one allowed"),
        pytest.param("apps/v1", 0, False, id="a built-in kind"),
    ],
)
def test_budgets_of_custom_resources_that_block_have_a_note(notes, api, allowed, has_note):
    """CloudNativePG moves the primary away from a cordoned node, so a drain completes there."""
    owner = {"apiVersion": api, "kind": "Cluster", "name": "pg", "uid": "pg"}
    owned = {
        **BUDGET,
        "metadata": {**BUDGET["metadata"], "ownerReferences": [owner]},
        "status": {"disruptionsAllowed": allowed},
    }
    said = (
        "Custom resources own budgets that allow no eviction now (Cluster). "
        "Their controllers are not simulated. On the cluster, they may act on a cordon"
    )
    assert any(note.startswith(said) for note in notes(owned, QUOTA, LEASE)) == has_note


@pytest.mark.parametrize(
    ("allowed", "app", "has_note"), [(0, "im", True), (1, "im", False), (0, "x", False)]
)
def test_a_note_names_custom_resources_whose_pods_no_budget_lets_go(
    make, notes, allowed, app, has_note
):
    """Longhorn deletes the budget of an instance manager if its node can be drained."""
    owner = {
        "apiVersion": "longhorn.io/v1beta2",
        "kind": "InstanceManager",
        "name": "im",
        "uid": "im",
        "controller": True,
    }
    pod = make.pod("im", node_name="n0")
    pod["metadata"] |= {"labels": {"app": app}, "ownerReferences": [owner]}
    budget = {
        **BUDGET,
        "metadata": {"name": "im", "namespace": "default"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "im"}}},
        "status": {"disruptionsAllowed": allowed},
    }
    said = "Custom resources control pods whose budget allows no eviction now (InstanceManager). "
    found = notes(budget, pod, QUOTA, LEASE)
    assert any(note.startswith(said) for note in found) == has_note


def test_missing_leases_matter_only_to_nodes_that_are_not_ready(make, snapshot):
    """Their last heartbeat is unknown; the other nodes renew their leases."""
    node = make.node()
    node["metadata"]["uid"] = "n"
    words = "leases (an outage under way may seem to have begun earlier)"
    for ready, expected in (("True", []), ("Unknown", [f"The dump has no {words}."])):
        node["status"]["conditions"] = [{"type": "Ready", "status": ready}]
        pod = make.pod("kube-proxy", "kube-system", node_name="n")
        notes = what_if(snapshot(node, pod, BUDGET, QUOTA), ClusterChange()).changed.notes
        assert [one for one in notes if "has no" in one] == expected


def test_unreadable_kinds_are_not_named_as_missing(make, snapshot):
    """Other notes name them."""
    node = make.node("n1")
    node["metadata"]["uid"] = "n1"
    unreadable = ("leases.coordination.k8s.io", "poddisruptionbudgets.policy", "resourcequotas")
    pod = make.pod("kube-proxy", "kube-system", node_name="n1")
    found = replace(snapshot(node, pod), unreadable=unreadable)
    assert not [one for one in dump_notes(found) if "The dump has no" in one]


def test_controllers_that_are_missing_among_others_are_named(notes, make):
    """As after their deletion, or if one namespace was not read. Ended pods do not matter."""
    web = make.workload("ReplicaSet", "web", replicas=1)
    web["metadata"]["uid"] = "web"
    pods = [make.pod(name, node_name="n0", owner=name) for name in ("web", "gone", "ended")]
    pods[2]["status"] = {"phase": "Succeeded"}
    [note] = notes(*COMPLETE, web, *pods)
    assert note.startswith("The dump lacks controllers of pods (ReplicaSet default/gone). An equal")


@pytest.mark.parametrize(
    ("classes", "has_note"),
    [
        (["system-node-critical", "system-cluster-critical", "low"], True),
        (["system-node-critical", "system-cluster-critical", "low", "high"], False),
        (["low"], False),
    ],
    ids=["a class was deleted", "no class was deleted", "a dump with some classes"],
)
def test_deleted_priority_classes_that_pods_name_have_a_note(notes, make, classes, has_note):
    pod = make.pod("web", node_name="n0", priority=9, priorityClassName="high")
    known = [
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": {"low": 1, "high": 9}.get(name, 2_000_000_000),
        }
        for name in classes
    ]
    known[0]["value"] += known[0]["metadata"]["name"] == "system-node-critical" and 1000
    found = notes(*COMPLETE, pod, *known)
    expected = "PriorityClass high was deleted, but pods name it. In this answer, their"
    assert any(one.startswith(expected) for one in found) is has_note


def test_a_dump_with_budgets_may_be_without_quotas_and_leases(notes):
    assert notes(BUDGET) == ()


def test_a_cluster_may_be_without_budgets_and_quotas(notes):
    assert notes(LEASE) == ()


def test_hand_written_objects_have_no_note_about_missing_kinds(make, snapshot):
    assert what_if(snapshot(make.node()), ClusterChange()).changed.notes == ()


@pytest.mark.parametrize(
    ("count", "are", "them"),
    [
        (1, "1 pod is bound to a node", "it: default/p0 (gone)"),
        (
            4,
            "4 pods are bound to nodes",
            "them: default/p0 (gone), default/p1 (gone), default/p2 (gone) and 1 more",
        ),
    ],
)
def test_pods_on_missing_nodes_are_named(make, snapshot, count, are, them):
    pods = [make.pod(f"p{number}", node_name="gone") for number in range(count)]
    cluster = snapshot(make.node("n"), *pods, make.pod("web", node_name="n"), make.pod("pending"))
    notes = what_if(cluster, ClusterChange()).changed.notes
    absence = "that the dump does not have, so pod garbage collection deletes"
    assert [one for one in notes if "bound" in one] == [f"{are} {absence} {them}."]


def test_other_versions_are_named_with_the_rules_that_differ(notes):
    [note] = notes(*COMPLETE, kubelets=("v1.31.4", "v1.29.0-gke.100", "v1.31.1"))
    assert note == (
        "The cluster runs Kubernetes 1.31, some of its nodes 1.29; answers follow 1.36. In "
        "Kubernetes 1.31, preemption deletes its victims within the scheduling cycle; a node is "
        "Unknown after 40 s without heartbeats (--node-monitor-grace-period 40s); waiting pods are "
        "retried after more kinds of events, even if these cannot help."
    )


def test_the_version_of_a_virtual_kubelet_does_not_count(make, snapshot):
    """The virtual nodes of AKS report versions such as v1.25.0-vk-azure-aci-1.6.2."""
    nodes = [make.node("a"), make.node("virtual-node-aci-linux", type="virtual-kubelet")]
    for node, version in zip(nodes, ("v1.36.1", "v1.25.0-vk-azure-aci-1.6.2"), strict=True):
        node["metadata"]["uid"] = node["metadata"]["name"]
        node["status"]["nodeInfo"] = {"kubeletVersion": version}
    pod = make.pod("kube-proxy", "kube-system", node_name="a")
    assert list(dump_notes(snapshot(*nodes, pod, *COMPLETE))) == []


def test_the_version_of_the_control_plane_counts(notes, make):
    server = make.pod("kube-apiserver-n0", "kube-system", node_name="n0")
    server["spec"]["containers"][0]["image"] = "registry.k8s.io/kube-apiserver:v1.36.0"
    [note] = notes(*COMPLETE, server, kubelets=("v1.35.1",))
    assert note == "The cluster runs Kubernetes 1.36, its nodes 1.35; answers follow 1.36."


def test_the_readmes_command_names_kinds_that_every_server_has():
    """kubectl refuses the whole list because of one unknown name."""
    text = (Path(__file__).parents[4] / "README.md").read_text()
    command = text.partition("kubectl get -A -o json ")[2].partition(" > ")[0]
    names = command.replace("\\\n", "").split(",")
    assert len(names) > 20
    # Without these kinds, an answer is less exact, and says so.
    assert {"leases", "limitranges", "resourcequotas", "replicationcontrollers", "cronjobs"} <= {
        *names
    }
    assert [name for name in names if (kind := find_kind(name)) is None or kind.is_custom] == []


def test_notes_name_the_same_objects_whatever_their_order_in_the_dump(make, snapshot):
    objects = [make.node("n"), make.node("m"), make.node("l")]
    for node in objects:
        node["status"] = {}
    for at in range(5):
        pod = make.pod(f"p{at}", node_name="gone")
        pod["metadata"]["annotations"] = {"fairlead.dev/run-time": "5m"}
        group = {
            "apiVersion": "apps/v1beta1",
            "kind": f"Old{at % 2}",
            "metadata": {"name": f"o{at}"},
        }
        quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": f"q{at}"}}
        quota["spec"] = {"hard": {"pods": "5"}, "scopes": [f"Unknown{at % 2}"]}
        objects += [pod, group, quota]
    forward, backward = (
        what_if(snapshot(*order), ClusterChange()).changed.notes
        for order in (objects, objects[::-1])
    )
    assert forward == backward
    words = " ".join(forward)
    for named in ("Pod default/p0 and 4 more", "Old0", "Unknown0"):
        assert named in words


def test_unknown_annotations_of_fairlead_are_named(notes, make):
    pods = [make.pod(name, node_name="n0") for name in ("p", "q")]
    for pod in pods:
        pod["metadata"]["annotations"] = {
            "fairlead.dev/run-duration": "5m",
            "fairlead.dev/run-time": "5m",
            "example.com/run-time": "5m",
        }
    web = make.workload()
    web["spec"]["template"]["metadata"]["annotations"] = {"fairlead.dev/colour": "red"}
    named = [one for one in notes(*COMPLETE, *pods, web) if one.startswith("The annotation")]
    unknown = "is unknown and has no effect"
    assert named == [
        f"The annotation fairlead.dev/colour of Deployment default/web {unknown}.",
        (
            f"The annotation fairlead.dev/run-time of Pod default/p and 1 more {unknown}; "
            "did you mean fairlead.dev/run-duration?"
        ),
    ]


def test_annotations_of_the_templates_of_a_cronjob_are_checked(notes, make, found):
    pod_template = make.workload()["spec"]["template"]
    pod_template["metadata"]["annotations"] = {"fairlead.dev/run-time": "5m"}
    night = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "night", "namespace": "default"},
        "spec": {"schedule": "0 3 * * *", "jobTemplate": {"spec": {"template": pod_template}}},
    }
    [note] = [one for one in notes(*COMPLETE, night) if one.startswith("The annotation")]
    assert note.startswith("The annotation fairlead.dev/run-time of CronJob default/night is unkn")
    pod_template["metadata"]["annotations"] = {"fairlead.dev/run-duration": "long"}
    path = "spec.jobTemplate.spec.template.metadata.annotations"
    with pytest.raises(InputError, match=re.escape(f"{path}[fairlead.dev/run-duration]")):
        found(night)


def test_unknown_annotations_of_applied_objects_are_named(make, snapshot, write):
    pod = make.pod("p")
    pod["metadata"]["annotations"] = {"fairlead.dev/runduration": "5m"}
    path = write("pod.json", pod)
    answer = what_if(snapshot(make.node("a")), ClusterChange(apply=(path,)))
    assert (
        "The annotation fairlead.dev/runduration of Pod default/p is unknown and has no effect; "
        "did you mean fairlead.dev/run-duration?"
    ) in whatif_result(answer)["notes"]


def test_nodes_that_do_not_state_their_resources_are_named(make, found):
    capacity = {"cpu": "4", "pods": "10"}
    nodes = [make.node(name) for name in ("a", "b", "c")]
    nodes[0]["status"] = {}
    nodes[1]["status"] = {"capacity": capacity}
    assert [
        note for note in dump_notes(Snapshot("f", found(*nodes), 0)) if "allocatable" in note
    ] == ["No pod fits on a, because status.allocatable is missing there."]


def test_unknown_kinds_of_built_in_groups_are_named(notes, make):
    def obj(version, kind, name, uid=""):
        metadata = {"name": name, "namespace": "a", **({"uid": uid} if uid else {})}
        return {"apiVersion": version, "kind": kind, "metadata": metadata}

    found = notes(
        obj("apps/v1", "Fleet", "x"),
        obj("apps/v1", "Fleet", "y"),
        obj("apps/v1", "Deploymnt", "dumped", uid="1"),
        obj("example.com/v1", "Fleet", "custom"),
    )
    why = "that Kubernetes serves by default, so"
    assert [one for one in found if why in one] == [
        f"apps/v1 has no kind Deploymnt {why} Deploymnt a/dumped has no effect.",
        f"apps/v1 has no kind Fleet {why} Fleet a/x and 1 more have no effect.",
    ]


def limited(kind, name, **spec):
    metadata = {"name": name, "namespace": "shop"}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": spec}


def test_quotas_of_unknown_scopes_have_no_effect_and_a_note(make, snapshot):
    """A newer release may have more scopes; no object matches a scope that is unknown."""
    wanted = {"scopeName": "Newest", "operator": "Exists"}
    quotas = [
        limited("ResourceQuota", "a", hard={"pods": "0"}, scopes=["NotBestEffort", "Newer"]),
        limited("ResourceQuota", "b", hard={"pods": "0"}, scopes=["Newer"]),
        limited("ResourceQuota", "c", hard={"pods": "0"}, scopeSelector={
            "matchExpressions": [wanted]}),
        limited("ResourceQuota", "d", hard={"pods": "5"}, scopes=["NotBestEffort"]),
    ]  # fmt: skip
    rs = make.workload("ReplicaSet", "web", replicas=1)
    rs["metadata"]["namespace"] = "shop"
    found = what_if(snapshot(make.node("n0"), rs, *quotas), ClusterChange())
    assert [one for one in found.changed.notes if "scope" in one] == [
        'The quota scope "Newer" is unknown, so ResourceQuota shop/a and 1 more have no effect.',
        'The quota scope "Newest" is unknown, so ResourceQuota shop/c has no effect.',
    ]
    change = ClusterChange(scale=("rs/shop/web=2",))
    assert len(what_if(snapshot(make.node("n0"), rs, *quotas), change).difference.placed) == 1


def test_limits_of_unknown_types_have_no_effect_and_a_note(make, snapshot):
    """Kubernetes ignores types with a slash, which belong to other controllers, so no note."""
    limits = [{"type": name, "max": {"cpu": "1m"}} for name in ("container", "x.io/disk")]
    ranges = [limited("LimitRange", "a", limits=limits), limited("LimitRange", "b", limits=[])]
    rs = make.workload("ReplicaSet", "web", replicas=1)
    rs["metadata"]["namespace"] = "shop"
    change = ClusterChange(scale=("rs/shop/web=2",))
    found = what_if(snapshot(make.node("n0"), rs, *ranges), change)
    assert [one for one in found.changed.notes if "limit type" in one] == [
        'The limit type "container" is unknown, so its limits in LimitRange shop/a have no effect.'
    ]
    assert len(found.difference.placed) == 1


def test_a_stateful_set_with_claims_needs_storage_classes(notes, make):
    """Without classes, new claims are assumed to get volumes; a class in the dump changes this."""
    sts = make.workload("StatefulSet", "db", replicas=0)
    sts["metadata"]["uid"] = "db"
    template = {"metadata": {"name": "data"}, "spec": {"storageClassName": "disk"}}
    sts["spec"]["volumeClaimTemplates"] = [template]
    [note] = notes(*COMPLETE, sts)
    assert note == (
        "The dump has no storageclasses (every node is assumed to reach the volumes of new claims)."
    )
    storage_class = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "provisioner": "x"}
    assert notes(*COMPLETE, sts, {**storage_class, "metadata": {"name": "disk"}}) == ()


def test_new_claims_get_volumes_without_storage_classes(make, snapshot):
    sts = make.workload("StatefulSet", "db", replicas=0)
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    sts["spec"]["volumeClaimTemplates"] = [
        {"metadata": {"name": "data"}, "spec": {**spec, "storageClassName": "disk"}},
        {"metadata": {"name": "log"}, "spec": spec},
    ]
    change = ClusterChange(scale=("sts/db=2",))
    found = what_if(snapshot(make.node("a"), sts), change).difference
    assert (len(found.placed), len(found.pending)) == (2, 0)


def test_bound_claims_need_volumes(notes):
    """A volume can restrict its pods to a zone, so a dump with claims needs the volumes, too."""
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "default"},
        "spec": {"volumeName": "pv-1"},
    }
    [note] = notes(*COMPLETE, claim)
    assert note == "The dump has no persistentvolumes (every node is assumed to reach them)."
    assert notes(*COMPLETE, {**claim, "spec": {}}) == ()


def test_kinds_of_custom_resources_that_control_pods_are_named(notes, make):
    """The group decides: a StatefulSet of OpenKruise is a custom resource."""
    kinds = ("apps.kruise.io/v1beta1", "StatefulSet"), ("tekton.dev/v1", "TaskRun")
    pods = [make.pod(kind.lower(), node_name="n0", owner="o") for _, kind in kinds]
    for pod, (api_version, kind) in zip(pods, kinds, strict=True):
        pod["metadata"]["ownerReferences"][0] |= {"apiVersion": api_version, "kind": kind}
    found = notes(*COMPLETE, *pods)
    [note] = [one for one in found if "custom" in one]
    assert "(StatefulSet.apps.kruise.io, TaskRun)" in note
    assert not any("statefulsets" in one for one in found)
    pods[1]["status"] = {"phase": "Succeeded"}
    assert any("(StatefulSet.apps.kruise.io)" in one for one in notes(*COMPLETE, *pods))


@pytest.mark.parametrize(
    ("api", "controls", "has_note"),
    [
        pytest.param("example.com/v1", False, True, id="a custom resource, no controller"),
        pytest.param("example.com/v1", True, False, id="a custom resource, the controller"),
        pytest.param("v1", False, False, id="an object of Kubernetes"),
    ],
)
def test_custom_resources_that_own_pods_without_control_are_named(
    notes, make, api, controls, has_note
):
    pod = make.pod("im-1", node_name="n0", owner="im")
    pod["metadata"]["ownerReferences"][0] |= {
        "apiVersion": api, "kind": "Cache", "controller": controls,
    }  # fmt: skip
    found = [one for one in notes(*COMPLETE, pod) if "without being their controllers" in one]
    assert bool(found) is has_note
    assert all("(Cache)" in one for one in found)


@pytest.mark.parametrize(
    ("api", "kind", "has_note"),
    [
        ("v1", "Pod", True),
        ("apps/v1", "Deployment", True),
        ("apps/v1", "ReplicaSet", False),
        ("example.com/v1", "Deployment", False),
    ],
)
def test_pods_that_control_pods_have_a_note(notes, make, api, kind, has_note):
    """Spark's driver pod controls its executors; a Deployment controls Flink's TaskManagers."""
    pod = make.pod("etl-1", node_name="n0", owner="etl")
    pod["metadata"]["ownerReferences"][0] |= {"apiVersion": api, "kind": kind}
    found = [one for one in notes(*COMPLETE, pod) if "Programs that create pods" in one]
    assert bool(found) is has_note
    assert all(f"({kind} default/etl). An equal pod replaces each" in one for one in found)


@pytest.mark.parametrize(("group", "count"), [("argoproj.io", 1), ("example.com", 0)])
def test_workflows_of_argo_do_not_always_replace_their_pods(notes, make, group, count):
    step = make.pod("step")
    owner = {"apiVersion": f"{group}/v1alpha1", "kind": "Workflow", "name": "w", "uid": "w"}
    step["metadata"]["ownerReferences"] = [owner | {"controller": True}]
    assert sum("only if its step has a retryStrategy" in note for note in notes(step)) == count


@pytest.mark.parametrize(
    ("spec", "action"),
    [
        ({"policies": [{"event": "PodEvicted", "action": "RestartJob"}]}, "RestartJob"),
        ({"tasks": [{"policies": [{"events": ["*"], "action": "AbortJob"}]}]}, "AbortJob"),
        ({"policies": [{"event": "PodEvicted", "action": "RestartPod"}]}, ""),
        ({"policies": [{"event": "PodFailed", "action": "RestartJob"}]}, ""),
        ({"policies": None}, ""),
        (None, ""),
    ],
    ids=["of the Job", "of a task", "only the pod", "another event", "null", "no spec"],
)
def test_policies_of_volcano_that_restart_more_than_an_evicted_pod_are_named(
    notes, make, spec, action
):
    owner = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "j", "uid": "j"}
    pod = make.pod("j-w-0", node_name="a")
    meta = {"name": "j", "namespace": "default", "uid": "j"}
    pod["metadata"]["ownerReferences"] = [owner | {"controller": True}]
    job = {"apiVersion": owner["apiVersion"], "kind": "Job", "metadata": meta, "spec": spec}
    other = {**job, "metadata": meta | {"name": "without-pods", "uid": "o"}}
    if spec is None:
        del job["spec"], other["spec"]
    found = [one for one in notes(pod, job, other) if "Volcano also restarts" in one]
    note = (
        "If a pod of Job.batch.volcano.sh default/j is evicted or deleted, Volcano also restarts "
        f"or ends other pods of the Job (policy {action} for PodEvicted). This answer replaces "
        "only the pod itself."
    )
    assert found == ([note] if action else [])


def test_kinds_of_custom_resources_that_control_jobs_are_named(notes, make):
    """A JobSet creates its Jobs again if one of them fails, up to maxRestarts times."""
    kinds = ("jobset.x-k8s.io/v1alpha2", "JobSet"), ("ray.io/v1", "RayJob"), ("batch/v1", "CronJob")
    owner = {"name": "o", "uid": "o", "controller": True}
    jobs = [
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {
                "name": kind.lower(),
                "namespace": "default",
                "uid": kind,
                "ownerReferences": [{**owner, "apiVersion": api_version, "kind": kind}],
            },
            "spec": {"template": make.workload()["spec"]["template"]},
        }
        for api_version, kind in kinds
    ]
    [note] = [one for one in notes(*COMPLETE, *jobs) if "control Jobs" in one]
    assert "(JobSet, RayJob)" in note
    jobs[0]["status"] = {"conditions": [{"type": "Complete", "status": "True"}]}
    assert any("(RayJob)" in one for one in notes(*COMPLETE, *jobs))


@pytest.mark.parametrize(
    ("names", "words"),
    [(("vllm-0",), "is deleted with its pod"), (("vllm-0", "vllm-1"), "and 1 more are deleted")],
)
def test_stateful_sets_of_pods_have_a_note(notes, make, names, words):
    """The pod of a leader in a LeaderWorkerSet owns the StatefulSet of its workers."""
    objects = []
    for name in names:
        leader = make.pod(name, node_name="n0", owner="vllm")
        workers = make.workload("StatefulSet", name, replicas=1)
        owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": name}
        leader["metadata"]["uid"] = name
        workers["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
        objects += [leader, workers]
    [note] = [one for one in notes(*COMPLETE, *objects) if "LeaderWorkerSets" in one]
    assert note.startswith("StatefulSet default/vllm-0")
    assert words in note


@pytest.mark.parametrize(
    ("policy", "named"),
    [
        ({}, "RecreateGroupOnPodRestart"),
        ({"restartPolicy": "RecreateGroupAfterStart"}, "RecreateGroupAfterStart"),
        ({"restartPolicy": "None"}, ""),
    ],
    ids=["by default", "after the start", "only the pod"],
)
def test_leader_worker_sets_that_restart_whole_groups_are_named(notes, make, policy, named):
    sets = [
        {
            "apiVersion": "leaderworkerset.x-k8s.io/v1",
            "kind": "LeaderWorkerSet",
            "metadata": {"name": name, "namespace": "default", "uid": name},
            "spec": {"leaderWorkerTemplate": policy},
        }
        for name in ("vllm", "without-pods")
    ]
    leaders = make.workload("StatefulSet", "vllm", replicas=0)
    owner = {"apiVersion": sets[0]["apiVersion"], "kind": "LeaderWorkerSet", "name": "vllm"}
    leaders["metadata"] |= {"uid": "l", "ownerReferences": [{**owner, "uid": "vllm"}]}
    worker = make.pod("vllm-0-1", node_name="n0")
    worker["metadata"]["labels"] = {"leaderworkerset.sigs.k8s.io/name": "vllm"}
    note = (
        "If a pod of LeaderWorkerSet default/vllm is evicted or deleted, all pods of its group are "
        f"deleted and created again (restartPolicy {named}). This answer replaces only the pod "
        "itself."
    )
    found = [one for one in notes(*COMPLETE, leaders, worker, *sets) if "group" in one]
    assert found == ([note] if named else [])


def test_a_note_names_pods_and_templates_with_the_gangs_of_1_35(notes, make):
    """The field workloadRef was an alpha field of 1.35, and 1.36 drops it."""
    pod, web = make.pod(node_name="n0"), make.workload()
    pod["metadata"]["uid"], web["metadata"]["uid"] = "pod", "web"
    reference = {"name": "train", "podGroup": "workers"}
    assert not [one for one in notes(*COMPLETE, pod, web) if "workloadRef" in one]
    pod["spec"]["workloadRef"] = reference
    web["spec"]["template"]["spec"]["workloadRef"] = reference
    [note] = [one for one in notes(*COMPLETE, pod, web) if "workloadRef" in one]
    for one in ("(Deployment default/web, Pod default/web", "scheduled one by one"):
        assert one in note


def test_the_files_of_a_directory_are_named(make, tmp_path):
    """An edited object beside the dump is read as a part of the cluster."""
    for name, one in (("dump.json", make.node("a")), ("change.json", make.node("b"))):
        (tmp_path / name).write_text(json.dumps(one))
    says = "The objects of 2 files are read as one cluster: "
    [note] = [one for one in dump_notes(read_snapshot(str(tmp_path))) if one.startswith(says)]
    assert note == f"{says}{tmp_path}/change.json, {tmp_path}/dump.json."
    alone = read_snapshot(str(tmp_path / "dump.json"))
    assert not any(one.startswith("The objects of") for one in dump_notes(alone))
