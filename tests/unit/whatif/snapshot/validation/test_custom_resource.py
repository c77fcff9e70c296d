"""Custom resources are checked against the schema of their CustomResourceDefinition."""

import json

import msgspec
import pytest

from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.input.error import InputError
from fairlead.whatif.planner.new_pod import read_pod_file
from fairlead.whatif.question import what_if
from fairlead.whatif.scenario.timed_event import TimedEvent, steps_of
from fairlead.whatif.snapshot.validation import custom_resource

SPEC = {
    "type": "object",
    "required": ["size"],
    "properties": {
        "size": {"type": "integer", "minimum": 1},
        "color": {"type": "string", "enum": ["red", "blue"], "default": "red"},
    },
    "x-kubernetes-validations": [
        {"rule": "self.size < 10", "message": "is too large"},
        {"rule": "self.color == oldSelf.color", "message": "color is immutable"},
    ],
}


def definition(spec=SPEC, uid=""):
    """The definition of the kind Widget; with a `uid`, it is of a dump."""
    schema = {"type": "object", "properties": {"spec": spec, "status": {"type": "object"}}}
    version = {"served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"} | ({"uid": uid} if uid else {}),
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
            "versions": [{"name": "v1", **version, "subresources": {"status": {}}}],
        },
    }


def widget(version="v1", **spec):
    return {
        "apiVersion": f"example.com/{version}",
        "kind": "Widget",
        "metadata": {"name": "w", "namespace": "default"},
        "spec": spec,
    }


@pytest.mark.parametrize("is_in_dump", [False, True], ids=["same apply", "dump"])
@pytest.mark.parametrize(
    ("resource", "problem"),
    [
        (widget(size="big"), 'spec.size: Invalid value: "string": spec.size in body must be of'),
        (widget(color="red"), "spec.size: Required value"),
        (widget(size=1, colour="red"), "spec.colour: unknown field"),
        (widget(size=1, color="green"), 'spec.color: Unsupported value: "green"'),
        (widget(size=12), "spec: Invalid value: is too large"),
        (widget("v2", size=1), 'no matches for kind "Widget" in version "example.com/v2"'),
    ],
    ids=["type", "required", "unknown", "enum", "rule", "version"],
)
def test_a_custom_resource_that_breaks_the_schema_is_refused(
    snapshot, make, write, resource, problem, is_in_dump
):
    """The file names the resource before its definition, which does not matter."""
    dumped = [definition(uid="d")] if is_in_dump else []
    applied = resource
    if not is_in_dump:
        applied = {"apiVersion": "v1", "kind": "List", "items": [resource, definition()]}
    change = ClusterChange(apply=(write("new.json", applied),))
    with pytest.raises(InputError) as refused:
        what_if(snapshot(make.node("n"), *dumped), change)
    assert f"Widget default/w: {problem}" in str(refused.value)


def test_a_valid_custom_resource_is_applied(snapshot, make, write):
    """Its status is not checked, because the definition has a status subresource."""
    resource = widget(size=1) | {"status": "ready"}
    items = {"apiVersion": "v1", "kind": "List", "items": [definition(), resource]}
    what_if(snapshot(make.node("n")), ClusterChange(apply=(write("new.json", items),)))


def test_a_change_of_a_custom_resource_is_compared_with_its_old_version(snapshot, make, write):
    cluster = snapshot(make.node("n"), definition(uid="d"), widget(size=1, color="red"))
    what_if(cluster, ClusterChange(apply=(write("same.json", widget(size=2, color="red")),)))
    with pytest.raises(InputError, match="spec: Invalid value: color is immutable"):
        what_if(cluster, ClusterChange(apply=(write("new.json", widget(size=1, color="blue")),)))
    with pytest.raises(InputError, match=r"spec\.size: Invalid value: 0: spec.size in body should"):
        what_if(cluster, ClusterChange(set=("widget.example.com/w:spec.size=0",)))


def test_an_invalid_definition_of_a_custom_resource_is_refused(snapshot, make, write):
    spec = json.loads(json.dumps(SPEC).replace('"integer"', '"integr"'))
    items = {"apiVersion": "v1", "kind": "List", "items": [definition(spec), widget(size=1)]}
    change = ClusterChange(apply=(write("new.json", items),))
    with pytest.raises(InputError, match=r'widgets\.example\.com: .*Unsupported value: "integr"'):
        what_if(snapshot(make.node("n")), change)


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        ("names", 5, "CustomResourceDefinition widgets.example.com: spec.names: Expected `object`"),
        ("versions", None, 'no matches for kind "Widget" in version "example.com/v1"'),
    ],
)
def test_a_definition_in_the_dump_with_an_odd_field_is_refused(
    snapshot, make, field, value, problem
):
    bad = definition(uid="d")
    bad["spec"][field] = value
    cluster = snapshot(make.node("n"), bad, widget(size=1))
    with pytest.raises(InputError) as refused:
        what_if(cluster, ClusterChange(set=("widget/w:spec.size=2",)))
    assert problem in str(refused.value)


@pytest.mark.parametrize(
    ("merge", "problem"),
    [
        ({"size": 12}, "spec: Invalid value: is too large"),
        ({"colour": "red"}, "spec.colour: unknown field"),
    ],
)
def test_a_scenario_that_patches_or_creates_an_invalid_custom_resource_is_refused(
    snapshot, make, tmp_path, merge, problem
):
    existing = widget(size=1)
    cluster = snapshot(make.node("n"), definition(uid="d"), existing).inventory()
    patch = {"target": "widget/default/w", "merge": {"spec": merge}}
    created = widget(**{"size": 1, **merge})
    created["metadata"]["name"] = "v"
    for form in ({"patch": patch}, {"create": created}):
        event = msgspec.convert({"at": "1m", **form}, TimedEvent)
        with pytest.raises(InputError) as refused:
            steps_of("s.yaml", tmp_path, [event], cluster, 0)
        assert problem in str(refused.value)


def steps(folder, cluster, *events):
    """Read the scenario's `events`, which are one minute apart."""
    forms = [{"at": f"{at}m", **event} for at, event in enumerate(events)]
    timed = [msgspec.convert(form, TimedEvent) for form in forms]
    return steps_of("s.yaml", folder, timed, cluster, 0)


def test_a_patch_of_a_scenario_is_checked_against_the_object_after_earlier_patches(
    snapshot, make, tmp_path
):
    """The size may grow by one with each patch."""
    rule = {"rule": "self.size <= oldSelf.size + 1", "message": "grows too fast"}
    spec = SPEC | {"x-kubernetes-validations": [rule]}

    def patched(*sizes):
        cluster = snapshot(make.node("n"), definition(spec, uid="d"), widget(size=1)).inventory()
        target = "widget/default/w"
        forms = [{"patch": {"target": target, "merge": {"spec": {"size": size}}}} for size in sizes]
        return [one.value["spec"]["size"] for one in steps(tmp_path, cluster, *forms)[2]]

    assert patched(2, 3) == [2, 3]
    with pytest.raises(InputError, match=r"events\[1\].*spec: Invalid value: grows too fast"):
        patched(2, 4)


def test_an_object_of_a_scenario_is_checked_by_its_definition_after_earlier_patches(
    snapshot, make, tmp_path
):
    cluster = snapshot(make.node("n"), definition(uid="d")).inventory()
    versions = definition(json.loads(json.dumps(SPEC).replace("< 10", "< 20")))["spec"]["versions"]
    target = "customresourcedefinition/widgets.example.com"
    patch = {"patch": {"target": target, "merge": {"spec": {"versions": versions}}}}
    create = {"create": widget(size=12)}
    with pytest.raises(
        InputError, match=r"events\[0\]\.create: .*spec: Invalid value: is too large"
    ):
        steps(tmp_path, cluster, create, patch)
    _, [created], _ = steps(tmp_path, cluster, patch, create)
    assert created.value["spec"] == {"size": 12}


def test_a_scenario_reads_a_definition_only_once(snapshot, make, tmp_path, monkeypatch):
    cluster = snapshot(make.node("n"), definition(uid="d"), widget(size=1)).inventory()
    read = []
    whole = custom_resource.custom_type
    monkeypatch.setattr(
        custom_resource, "custom_type", lambda version: read.append(version) or whole(version)
    )
    patches = [
        {"patch": {"target": "widget/default/w", "merge": {"spec": {"size": size}}}}
        for size in (2, 3, 4)
    ]
    steps(tmp_path, cluster, *patches)
    assert len(read) == 1


TEMPLATE = {"spec": {"containers": [{"name": "c", "image": "i"}]}}


def job_definition():
    """The definition of Volcano's Job in a later version, with the field `later`."""
    properties = {"tasks": {"type": "array", "x-kubernetes-preserve-unknown-fields": True}}
    properties["tasks"]["items"] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    properties["later"] = {"type": "integer", "maximum": 5}
    made = definition({"type": "object", "properties": properties}, uid="d")
    made["metadata"]["name"] = "jobs.batch.volcano.sh"
    made["spec"]["group"] = "batch.volcano.sh"
    made["spec"]["names"] = {"plural": "jobs", "singular": "job", "kind": "Job"}
    made["spec"]["versions"][0]["name"] = "v1alpha1"
    return made


def test_the_workload_of_a_pod_file_is_checked_by_its_definition_in_the_dump(snapshot, make, write):
    inventory = snapshot(make.node("n"), job_definition()).inventory()

    def checked(later):
        job = {
            "apiVersion": "batch.volcano.sh/v1alpha1",
            "kind": "Job",
            "metadata": {"name": "train"},
            "spec": {"tasks": [{"replicas": 1, "template": TEMPLATE}], "later": later},
        }
        read_pod_file(str(write("job.json", job)), "").refuse_malformed(inventory)

    checked(5)
    with pytest.raises(InputError, match=r"spec\.later: Invalid value: 6"):
        checked(6)


@pytest.mark.parametrize("is_in_file", [False, True], ids=["dump", "file"])
def test_each_custom_resource_of_a_pod_file_is_checked(snapshot, make, write, is_in_file):
    """The workload in the file is a built-in one."""
    defined = [definition()] if is_in_file else []
    inventory = snapshot(make.node("n"), *([] if defined else [definition(uid="d")])).inventory()

    def checked(other):
        items = [make.workload(), other, *defined]
        path = write("new.json", {"apiVersion": "v1", "kind": "List", "items": items})
        read_pod_file(str(path), "").refuse_malformed(inventory)

    checked(widget(size=1))
    with pytest.raises(InputError, match=r"Widget default/w: spec\.colour: unknown field"):
        checked(widget(size=1, colour="red"))


def test_a_queue_beside_the_workload_of_a_pod_file_may_have_fields_of_a_newer_definition(
    snapshot, make, write
):
    queues = job_definition()
    queues["metadata"]["name"] = "queues.scheduling.volcano.sh"
    queues["spec"]["group"] = "scheduling.volcano.sh"
    queues["spec"]["names"] = {"plural": "queues", "singular": "queue", "kind": "Queue"}
    queues["spec"]["versions"][0]["name"] = "v1beta1"
    queue = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": "q"},
        "spec": {"later": 5},
    }
    items = [make.workload(), queue]
    file = read_pod_file(
        str(write("new.json", {"apiVersion": "v1", "kind": "List", "items": items})), ""
    )
    file.refuse_malformed(snapshot(make.node("n"), queues).inventory())
    with pytest.raises(InputError, match=r"Queue q: spec\.later: unknown field"):
        file.refuse_malformed(snapshot(make.node("n")).inventory())
