"""Requests that would exhaust stack, memory or time are refused with a reason."""

from __future__ import annotations

import json

import pytest

from fairlead.api.text.nesting import DEPTH_MAX, TOO_DEEP
from fairlead.apiserver.request import Request
from fairlead.apiserver.storage.compact_storage import CompactStorage
from fairlead.apiserver.suspension import PAUSE

JSON, YAML = "application/json", "application/yaml"
APPLY = "application/apply-patch+yaml"
OPERATIONS = "application/json-patch+json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
DIGITS = "9" * 5000


@pytest.mark.parametrize(
    "body", [b"[" * 100_000, b'{"a":' * 100_000, b"- " * 100_000, b"{a: " * 100_000]
)
@pytest.mark.parametrize("media_type", [JSON, YAML])
def test_bodies_that_are_nested_too_deeply_are_refused(api, config_maps, body, media_type):
    """Parsers in C would overflow the stack, which no exception handler can catch."""
    assert api.post(config_maps, body, content_type=media_type).status == 400


@pytest.mark.parametrize("media_type", [OPERATIONS, MERGE, STRATEGIC, APPLY])
@pytest.mark.parametrize("body", [b"[" * 100_000, b'{"a":' * 100_000])
def test_patches_that_are_nested_too_deeply_are_refused(api, config_maps, body, media_type):
    api.config_map("a")
    query = "?fieldManager=m" if media_type == APPLY else ""
    assert api.patch(f"{config_maps}/a{query}", body, media_type).status == 400


def test_a_depth_above_the_limit_is_refused_even_if_it_can_be_parsed(api, config_maps):
    """This includes the first of two members with the same name, although only the last counts."""
    deep = b"[" * 500 + b"]" * 500
    for body in (b'{"data":%b}' % deep, b'{"data":%b,"data":{}}' % deep):
        refused = api.post(config_maps, body)
        assert (refused.status, TOO_DEEP in refused.message) == (400, True)


@pytest.mark.parametrize("media_type", [JSON, YAML, MERGE, STRATEGIC, APPLY])
def test_the_maximum_depth_is_accepted(api, config_maps, media_type):
    """Values of this depth can be read without exhausting the stack."""
    deep = '{"f:a":' * (DEPTH_MAX - 6) + "{}" + "}" * (DEPTH_MAX - 6)
    fields = '{"metadata":{"managedFields":[{"manager":"m","fieldsV1":%s}],"labels":%s}}'
    api.config_map("a")
    for text in (fields % (deep, "{}"), fields % ("{}", deep), f'{{"data":{deep}}}'):
        if media_type in (JSON, YAML):
            answer = api.post(config_maps, text, content_type=media_type)
        else:
            query = "?fieldManager=m" if media_type == APPLY else ""
            answer = api.patch(f"{config_maps}/a{query}", text, media_type)
        assert answer.status < 500, answer.message


def test_numbers_out_of_the_range_of_a_double_are_refused(api, config_maps):
    for number in ("1e999", DIGITS):
        body = b'{"metadata":{"name":"a","generation":%b}}' % number.encode()
        assert api.post(config_maps, body).status == 400


@pytest.mark.parametrize("query", ["limit", "timeoutSeconds", "resourceVersion"])
def test_parameters_with_too_many_digits_are_refused(api, config_maps, query):
    refused = api.get(f"{config_maps}?{query}={DIGITS}")
    assert (refused.status, "value out of range" in refused.message) == (400, True)


def test_a_grace_period_with_too_many_digits_is_refused(api, config_maps):
    api.config_map("a")
    assert api.delete(f"{config_maps}/a?gracePeriodSeconds={DIGITS}").status == 400


def patched(api, config_maps, operations):
    api.config_map("a")
    return api.patch(f"{config_maps}/a", json.dumps(operations), OPERATIONS).status


def test_repeated_copy_operations_are_refused(api, config_maps):
    """Each operation doubles the object, beyond any size that could be sent."""
    first = {"op": "add", "path": "/data", "value": {"a": "x" * 1000}}
    more = [{"op": "copy", "from": "/data", "path": f"/data/a{n}"} for n in range(40)]
    assert patched(api, config_maps, [first, *more]) == 422


def test_a_patch_that_creates_too_deep_values_is_refused(api, config_maps):
    """A patch must not create values that would be refused in a body."""
    digging = [{"op": "add", "path": "/data" + "/a" * n, "value": {}} for n in range(300)]
    assert patched(api, config_maps, digging) == 422


def test_repeated_move_operations_are_refused(api, config_maps):
    more = [{"op": "move", "from": "/data/a/0", "path": "/data/a/1"}] * 9_000
    for length, status in ((12_000, 422), (200_000, 413)):
        first = {"op": "add", "path": "/data", "value": {"a": [1] * length}}
        assert patched(api, config_maps, [first, *more]) == status


def test_array_indexes_with_too_many_digits_are_refused(api, config_maps):
    first = {"op": "add", "path": "/metadata/finalizers", "value": []}
    there = {"op": "add", "path": f"/metadata/finalizers/{DIGITS}", "value": "a"}
    assert patched(api, config_maps, [first, there]) == 422


def test_long_texts_that_yaml_aliases_repeat_are_refused(api, config_maps):
    """The aliases are short, but they repeat a long text."""
    aliases = b"*a, " * 100_000
    body = b"data: {a: &a '%b', b: [%b]}" % (b"x" * 100_000, aliases)
    refused = api.post(config_maps, body, content_type=YAML)
    assert (refused.status, "aliases repeat more than" in refused.message) == (400, True)


MANY = 2_500


def pods_of(api, pods, **spec):
    named = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    named["spec"] |= spec
    assert api.post(pods, named).status == 201
    return named


def containers(image):
    return [{"name": f"c{number}", "image": image} for number in range(MANY)]


def test_many_items_are_merged_by_their_keys_in_linear_time(api, pods):
    """The time is proportional to the number of items, not to its square."""
    pods_of(api, pods, containers=containers("i"))
    patch = {"spec": {"containers": containers("j")}}
    patched = api.patch(f"{pods}/a", patch, STRATEGIC)
    assert {one["image"] for one in patched.json["spec"]["containers"]} == {"j"}


def test_many_items_are_removed_from_a_list_in_linear_time(api, config_maps):
    finalizers = [f"a.b/c{number}" for number in range(MANY)]
    api.config_map("a", finalizers=finalizers)
    patch = {"metadata": {"$deleteFromPrimitiveList/finalizers": finalizers[1:]}}
    patched = api.patch(f"{config_maps}/a", patch, STRATEGIC)
    assert patched.json["metadata"]["finalizers"] == finalizers[:1]


def test_many_tolerations_and_gates_are_compared_in_linear_time(api, pods):
    tolerations = [{"key": f"k{number}", "operator": "Exists"} for number in range(MANY)]
    gates = [{"name": f"g{number}"} for number in range(MANY)]
    pods_of(api, pods, tolerations=tolerations, schedulingGates=gates)
    patched = api.patch(f"{pods}/a", {"spec": {"schedulingGates": gates[1:]}})
    assert (patched.status, len(patched.json["spec"]["schedulingGates"])) == (200, MANY - 1)


def test_a_refusal_omits_a_diff_that_is_too_long(api, pods):
    made = pods_of(api, pods, containers=containers("i"))
    for container in made["spec"]["containers"]:
        container["command"] = ["x"]
    refused = api.put(f"{pods}/a", made)
    assert (refused.status, "more than a refusal can show" in refused.message) == (422, True)


def test_an_update_of_a_pod_without_containers_is_refused(api, pods):
    """A missing list is treated like an empty one."""
    pods_of(api, pods)
    assert api.put(f"{pods}/a", {"metadata": {"name": "a"}}).status == 422


def test_the_length_of_a_refusal_is_limited(api):
    """A thousand invalid items with a long list of allowed values would give 100 MB."""
    words = {"type": "string", "enum": [f"word-{number}" for number in range(10_000)]}
    spec = {"type": "object", "properties": {"spec": {"type": "array", "items": words}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": spec}}
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    whole = {"group": "a.io", "scope": "Cluster", "names": names, "versions": [version]}
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    assert api.post(path, {"metadata": {"name": "widgets.a.io"}, "spec": whole}).status == 201
    obj = {"apiVersion": "a.io/v1", "kind": "Widget", "metadata": {"name": "a"}}
    refused = api.post("/apis/a.io/v1/widgets", {**obj, "spec": ["x"] * 1_000})
    assert (refused.status, len(refused.text) < 12_000_000) == (422, True)


def test_field_managers_cannot_make_an_object_larger_than_etcd_stores(make_api, config_maps):
    """Each of them applies a small object, but the owned fields of all are stored with it."""
    api, statuses = make_api(storage=CompactStorage()), []
    for manager in range(5):
        data = {f"{manager}-{number:0200}": "" for number in range(1_500)}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data}
        answer = api.patch(f"{config_maps}/a?fieldManager=m{manager}&force=true", body, APPLY)
        statuses.append(answer.status)
    assert statuses == [201, 200, 500, 500, 500]
    assert answer.message == "etcdserver: request is too large"
    assert len(api.get(f"{config_maps}/a").json["metadata"]["managedFields"]) == 2


def test_bodies_with_too_many_values_are_refused(api, config_maps):
    """All encodings are limited, because the work for a request grows with the number of values."""
    data, many = "data: {a: b", {f"k{n}": "v" for n in range(50_000)}
    api.config_map("a")
    yaml = (
        "metadata: {name: b}\n" + data + ", " + ", ".join(f"k{n}: v" for n in range(50_000)) + "}"
    )
    for answer in (
        api.post(config_maps, {"metadata": {"name": "b"}, "data": many}),
        api.post(config_maps, {"metadata": {"name": "b"}, "unknown": [[]] * 50_000}),
        api.post(config_maps, yaml, content_type=YAML),
        api.patch(f"{config_maps}/a", {"data": many}),
        api.patch(f"{config_maps}/a", {"data": many}, STRATEGIC),
        api.delete(f"{config_maps}/a", {"preconditions": many}),
    ):
        assert (answer.status, answer.json["reason"]) == (413, "RequestEntityTooLarge")
        assert answer.message == "Request entity too large: limit is 15000 values"


@pytest.mark.parametrize(("count", "status"), [(4_900, 201), (5_100, 413)])
def test_the_limit_of_values_is_lower_for_an_apply(api, config_maps, count, status):
    """An apply compares the fields of all managers, which takes longer."""
    body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "b"},
        "data": {f"k{n}": "v" for n in range(count)},
    }
    assert api.patch(f"{config_maps}/b?fieldManager=m", body, APPLY).status == status


@pytest.mark.parametrize(("count", "status"), [(24_000, 201), (26_000, 413)])
def test_the_limit_of_values_is_higher_for_a_definition(api, count, status):
    properties = {f"p{number}": {"type": "string"} for number in range(count)}
    schema = {"openAPIV3Schema": {"type": "object", "properties": properties}}
    body = {
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    assert api.post(path, body).status == status


@pytest.mark.parametrize(("length", "pauses"), [(100, 0), (100_000, 2)])
def test_a_large_request_pauses_for_other_requests(api, config_maps, length, pauses):
    """It pauses after the body is decoded, and once more before the response."""
    body = json.dumps({"metadata": {"name": "a"}, "data": {"k": "v" * length}}).encode()
    request = Request("POST", config_maps, (), {"content-type": JSON}, body)
    steps = api.server.handle.steps(request, api.now)
    assert [next(steps) for _ in range(pauses)] == [PAUSE] * pauses
    with pytest.raises(StopIteration) as end:
        next(steps)
    assert end.value.value.status == 201


@pytest.mark.parametrize(("name", "media_type"), [("a", MERGE), ("a", APPLY), ("new", APPLY)])
def test_a_large_patch_pauses_for_other_requests(api, config_maps, name, media_type):
    """It pauses after the patch is computed, and once more before the response."""
    api.config_map("a")
    patch = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
    body = json.dumps({**patch, "data": {"k": "v" * 100_000}}).encode()
    query = (("fieldManager", "m"),)
    request = Request("PATCH", f"{config_maps}/{name}", query, {"content-type": media_type}, body)
    steps = api.server.handle.steps(request, api.now)
    assert [next(steps), next(steps)] == [PAUSE, PAUSE]
    with pytest.raises(StopIteration) as end:
        next(steps)
    assert end.value.value.status == (200 if name == "a" else 201)


def test_brackets_and_commas_in_strings_do_not_count_as_values(api, config_maps):
    text = '{"a\\": [' * 20_000 + ',"' * 100_000
    answer = api.post(config_maps, {"metadata": {"name": "a"}, "data": {"a": text}})
    assert (answer.status, answer.json["data"]["a"]) == (201, text)
    lines = "metadata: {name: b}\ndata:\n  a: |\n" + "    - k: [v, w]\n" * 50_000
    assert api.post(config_maps, lines, content_type=YAML).status == 201
