"""Changes as commands: in a fixed order, each validated against the snapshot."""

from __future__ import annotations

import pytest
from tests.unit.whatif.conftest import workload

from fairlead.engine.core.command import CreateObject, DeleteObject, PatchObject
from fairlead.whatif.change.change_script import script_of_change
from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.change.node_outage.node_failure import Failures
from fairlead.whatif.input.error import InputError


@pytest.fixture
def cluster(make, snapshot):
    return snapshot(
        make.node("n1", pool="small"),
        make.node("n2", pool="small"),
        make.workload(name="web", replicas=3),
        make.pod("solo", node_name="n1"),
        make.priority_class("urgent", 1000),
    )


def commands(change, cluster):
    return [
        command for step in script_of_change(change, cluster).steps for command in step.commands
    ]


def test_the_commands_of_a_change_have_a_fixed_order_and_the_start_time(cluster, write, make):
    path = write("new.json", make.pod("new"))
    change = ClusterChange(
        drain=("n2",), cordon=("n1",), scale=("deploy/web=5",), apply=(path,),
        delete=("pod/solo",),
    )  # fmt: skip
    steps = script_of_change(change, cluster).steps
    assert [step.after for step in steps] == [0] * 5
    kinds = [type(command) for step in steps for command in step.commands]
    assert kinds == [DeleteObject, CreateObject, PatchObject, PatchObject, PatchObject]


def test_other_options_can_change_a_new_object_whose_file_has_a_uid(cluster, write):
    """`kubectl get -o yaml` prints a uid. The API server gives the new object another one."""
    new = workload(name="new")
    new["metadata"]["uid"] = "11111111-1111-4111-8111-111111111111"
    path = write("new.json", new)
    change = ClusterChange(
        apply=(path,), set=("deploy/new:spec.paused=true",), scale=("deploy/new=3",)
    )
    created, *edits = commands(change, cluster)
    assert "uid" not in created.manifest["metadata"]
    assert {edit.target.uid for edit in edits} == {""}


def test_cordon_and_drain_cordon_each_node_once(cluster):
    found = commands(ClusterChange(drain=("pool=small", "n1")), cluster)
    assert [command.target.name for command in found] == ["n1", "n2"]
    assert found[0].patch == {
        "spec": {"unschedulable": True},
        "metadata": {"annotations": {"fairlead.dev/drain": "requested"}},
    }
    [cordon] = commands(ClusterChange(cordon=("n1",)), cluster)
    assert cordon.patch == {"spec": {"unschedulable": True}}


def test_a_selector_selects_the_nodes_from_before_the_change(cluster, write, make):
    """So a pool can be replaced by copies of its nodes, which have the same labels."""
    path = write("new.json", make.node("n3", pool="small"), make.node("n4", pool="large"))
    new = {"apply": (path,), "add_nodes": 2, "like": "n1"}
    failures = Failures(fail_node=("pool=small",))
    for change in (
        ClusterChange(**new, drain=("pool=small",)),
        ClusterChange(**new, cordon=("pool=small",)),
        ClusterChange(**new, failures=failures),
    ):
        found = [one for one in commands(change, cluster) if not isinstance(one, CreateObject)]
        assert {getattr(one, "target", one).name for one in found} == {"n1", "n2"}
    named = commands(ClusterChange(**new, drain=("n3", "new-node-1")), cluster)
    assert [one.target.name for one in named[-2:]] == ["n3", "new-node-1"]
    with pytest.raises(InputError, match="pool=large matches only nodes that the change creates"):
        commands(ClusterChange(**new, drain=("pool=large",)), cluster)


@pytest.mark.parametrize(
    ("new", "problem"),
    [
        ({}, "pool=small matches no node that remains; deletions take effect first"),
        (
            {"add_nodes": 2, "like": "n1"},
            "pool=small matches only nodes that the change creates; deletions take effect first",
        ),
    ],
)
def test_a_drain_of_deleted_nodes_is_refused(cluster, new, problem):
    change = ClusterChange(**new, delete=("node/pool=small",), drain=("pool=small",))
    with pytest.raises(InputError, match=problem):
        commands(change, cluster)


def test_new_nodes_are_added_before_all_other_changes(cluster):
    change = ClusterChange(delete=("node/n2",), cordon=("n1",), add_nodes=1, like="n1")
    steps = script_of_change(change, cluster).steps
    added, *others = [(one.after, type(one.commands[0])) for one in steps]
    assert added == (0, CreateObject)
    assert [kind for _, kind in others] == [DeleteObject, PatchObject]
    assert min(after for after, _ in others) > 0


def test_apply_creates_new_objects_and_merges_existing_objects(cluster, write, make):
    path = write("change.json", make.workload(name="web", replicas=9), make.pod("new"))
    patch, create = commands(ClusterChange(apply=(path,)), cluster)
    assert isinstance(patch, PatchObject)
    assert patch.patch["spec"]["replicas"] == 9
    assert "kind" not in patch.patch
    assert create.manifest["metadata"] == {"name": "new", "namespace": "default"}


def test_priority_classes_are_created_before_the_pods_that_reference_them(cluster, write, make):
    path = write("c.json", make.pod("p", priorityClassName="high"), make.priority_class("high", 9))
    kinds = [
        command.manifest["kind"] for command in commands(ClusterChange(apply=(path,)), cluster)
    ]
    assert kinds == ["PriorityClass", "Pod"]


def test_applied_objects_can_be_scaled_and_cordoned(cluster, write, make):
    path = write("c.json", make.workload(name="new"), make.node("n3"))
    change = ClusterChange(apply=(path,), scale=("deploy/new=4",), cordon=("n3",))
    assert len(commands(change, cluster)) == 4


def test_a_note_names_an_unknown_annotation_that_set_sets(cluster):
    path = "node/n1:metadata.annotations[fairlead.dev/drian]"
    script = script_of_change(ClusterChange(set=(f"{path}=requested",)), cluster)
    (note,) = (one for one in script.notes if "fairlead.dev/drian" in one)
    assert note.startswith("The annotation fairlead.dev/drian of Node n1 is unknown")


def test_a_deleted_object_can_be_applied_again(cluster, write, make):
    path = write("c.json", make.pod("solo"))
    delete, create = commands(ClusterChange(delete=("pod/solo",), apply=(path,)), cluster)
    assert isinstance(delete, DeleteObject)
    assert isinstance(create, CreateObject)


def test_the_namespace_option_applies_to_names_and_to_applied_objects(cluster, write):
    spec = {"containers": [{"name": "app", "image": "app:1"}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": spec}
    path = write("c.json", pod)
    [create] = commands(ClusterChange(apply=(path,), namespace="shop"), cluster)
    assert create.manifest["metadata"]["namespace"] == "shop"
    with pytest.raises(InputError, match="there is no Deployment shop/web"):
        commands(ClusterChange(scale=("deploy/web=1",), namespace="shop"), cluster)


def namespace(name):
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def test_an_applied_object_needs_its_namespace(snapshot, write, make):
    cluster = snapshot(make.node(), namespace("shop"), make.pod("web", "unlisted"))
    path = write("new.json", make.pod("x", "shpo"))
    with pytest.raises(InputError) as refused:
        script_of_change(ClusterChange(apply=(path,)), cluster)
    where, _, problem = str(refused.value).partition(' namespaces "shpo" not found; ')
    assert where.endswith("new.json: Pod shpo/x: metadata.namespace:")
    assert problem == "did you mean shop? known: shop"


@pytest.mark.parametrize("name", ["shop", "default", "unlisted", "new"])
def test_a_namespace_exists_if_it_is_dumped_or_applied_or_has_objects(snapshot, write, make, name):
    cluster = snapshot(make.node(), namespace("shop"), make.pod("web", "unlisted"))
    path = write("new.json", make.pod("x", name), namespace("new"))
    assert len(commands(ClusterChange(apply=(path,)), cluster)) == 2


def test_in_a_dump_without_namespaces_every_namespace_exists(cluster, write, make):
    path = write("new.json", make.pod("x", "absent"))
    assert len(commands(ClusterChange(apply=(path,)), cluster)) == 1


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (
            ClusterChange(scale=("deploy/web",)),
            "--scale: 'deploy/web' is not WORKLOAD/NAME=REPLICAS",
        ),
        (
            ClusterChange(scale=("deploy/web=many",)),
            "--scale: Deployment default/web: 'many' is not a number of replicas",
        ),
        (
            ClusterChange(scale=("deploy/web=-1",)),
            "--scale: Deployment default/web: '-1' is not a number of replicas",
        ),
        (
            ClusterChange(scale=("deploy/web=" + "9" * 30,)),
            "--scale: Deployment default/web: 9999",
        ),
        (
            ClusterChange(scale=("deploy/web=2", "deployment/web=3")),
            "--scale: Deployment default/web is scaled twice",
        ),
        (
            ClusterChange(set=("deploy/web:spec.replicas=5",), scale=("deploy/web=3",)),
            "--scale: Deployment default/web: spec.replicas: is given twice",
        ),
        (
            ClusterChange(set=("node/n1:spec.unschedulable=false",), cordon=("n1",)),
            "--cordon: Node n1: spec.unschedulable: is given twice",
        ),
        (
            ClusterChange(set=("node/n1:spec.unschedulable=false",), drain=("n1",)),
            "--drain: Node n1: spec.unschedulable: is given twice",
        ),
        (
            ClusterChange(priority_class=("urgent=2", "urgent=3")),
            "--priority-class: PriorityClass urgent gets a value twice",
        ),
        (ClusterChange(scale=("pod/solo=2",)), "--scale: a Pod cannot be scaled; only Deployment"),
        (ClusterChange(drain=("n7",)), "--drain: there is no Node n7"),
        (ClusterChange(delete=("pod/nobody",)), "--delete: there is no Pod nobody"),
        (ClusterChange(delete=("pod/solo", "pod/solo")), "--delete: there is no Pod solo"),
    ],
)
def test_an_impossible_change_is_refused(cluster, change, line):
    with pytest.raises(InputError) as refused:
        script_of_change(change, cluster)
    assert str(refused.value).startswith(line)


def claimed(size, volume_mode):
    """A StatefulSet with a claim template; `volume_mode` is a default of the API server."""
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
    template = {"metadata": {"name": "data"}, "spec": {**claim, **volume_mode}}
    stateful = workload("StatefulSet", "db")
    stateful["spec"] |= {"serviceName": "db", "volumeClaimTemplates": [template]}
    return stateful


def claim(size, volume_mode):
    resources = {"requests": {"storage": size}}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data-db-0", "namespace": "default"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": resources, **volume_mode},
        "status": {"phase": "Bound", "capacity": {"storage": "50Gi"}},
    }


@pytest.mark.parametrize(
    ("build", "size", "refused"),
    [
        pytest.param(claimed, "51200Mi", "", id="claim template as it is"),
        pytest.param(claimed, "80Gi", "updates to statefulset spec", id="larger claim template"),
        pytest.param(claim, "80Gi", "", id="larger claim"),
        pytest.param(claim, "20Gi", "can not be less than status.capacity", id="smaller claim"),
    ],
)
def test_apply_refuses_changes_that_the_api_server_refuses(
    snapshot, write, make, build, size, refused
):
    """Defaults and other ways to write an amount are no changes."""
    cluster = snapshot(make.node(), build("50Gi", {"volumeMode": "Filesystem"}))
    change = ClusterChange(apply=(write("new.json", build(size, {})),))
    if not refused:
        script_of_change(change, cluster)
        return
    with pytest.raises(InputError, match=refused):
        script_of_change(change, cluster)


CONTAINERS = [{"name": "app", "image": "app:1"}]
SCALED = {
    "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
    "maxReplicas": 3,
    "metrics": [{"type": "Resource"}],
}


def applied(kind, version="v1", **fields):
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "new"}, **fields}


@pytest.mark.parametrize(
    ("obj", "field"),
    [
        (applied("Pod", spec={"containers": []}), "spec.containers: Required"),
        (applied("Pod", spec={"containers": [None]}), "spec.containers[0]: Expected"),
        (applied("Pod", spec={"containers": CONTAINERS, "volumes": [{}]}), "spec.volumes[0].name"),
        (applied("CronJob", "batch/v1", spec={"schedule": "* * * * *"}),
         "spec.jobTemplate.spec.template.spec.containers: Required"),
        (applied("LimitRange", spec={"limits": [None]}), "spec.limits[0].type: Invalid"),
        (applied("ResourceQuota", spec={"hard": {"cpu": "-1"}}), "spec.hard[cpu]: Invalid"),
        (applied("ResourceQuota", spec={"scopes": ["Other"]}), "spec.scopes: Invalid"),
        (applied("PersistentVolumeClaim", spec={}), "spec.accessModes: Required"),
        (applied("PersistentVolume", spec={}), "spec.accessModes: Required"),
        (applied("StorageClass", "storage.k8s.io/v1"), "provisioner: Required"),
        (applied("HorizontalPodAutoscaler", "autoscaling/v2", spec=SCALED),
         "spec.metrics[0].resource: Required"),
        (applied("Node", spec={"taints": [None]}), "spec.taints[0]: Expected"),
        (applied("Service", spec={"selector": {"app": "web"}}), "spec.ports: Required"),
    ],
)  # fmt: skip
def test_a_new_object_that_the_api_server_refuses_is_refused(cluster, write, obj, field):
    path = write("new.json", obj)
    with pytest.raises(InputError) as refused:
        script_of_change(ClusterChange(apply=(path,)), cluster)
    assert str(refused.value).startswith(f"{path}: {obj['kind']} ")
    assert field in str(refused.value)


def test_an_autoscaler_may_scale_to_zero_replicas(cluster, write):
    """The cluster may have the feature gate HPAScaleToZero, unlike Fairlead's own API server."""
    target = {"type": "AverageValue", "averageValue": "30"}
    metric = {"type": "External", "external": {"metric": {"name": "queue"}, "target": target}}
    spec = {**SCALED, "minReplicas": 0, "metrics": [metric]}
    change = ClusterChange(
        apply=(write("a.json", applied("HorizontalPodAutoscaler", "autoscaling/v2", spec=spec)),)
    )
    assert commands(change, cluster)


def test_a_changed_object_is_refused_only_for_the_fields_that_are_valid_before(
    snapshot, write, make
):
    """The objects of a hand-written dump may lack fields, such as the image of a container."""
    old = applied("Pod", spec={"containers": [{"name": "app"}]})
    cluster = snapshot(make.node(), old)
    labelled = {**old, "metadata": {"name": "new", "labels": {"a": "b"}}}
    assert commands(ClusterChange(apply=(write("a.json", labelled),)), cluster)
    wrong = applied("Pod", spec={"containers": [{"name": "app"}, {"name": "app 2"}]})
    with pytest.raises(InputError, match=r"spec\.containers\[\d\]\.(name|image)"):
        commands(ClusterChange(apply=(write("b.json", wrong),)), cluster)
