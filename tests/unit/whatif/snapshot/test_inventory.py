"""Objects that users name: kinds by any name, objects in any namespace, nodes by selector."""

from __future__ import annotations

import re

import msgspec
import pytest

from fairlead.apiserver.kind import POD, find_kind
from fairlead.whatif.input.error import InputError
from fairlead.whatif.snapshot.inventory import Inventory
from fairlead.whatif.snapshot.live.live_resource import unreadable_lines, unreadable_notes
from fairlead.whatif.snapshot.snapshot import UNREADABLE, parse_snapshot

NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}


@pytest.fixture
def inventory(make, found):
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}
    return Inventory(
        found(
            make.node("n1", pool="small", zone="a"),
            make.node("n2", pool="small", zone="b"),
            make.node("n3", pool="large", zone="a"),
            make.workload(name="web"),
            make.workload(name="web", namespace="shop"),
            make.workload(name="api", namespace="shop"),
            make.priority_class("high", 1000),
            widget,
        )
    )


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("deploy/api", "Deployment shop/api"),
        ("deployment/api", "Deployment shop/api"),
        ("Deployments/api", "Deployment shop/api"),
        ("deployments.apps/api", "Deployment shop/api"),
        ("deploy/shop/web", "Deployment shop/web"),
        ("pc/high", "PriorityClass high"),
        ("node/n1", "Node n1"),
        ("widget/w", "Widget w"),
        ("widgets/w", "Widget w"),
    ],
)
def test_objects_are_found_by_every_name_of_their_kind(inventory, text, title):
    assert inventory.find("--delete", text).title == title


def test_a_namespace_limits_short_names(inventory):
    assert inventory.find("--delete", "deploy/web", "shop").title == "Deployment shop/web"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("deploy/web", "deploy/web is in several namespaces (default, shop); name one of them"),
        ("deploy/apo", "there is no Deployment apo; did you mean shop/api? known: def"),
        ("deploy/default/api", "there is no Deployment default/api"),
        ("sts/db", "there is no StatefulSet db (the cluster has no StatefulSet)"),
        ("sts/api", "there is no StatefulSet api (the cluster has no StatefulSet); did you me"),
        ("node/shop/api", "there is no Node api; did you mean deployment/shop/api?"),
        ("no/shop/n1", "'no/shop/n1': a Node is in no namespace; write no/n1"),
        ("api", "'api' is not KIND/NAME or KIND/NAMESPACE/NAME; did you mean deployment/shop/api?"),
        ("shop/api", "unknown kind 'shop'; did you mean deployment/shop/api?"),
        ("deplyo/web", "unknown kind 'deplyo'; did you mean deployment?"),
        ("database/shop/db", "unknown kind 'database'; no built-in kind has this name, and the"),
        ("web", "'web' is not KIND/NAME or KIND/NAMESPACE/NAME"),
        ("sts", "'sts' is not KIND/NAME or KIND/NAMESPACE/NAME (the cluster has no StatefulSet)"),
        ("deploy/", "'deploy/' is not KIND/NAME"),
        ("a/b/c/d", "'a/b/c/d' is not KIND/NAME"),
    ],
)
def test_an_absent_object_is_refused_with_the_nearest_name(inventory, text, problem):
    with pytest.raises(InputError) as refused:
        inventory.find("--delete", text)
    assert str(refused.value).startswith(f"--delete: {problem}")


def test_a_kind_without_a_name_is_refused_with_names_of_expected_kinds(inventory):
    def problem(*arguments, **options):
        with pytest.raises(InputError) as refused:
            inventory.find("explain", *arguments, **options)
        return refused.value.problem.partition("NAMESPACE/NAME")[2]

    assert problem("widget") == "; try widget/w"
    nodes = (POD, find_kind("nodes"))
    assert problem("deploy") == (
        "; name one of them: deploy/default/web, deploy/shop/api, deploy/shop/web"
    )
    assert problem("no", expected=nodes) == "; name one of them: no/n1, no/n2, no/n3"
    assert problem("deploy", expected=nodes) == ""
    assert problem("deploy", "default") == "; try deploy/default/web"


def test_an_object_that_a_missing_custom_resource_owns_is_suggested(make, found):
    """Of the objects of a Database, only the StatefulSet is suggested."""
    owner = {"apiVersion": "example.com/v1", "kind": "Database", "name": "db", "uid": "1"}
    owned = make.workload("StatefulSet", "data"), make.pod("tool")
    for one in owned:
        one["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
    problem = "did you mean statefulset/default/data, which database/db owns"
    with pytest.raises(InputError, match=problem):
        Inventory(found(*owned)).find("--delete", "database/db")
    with pytest.raises(InputError, match="no built-in kind has this name"):
        Inventory(found(owned[1])).find("--delete", "database/db")


@pytest.mark.parametrize(
    ("owner", "text", "lacking", "kinds"),
    [
        ("ReplicaSet/web-6d/6d", "deploy/shop/web", "Deployment web", "deployments,replicasets"),
        ("ReplicaSet/web-6d/", "rs/web-6d", "ReplicaSet web-6d", "replicasets"),
        ("StatefulSet/db/", "sts/db", "StatefulSet db", "statefulsets"),
        ("Job/backup-29384720/", "cj/backup", "CronJob backup", "cronjobs,jobs"),
    ],
)
def test_a_workload_that_only_its_pods_name_is_missing_in_the_dump(
    make, found, owner, text, lacking, kinds
):
    owner_kind, owner_name, digest = owner.split("/")
    group = "batch/v1" if owner_kind == "Job" else "apps/v1"
    reference = {"apiVersion": group, "kind": owner_kind, "name": owner_name, "uid": "1"}
    pod = make.pod("p", "shop")
    pod["metadata"]["ownerReferences"] = [{**reference, "controller": True}]
    pod["metadata"]["labels"] = {"pod-template-hash": digest}
    with pytest.raises(InputError) as refused:
        Inventory(found(pod)).find("--scale", text)
    kind, name = lacking.split()
    said = f"the dump lacks {kind} shop/{name}, the owner of pod/shop/p (the dump has no "
    assert refused.value.problem.startswith(said)
    assert f"kubectl get -A -o json {kinds} into" in refused.value.problem
    with pytest.raises(InputError, match=f"the cluster has no {kind}"):
        Inventory(found(pod)).find("--scale", f"{text}x")
    unread = Inventory(found(pod), unreadable=[find_kind(kind).resource])
    with pytest.raises(InputError, match=r"owner of pod/shop/p \(no \w+ could be read\)$"):
        unread.find("--scale", text)
    reference["apiVersion"] = "example.com/v1"
    pod["metadata"]["ownerReferences"] = [{**reference, "controller": True}]
    with pytest.raises(InputError, match=f"the cluster has no {kind}"):
        Inventory(found(pod)).find("--scale", text)


def test_pods_with_the_name_as_a_prefix_are_suggested_before_similar_names(make, found):
    names = ("job-8027", "job-8002", "job-0028", "job-0027-bsqt9")
    with pytest.raises(InputError, match="did you mean default/job-0027-bsqt9, default/job-8027"):
        Inventory(found(*map(make.pod, names))).find("explain", "pod/default/job-0027")


def test_only_the_nearest_of_many_names_are_suggested(make, found):
    inventory = Inventory(found(*(make.pod(f"web-{n:02}", "shop") for n in range(30))))
    with pytest.raises(InputError) as refused:
        inventory.find("explain", "pod/web-7")
    said = "did you mean shop/web-07, shop/web-27, shop/web-17? there are 30 pods"
    assert str(refused.value) == f"explain: there is no Pod web-7; {said}"
    with pytest.raises(InputError, match="there is no Pod nope; there are 30 pods"):
        inventory.find("explain", "pod/nope")


def test_a_name_that_differs_only_in_leading_zeros_is_the_nearest(make, found):
    inventory = Inventory(found(*(make.node(f"node-{n:05}") for n in range(0, 5_000, 10))))
    for name, nearest in (("node-10", "node-00010"), ("Node-4990", "node-04990")):
        with pytest.raises(InputError, match=f"did you mean {nearest}, "):
            inventory.find("--drain", f"node/{name}")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("n2", ["n2"]),
        ("pool=small", ["n1", "n2"]),
        ("pool=small,zone!=b", ["n1"]),
        ("zone in (a, b)", ["n1", "n2", "n3"]),
    ],
)
def test_nodes_are_named_or_selected(inventory, text, names):
    assert inventory.nodes("--drain", text) == names


def test_the_nodes_of_a_selector_are_sorted_by_name(make, found):
    """The order of the nodes in the dump does not change the order in which they are drained."""
    unsorted = Inventory(found(*(make.node(name, pool="old") for name in ("n3", "n1", "n2"))))
    assert unsorted.nodes("--drain", "pool=old") == ["n1", "n2", "n3"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("n9", "there is no Node n9"),
        ("pool", "there is no Node pool; to select nodes by this label, write KEY=VALUE: pool="),
        ("*", "there is no Node *; to select all nodes, name a label that all of them have"),
        ("pool=tiny", "no node matches pool=tiny; known: pool="),
        ("pool=smal", "no node matches pool=smal; did you mean pool=small? known: pool=large"),
        ("pol=large", "no node matches pol=large; there is no label pol; did you mean pool?"),
        ("n1,n2", "no node matches n1,n2; commas combine labels: to select several nodes, repeat"),
        ("pool in (", "is neither a node name nor a selector"),
        ("=", "is neither a node name nor a selector"),
    ],
)
def test_unknown_nodes_are_refused(inventory, text, problem):
    with pytest.raises(InputError, match="--drain: ") as refused:
        inventory.nodes("--drain", text)
    assert problem in str(refused.value)


def test_an_object_of_a_kind_that_could_not_be_read_is_not_said_to_be_absent():
    names = "deployments.apps,priorityclasses.scheduling.k8s.io"
    read = {"metadata": {"annotations": {UNREADABLE: names}}, "kind": "List", "items": [NODE]}
    snapshot = parse_snapshot("s.json", msgspec.json.encode(read))
    with pytest.raises(InputError) as refused:
        snapshot.inventory().find("--scale", "deploy/shop/web")
    assert refused.value.problem == (
        "there is no Deployment shop/web (no deployments could be read)"
    )
    with pytest.raises(InputError, match=r"no Deployment matches a=b \(no deployments could be"):
        snapshot.inventory().select("--delete", "deploy/a=b")
    with pytest.raises(InputError, match=r"\(the cluster has no Job\)"):
        snapshot.inventory().find("--delete", "job/shop/web")


def test_resources_of_one_name_are_named_once():
    groups = ["podgroups.scheduling.incubator.k8s.io", "podgroups.scheduling.sigs.dev"]
    assert unreadable_lines(groups) == [
        "no podgroups could be read: gangs of kube-batch are scheduled pod by pod"
    ]


def test_unreadable_resources_of_one_topic_share_a_note():
    """A user with few permissions would otherwise get so many notes that they hide all others."""
    workloads = ["replicasets.apps", "statefulsets.apps", "daemonsets.apps", "jobs.batch"]
    volumes = ["csinodes.storage.k8s.io", "csidrivers.storage.k8s.io"]
    assert unreadable_lines([*workloads, *volumes]) == [
        (
            "no replicasets, statefulsets, daemonsets and jobs could be read: their evicted pods "
            "are not replaced"
        ),
        (
            "no csinodes and csidrivers could be read: limits and storage capacity of volume "
            "drivers are ignored"
        ),
    ]


def test_notes_about_unreadable_resources_name_the_command_that_prints_the_role():
    notes = unreadable_notes(["jobs.batch", "poddisruptionbudgets.policy"])
    assert ["snapshot --rbac" in note for note in notes] == [False, False, True]
    assert unreadable_notes([]) == []


def test_blank_text_selects_nothing(inventory):
    """An unset shell variable must not select every object: `--drain "$A $B"`."""
    with pytest.raises(InputError, match="--drain: is empty"):
        inventory.nodes("--drain", " ")
    with pytest.raises(InputError, match="--delete: 'deploy/shop/ ' has an empty selector"):
        inventory.select("--delete", "deploy/shop/ ")


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("job/train", "Job default/train"),
        ("jobs.batch/train", "Job default/train"),
        ("job.batch.volcano.sh/train", "Job.batch.volcano.sh default/train"),
        ("jobs.v1alpha1.batch.volcano.sh/train", "Job.batch.volcano.sh default/train"),
        ("podgroup/a", "PodGroup default/a"),
        ("podgroup/b", "PodGroup.scheduling.x-k8s.io default/b"),
        ("podgroups.scheduling.x-k8s.io/a", "PodGroup.scheduling.x-k8s.io default/a"),
    ],
)
def test_kinds_of_one_name_are_told_apart_by_their_groups(found, text, title):
    """A plain name of a built-in kind means this kind, as in kubectl."""
    inventory = Inventory(
        found(
            custom("batch.volcano.sh/v1alpha1", "Job", "train"),
            custom("batch/v1", "Job", "train"),
            custom("scheduling.volcano.sh/v1beta1", "PodGroup", "a"),
            custom("scheduling.x-k8s.io/v1alpha1", "PodGroup", "a"),
            custom("scheduling.x-k8s.io/v1alpha1", "PodGroup", "b"),
        )
    )
    assert inventory.find("--delete", text).title == title


def test_an_absent_object_may_be_one_of_a_kind_with_the_same_name(found):
    inventory = Inventory(found(custom("batch.volcano.sh/v1alpha1", "Job", "train")))
    with pytest.raises(InputError, match=r"did you mean job\.batch\.volcano\.sh/default/train"):
        inventory.find("explain", "job/train", expected=(POD,))


def custom(api_version, kind, name):
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": {}}


@pytest.mark.parametrize(
    ("api_version", "kind", "names"),
    [
        ("batch.volcano.sh/v1alpha1", "Job", ["vcjob", "vj", "job.batch.volcano.sh"]),
        ("apps.openshift.io/v1", "DeploymentConfig", ["dc", "deploymentconfig"]),
    ],
)
def test_custom_resources_have_the_short_names_of_their_definitions(
    found, api_version, kind, names
):
    """A dump usually lacks the CustomResourceDefinitions; OpenShift serves dc without one."""
    metadata = {"name": "web", "namespace": "shop"}
    custom = {"apiVersion": api_version, "kind": kind, "metadata": metadata}
    objects = Inventory(found(custom))
    for name in names:
        assert objects.find("--like", f"{name}/web").kind.kind == kind


@pytest.mark.parametrize("name", ["cr", "CR", "crd-widgets", "widgetry", "cr.shop.example"])
def test_a_custom_resource_has_the_names_of_the_definition_in_the_dump(found, name):
    names = {"kind": "Widget", "plural": "crd-widgets", "singular": "widgetry"}
    spec = {"group": "shop.example", "names": {**names, "shortNames": ["cr"]}}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "crd-widgets.shop.example"},
        "spec": spec,
    }
    widget = custom("shop.example/v1", "Widget", "web")
    objects = Inventory(found(definition, widget))
    assert objects.find("--delete", f"{name}/web").title == "Widget default/web"
    with pytest.raises(InputError, match="unknown kind"):
        Inventory(found(widget)).find("--delete", f"{name}/web")


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        (5, "spec: Expected `object`, got `int`"),
        ({"names": 5}, "spec.names: Expected `object`, got `int`"),
        ({"names": {"shortNames": True}}, "spec.names.shortNames: Expected `array`, got `bool`"),
        ({"names": {"shortNames": [1]}}, "spec.names.shortNames[0]: Expected `str`, got `int`"),
    ],
)
def test_a_definition_in_the_dump_with_a_wrong_type_is_named(found, spec, problem):
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.shop.example"},
        "spec": spec,
    }
    objects = Inventory(found(definition))
    with pytest.raises(InputError) as caught:
        objects.find("--delete", "cr/web")
    assert f"CustomResourceDefinition widgets.shop.example: {problem}" in str(caught.value)


@pytest.mark.parametrize("name", ["dc/web", "dc/shop/web", "deploymentconfig/web"])
def test_an_absent_owner_suggests_the_workload_that_it_owns(make, found, name):
    """kubectl get replicationcontrollers prints no DeploymentConfigs, which own them."""
    owner = {"apiVersion": "apps.openshift.io/v1", "kind": "DeploymentConfig", "name": "web"}
    objects = []
    for number, replicas in ((1, 0), (2, 3), (3, 0)):
        one = {**make.workload("ReplicationController", f"web-{number}", "shop", replicas=replicas)}
        one["apiVersion"], one["spec"]["selector"] = "v1", {"app": "web"}
        one["metadata"]["ownerReferences"] = [{**owner, "uid": "d", "controller": True}]
        objects.append(one)
    known = [find_kind("deployment"), find_kind("replicationcontroller")]
    with pytest.raises(InputError, match="did you mean replicationcontroller/shop/web-2, which"):
        Inventory(found(*objects)).find("--scale", name, "", known)


def test_the_beginning_of_a_long_node_name_finds_the_node(snapshot, make):
    """Dashboards and the node map shorten the names of cloud providers to the host name."""
    names = [f"ip-10-1-{at}-7.eu-central-1.compute.internal" for at in range(20)]
    cluster = snapshot(*(make.node(name) for name in names))
    with pytest.raises(InputError, match=rf"ip-10-1-14-7; did you mean {re.escape(names[14])}\?"):
        cluster.inventory().nodes("--drain", "ip-10-1-14-7")
