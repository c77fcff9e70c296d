"""Objects as the API stores them: lists are expanded, identities validated, duplicates refused."""

from __future__ import annotations

import json

import pytest

from fairlead.api.codec import UNNAMED
from fairlead.whatif.input.document import Document, read_listings
from fairlead.whatif.input.document import read as read_documents
from fairlead.whatif.input.error import InputError
from fairlead.whatif.snapshot.manifest_reader import manifests, manifests_to_apply


def pod(name="web", **metadata):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **metadata}}


def read(*values, **keywords):
    return manifests([Document("f.yaml", value) for value in values], **keywords)


@pytest.mark.parametrize(
    "value",
    [
        [pod("a"), pod("b")],
        {"kind": "List", "apiVersion": "v1", "items": [pod("a"), pod("b")]},
        {"kind": "List", "items": [{"kind": "PodList", "items": [pod("a")]}, pod("b")]},
        {
            "kind": "PodList",
            "apiVersion": "v1",
            "items": [{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}}],
        },
    ],
)
def test_lists_of_any_kind_are_expanded(value):
    assert [found.title for found in read(value)] == ["Pod default/a", "Pod default/b"]


@pytest.mark.parametrize("kind", ["List", "PodList"])
def test_null_items_are_an_empty_list(kind):
    """Go programs write a nil slice as null."""
    empty = {"kind": kind, "apiVersion": "v1", "metadata": {}, "items": None}
    nested = {"kind": "List", "items": [empty, pod("b")]}
    assert [found.title for found in read(empty, pod("a"), nested)] == [
        "Pod default/a",
        "Pod default/b",
    ]


def test_null_items_in_a_file_to_apply_are_an_empty_list(tmp_path):
    path = tmp_path / "change.json"
    lists = [{"kind": "PodList", "apiVersion": "v1", "items": one} for one in (None, [pod("a")])]
    path.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": lists}))
    assert [one.title for one, _ in manifests_to_apply(read_documents(str(path)))] == [
        "Pod default/a"
    ]


def test_nulls_and_managed_fields_are_removed():
    [found] = read(pod(managedFields=[{"manager": "kubectl"}], creationTimestamp=None))
    assert found.value["metadata"] == {"name": "web", "namespace": "default"}


def test_a_null_in_a_map_of_texts_is_an_empty_text():
    """So Go decodes it: the pod then runs only on nodes with an empty label `disk`."""
    made = pod(labels={"a": None}, annotations=None)
    made["spec"] = {"nodeSelector": {"disk": None}, "volumes": [{"emptyDir": None, "name": "a"}]}
    [found] = read(made)
    assert found.value["metadata"]["labels"] == {"a": ""}
    assert "annotations" not in found.value["metadata"]
    assert found.value["spec"] == {"nodeSelector": {"disk": ""}, "volumes": [{"name": "a"}]}


def test_nulls_of_schemas_are_removed():
    """A CustomResourceDefinition may define fields with the names of maps of texts."""
    labels = {"type": "object", "default": None}
    schema = {"properties": {"metadata": {"properties": {"labels": labels}}}}
    made = pod() | {"spec": {"schema": schema}}
    [found] = read(made)
    read_schema = found.value["spec"]["schema"]["properties"]["metadata"]
    assert read_schema == {"properties": {"labels": {"type": "object"}}}


def test_namespaces_are_filled_in_where_a_kind_has_them():
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "namespace": "x"}}
    found = read(pod(), pod("b", namespace="own"), node, namespace="store")
    assert [each.title for each in found] == ["Pod store/web", "Pod own/b", "Node n"]


@pytest.mark.parametrize(
    ("version", "kind"),
    [
        ("policy/v1beta1", "PodDisruptionBudget"),
        ("batch/v1beta1", "CronJob"),
        ("node.k8s.io/v1beta1", "RuntimeClass"),
        ("storage.k8s.io/v1beta1", "CSINode"),
        ("storage.k8s.io/v1beta1", "CSIDriver"),
        ("storage.k8s.io/v1beta1", "CSIStorageCapacity"),
        ("resource.k8s.io/v1beta1", "ResourceSlice"),
    ],
)
def test_former_api_versions_are_converted_to_present_versions(version, kind):
    """Kubernetes 1.16 to 1.33 print these kinds in these versions."""
    [found] = read({"apiVersion": version, "kind": kind, "metadata": {"name": "b"}})
    assert found.value["apiVersion"] == version.replace("v1beta1", "v1")


@pytest.mark.parametrize("selector", [{}, {"matchLabels": {}}, {"matchLabels": {"app": "web"}}])
def test_an_empty_selector_of_a_former_budget_matches_no_pod(selector):
    budget = {"kind": "PodDisruptionBudget", "metadata": {"name": "b"}}
    spec = {"minAvailable": 1, "selector": selector}
    former, current = (
        {**budget, "apiVersion": f"policy/{version}", "spec": spec} for version in ("v1beta1", "v1")
    )
    [found] = read(former)
    has_terms = any(selector.values())
    assert found.value["spec"] == (spec if has_terms else {"minAvailable": 1})
    assert read(current)[0].value["spec"] == spec


def test_unknown_versions_of_kinds_that_matter_are_refused():
    with pytest.raises(InputError) as refused:
        read({**pod(), "apiVersion": "v2"})
    assert str(refused.value) == ("f.yaml: Pod web: apiVersion: v2 is not supported; expected v1")
    autoscaler = {"apiVersion": "autoscaling/v2beta2", "kind": "HorizontalPodAutoscaler",
                  "metadata": {"name": "h"}}  # fmt: skip
    assert read(autoscaler)[0].value["apiVersion"] == "autoscaling/v2"  # with the same fields


def test_an_autoscaler_of_version_1_is_converted_to_version_2():
    spec = {"maxReplicas": 3, "targetCPUUtilizationPercentage": 60}
    (found,) = read(
        {
            "apiVersion": "autoscaling/v1",
            "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "h"},
            "spec": spec,
        }
    )
    target = {"type": "Utilization", "averageUtilization": 60}
    assert found.value["spec"]["metrics"] == [
        {"type": "Resource", "resource": {"name": "cpu", "target": target}}
    ]


def test_an_autoscaler_of_an_early_beta_is_kept_unchanged():
    meta = {"kind": "HorizontalPodAutoscaler", "metadata": {"name": "h"}}
    assert len(read({"apiVersion": "autoscaling/v2beta1", **meta})) == 1


def test_a_kind_in_the_core_group_that_belongs_to_another_group_is_refused():
    """The core group has no custom resources, so the object would have no effect."""
    wrong = {"apiVersion": "v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 5}
    with pytest.raises(InputError) as refused:
        read(wrong)
    line = "apiVersion: v1 has no kind PriorityClass; scheduling.k8s.io/v1 has"
    assert str(refused.value) == f"f.yaml: PriorityClass high: {line}"
    event = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}}
    assert len(read(event)) == 1


def test_an_error_names_the_document_of_a_file_with_several(tmp_path):
    """Documents without content do not count."""
    path = tmp_path / "several.yaml"
    path.write_text("---\n# nothing\n---\n{apiVersion: v1, kind: Namespace, metadata: {name: a}}\n"
                    "---\n{kind: List, apiVersion: v1, items: [{kind: Pod}]}\n")  # fmt: skip
    with pytest.raises(InputError) as refused:
        manifests(read_documents(str(path)))
    assert str(refused.value).endswith(
        "several.yaml: document 2: items[0]: (unnamed): apiVersion: is required and must be text"
    )


FOO = '{"apiVersion": "example.com/v1", "kind": "Foo", "metadata": {"name": "a"}, "spec": %s}'


@pytest.mark.parametrize(("item", "place"), [(FOO, "Foo a"), ("%s", "items[0]")])
def test_an_item_that_is_nested_too_deeply_is_refused(tmp_path, item, place):
    """The limit does not depend on the version of Python, as that of the JSON decoder does."""
    path = tmp_path / "deep.json"
    path.write_text('{"kind": "List", "items": [' + item % ("[" * 201 + "]" * 201) + "]}")
    with pytest.raises(InputError) as refused:
        manifests(read_listings(str(path)))
    assert str(refused.value) == f"{path}: {place}: is nested too deeply"


def test_unknown_kinds_are_kept_unchanged():
    [found] = read({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}})
    assert found.title == "Widget w"


NO_TEXT = "expected text, got"


@pytest.mark.parametrize(
    ("value", "line"),
    [
        ("text", "f.yaml: expected an object with apiVersion and kind, got text"),
        (7, "f.yaml: expected an object with apiVersion and kind, got a number"),
        (
            {"kind": "Pod", "metadata": {"name": "a"}},
            "f.yaml: a: apiVersion: is required and must be text",
        ),
        ({"apiVersion": "v1"}, "f.yaml: (unnamed): kind: is required and must be text"),
        ({"apiVersion": "v1", "kind": 3}, "f.yaml: (unnamed): kind: is required and must be text"),
        (
            {"apiVersion": "v1", "items": [pod()]},
            "f.yaml: is a list without a kind; the file may be cut off",
        ),
        (
            {"cluster": {"files": ["dump.yaml"]}, "duration": "1h"},
            "f.yaml: is a scenario, not a list of objects; use fairlead simulate",
        ),
        (
            {"events": []},
            "f.yaml: is a scenario, not a list of objects; use fairlead simulate",
        ),
        (
            {
                "apiVersion": "kubescheduler.config.k8s.io/v1",
                "kind": "KubeSchedulerConfiguration",
                "profiles": [],
            },
            (
                "f.yaml: is a configuration of kube-scheduler, not an object; use --config, or "
                "--new-config for a what-if that compares both configurations"
            ),
        ),
        (
            {"apiVersion": "descheduler/v1alpha2", "kind": "DeschedulerPolicy", "profiles": []},
            (
                "f.yaml: is a configuration of the descheduler, not an object; use fairlead whatif "
                "--descheduler"
            ),
        ),
        (
            {"actions": "allocate", "tiers": []},
            (
                "f.yaml: is a configuration of a batch scheduler, not an object; use "
                "--batch-config, or --new-batch-config for a what-if that compares both "
                "configurations"
            ),
        ),
        (pod(""), "f.yaml: Pod (unnamed): metadata.name: is required"),
        (
            {**pod(), "metadata": "web"},
            "f.yaml: Pod (unnamed): metadata: expected an object, got text",
        ),
        (
            {**pod(""), "metadata": {"generateName": "a-"}},
            "f.yaml: Pod a-: metadata.name: is required; kubectl apply refuses generateName",
        ),
        (
            pod(5),
            f"f.yaml: Pod 5: metadata.name: {NO_TEXT} a number; put it in quotes",
        ),
        (
            pod(False),
            f"f.yaml: Pod {UNNAMED}: metadata.name: {NO_TEXT} true or false; put it in quotes",
        ),
        (
            {"kind": "List", "items": [pod(), 5]},
            "f.yaml: items[1]: expected an object with apiVersion and kind, got a number",
        ),
        (pod(namespace=[]), "f.yaml: Pod web: metadata.namespace: expected text, got a list"),
        ({"kind": "List", "items": 4}, "f.yaml: items: expected a list, got a number"),
        ([pod(), pod()], "f.yaml: Pod default/web: metadata.name: appears twice"),
    ],
)
def test_documents_that_are_not_objects_are_refused(value, line):
    with pytest.raises(InputError) as refused:
        read(value)
    assert str(refused.value) == line


@pytest.mark.parametrize(
    ("source", "value", "command"),
    [
        ("k8s/kustomization.yaml", {"resources": ["web.yaml"]}, "kustomize build"),
        (
            "a.yaml",
            {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization"},
            "kustomize build",
        ),
        ("web/Chart.yaml", {"apiVersion": "v2", "name": "web"}, "helm template"),
    ],
)
def test_inputs_of_kustomize_and_helm_are_refused_with_the_command_to_use(source, value, command):
    with pytest.raises(InputError, match=f"{source}: is .*; use the output of {command} instead"):
        manifests([Document(source, value)])


def test_a_duplicate_names_the_other_file():
    with pytest.raises(InputError, match=r"b.yaml: Pod default/web: .* \(first in a.yaml\)"):
        manifests([Document("a.yaml", pod()), Document("b.yaml", pod())])
