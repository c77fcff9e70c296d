"""Fields that are set by their path, validated with the schema of the kind."""

from __future__ import annotations

import pytest

from fairlead.apiserver.endpoints.request.typed_object import schema_of_kind
from fairlead.apiserver.kind import DEPLOYMENT, NODE, POD_DISRUPTION_BUDGET
from fairlead.whatif.change.edit.field_path import SetFieldError, set_field


def web():
    containers = [{"name": "app", "image": "a:1"}, {"name": "log", "image": "l:1"}]
    return {"spec": {"replicas": 1, "template": {"spec": {"containers": containers}}}}


def changed(path, text, kind=DEPLOYMENT, obj=None):
    obj = web() if obj is None else obj
    set_field(obj, path, text, None if kind is None else schema_of_kind(kind))
    return obj


def problem(path, text, kind=DEPLOYMENT):
    with pytest.raises(SetFieldError) as refused:
        changed(path, text, kind)
    return f"{refused.value.field}: {refused.value.problem}"


def test_a_value_has_the_type_of_its_field():
    assert changed("spec.replicas", "8")["spec"]["replicas"] == 8
    assert changed("spec.paused", "true")["spec"]["paused"] is True
    labels = changed("metadata.labels[example.com/tier]", "8", NODE, {})["metadata"]["labels"]
    assert labels == {"example.com/tier": "8"}
    limits = changed("spec.minAvailable", "50%", POD_DISRUPTION_BUDGET, {})["spec"]
    assert limits == {"minAvailable": "50%"}
    assert changed("spec.minAvailable", "2", POD_DISRUPTION_BUDGET, {})["spec"] == {
        "minAvailable": 2
    }
    taints = changed("spec.taints", "[{key: a, effect: NoSchedule}]", NODE, {})["spec"]["taints"]
    assert taints == [{"key": "a", "effect": "NoSchedule"}]


def test_list_items_are_addressed_by_key_or_index():
    for item in ("app", "0"):
        containers = changed(f"spec.template.spec.containers[{item}].image", "a:2")
        assert containers["spec"]["template"]["spec"]["containers"][0]["image"] == "a:2"


def test_keys_with_dots_are_in_brackets_and_may_have_quotes():
    for key in ("example.com/tier", "'example.com/tier'", '"example.com/tier"'):
        labels = changed(f"metadata.labels[{key}]", "8", NODE, {})["metadata"]["labels"]
        assert labels == {"example.com/tier": "8"}


def test_null_removes_a_field_and_an_item():
    assert "replicas" not in changed("spec.replicas", "null")["spec"]
    left = changed("spec.template.spec.containers[app]", "null")
    assert [one["name"] for one in left["spec"]["template"]["spec"]["containers"]] == ["log"]


def test_null_in_a_map_of_texts_is_an_empty_text():
    """`{zone:a}` is {"zone:a": null} in YAML. With the text "", validation refuses the key."""
    made = changed("spec.template.spec.nodeSelector", "{zone:a}")
    assert made["spec"]["template"]["spec"]["nodeSelector"] == {"zone:a": ""}


def test_null_inside_an_object_is_an_absent_field():
    """A field is absent at every level; elements of lists are kept, so that they are refused."""
    strategy = changed("spec.strategy", "{type: Recreate, rollingUpdate: null}")["spec"]["strategy"]
    assert strategy == {"type": "Recreate"}
    spec = "{containers: [{name: a, image: i, resources: null, env: [null]}], nodeSelector: null}"
    template = changed("spec.template.spec", spec)["spec"]["template"]["spec"]
    assert template == {"containers": [{"name": "a", "image": "i", "env": [None]}]}
    unknown = changed("spec.strategy", "{typ: null}")["spec"]["strategy"]
    assert unknown == {"typ": None}


def test_null_creates_no_missing_parent_objects():
    assert changed("spec.template.spec.affinity.nodeAffinity", "null") == web()
    assert changed("metadata.labels[a]", "null", NODE, {}) == {}


def test_missing_parent_objects_are_created():
    spec = changed("spec.strategy.rollingUpdate.maxSurge", "1")["spec"]
    assert spec["strategy"] == {"rollingUpdate": {"maxSurge": 1}}


def test_labels_of_a_custom_resource_are_texts():
    """A Deployment reads the same value as a text; other values have no known type."""
    pool = {"spec": {"template": {"metadata": {"labels": {"a": "b"}}}, "weight": 1}}
    found = changed("spec.template.metadata.labels.v", "2", None, pool)["spec"]
    assert found["template"]["metadata"]["labels"] == {"a": "b", "v": "2"}
    assert changed("metadata.annotations[x/y]", "true", None, {}) == {
        "metadata": {"annotations": {"x/y": "true"}}
    }
    assert changed("spec.weight", "2", None, pool)["spec"]["weight"] == 2
    assert changed("metadata.labels[1]", "x", None, {}) == {"metadata": {"labels": {"1": "x"}}}
    with_dots = "a key with dots is written in brackets: metadata.labels[example.com/tier]"
    assert problem("metadata.labels.example.com/tier", "x", None).endswith(with_dots)


def test_a_custom_resource_takes_any_field_and_yaml():
    obj = changed("spec.weights", "{a: 1}", None, {"spec": {}})
    assert obj == {"spec": {"weights": {"a": 1}}}
    modes = {text: changed("mode", text, None, {})["mode"] for text in ("Off", "no", "true")}
    assert modes == {"Off": "Off", "no": "no", "true": True}
    policies = changed("policies", "[{mode: Off, is: true}, on]", None, {})["policies"]
    assert policies == [{"mode": "Off", "is": True}, "on"]


def test_an_index_into_a_missing_list_of_a_custom_resource_is_refused():
    """Without a schema, the index would become a key of a new object."""
    with pytest.raises(SetFieldError) as caught:
        changed("spec.budgets[0].nodes", "1", None, {"spec": {}})
    assert (caught.value.field, caught.value.problem) == (
        "spec.budgets[0]",
        "the list is empty; set it as a whole",
    )
    assert changed('spec.map["0"]', "1", None, {}) == {"spec": {"map": {"0": 1}}}
    assert changed("spec.list[0]", "1", None, {"spec": {"list": [2]}}) == {"spec": {"list": [1]}}


@pytest.mark.parametrize(
    ("path", "text", "said"),
    [
        ("spec.replica", "1", "spec.replica: there is no such field; did you mean replicas?"),
        ("spec.replicas", "many", "spec.replicas: 'many' is not an integer"),
        ("spec.paused", "1", "spec.paused: '1' is neither true nor false"),
        ("spec.replicas.x", "1", "spec.replicas.x: its parent is neither an object nor a list"),
        (
            "metadata.labels.a.b",
            "gold",
            "metadata.labels.a.b: a key with dots is written in brackets: metadata.labels[a.b]",
        ),
        (
            "metadata.labels.a\\.b",
            "gold",
            "metadata.labels.a\\.b: a key with dots is written in brackets: metadata.labels[a.b]",
        ),
        ("spec..x", "1", "spec..x: is not a path such as"),
        ("metadata.name", "x", "metadata.name: cannot be changed"),
        (
            "spec.template.spec.containers[web].image",
            "x",
            "spec.template.spec.containers[web]: no item has this name; known: app, log",
        ),
        (
            "spec.template.spec.containers[2]",
            "null",
            "spec.template.spec.containers[2]: there are 2 items; the index of the first is 0",
        ),
        (
            "spec.template.spec.volumes[0].name",
            "x",
            "spec.template.spec.volumes[0]: the list is empty; set it as a whole",
        ),
        ("spec.selector", "x", "spec.selector: 'x' is not an object such as {a: b}"),
        ("spec.selector", "{x", "spec.selector: '{x' is not YAML"),
    ],
)
def test_invalid_paths_and_values_are_refused(path, text, said):
    assert problem(path, text).startswith(said)
