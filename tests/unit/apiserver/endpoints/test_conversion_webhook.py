"""Requests to a custom resource whose versions a webhook converts."""

from __future__ import annotations

import base64
import json

import pytest
from tests.unit.apiserver.endpoints.conftest import Api
from tests.unit.apiserver.widget import DEFINITIONS, NEW, OLD, Webhook, definition, new, old

from fairlead.apiserver.admission.policy.validating import ValidatingAdmissionPolicy
from fairlead.apiserver.admission.webhooks.plugin import MutatingAdmissionWebhook
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.suspension import WebhookAnswer, run_to_end

APPLY = "application/apply-patch+yaml"
JSON_PATCH = "application/json-patch+json"
WIDGET = Kind("example.com", "v1", "Widget", "widgets")
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
METADATA = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"


class ConvertingApi(Api):
    """A server that serves widgets; `hooks` answers admission webhooks by their URL."""

    def __init__(self, **options):
        super().__init__(**options)
        self.webhook = Webhook()
        self.hooks = {}
        self.meanwhile = None
        self.handle, self.server.handle = self.server.handle, self._handle
        self.post(DEFINITIONS, definition())

    def _handle(self, request, now):
        return run_to_end(self.handle.steps(request, now), self.call)

    def call(self, needed):
        if needed.url in self.hooks:
            return WebhookAnswer(body=self.hooks[needed.url](needed.body))
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            meanwhile()
        return WebhookAnswer(body=self.webhook.answer_text(needed.body))

    @property
    def calls(self):
        """The (version, names) of the reviews since the last look."""
        found = self.webhook.names
        self.webhook.reviews.clear()
        return found

    def stored(self, name="w"):
        return self.store.find(WIDGET, "default", name)

    def events(self, watch):
        """Return (type, name, version, spec) of the events that a watch has received."""
        while watch.has_waiting:
            run_to_end(watch.convert_waiting(), self.call)
        lines = [json.loads(line) for line in b"".join(watch.pop_lines()).splitlines()]
        return [
            (
                line["type"],
                line["object"].get("metadata", {}).get("name", ""),
                line["object"].get("apiVersion", "").rpartition("/")[2],
                line["object"].get("spec"),
            )
            for line in lines
        ]


@pytest.fixture
def api():
    return ConvertingApi()


@pytest.fixture
def failing(api):
    """A server with the widget w, whose webhook fails."""
    api.post(NEW, new())
    api.webhook.failure = "no way"
    return api


# --- read ----------------------------------------------------------------------------------------


def test_an_object_is_read_in_the_version_of_the_request(api):
    api.post(NEW, new())
    found = api.get(f"{OLD}/w").json
    assert (found["apiVersion"], found["spec"]) == ("example.com/v1beta1", {"address": "a:1"})
    assert found["metadata"] == api.get(f"{NEW}/w").json["metadata"]
    assert api.calls == [("v1beta1", ["w"])]


def test_nothing_is_converted_in_the_storage_version(api):
    api.post(NEW, new())
    made = api.get(f"{NEW}/w").json
    api.put(f"{NEW}/w", {**made, "spec": {"host": "b"}})
    api.patch(f"{NEW}/w", {"spec": {"port": 7}})
    api.get(NEW)
    watch = api.get(f"{NEW}?watch=1")
    api.patch(f"{NEW}/w", {"spec": {"port": 8}})
    assert [type_ for type_, *_ in api.events(watch)] == ["ADDED", "MODIFIED"]
    api.delete(f"{NEW}/w")
    assert api.calls == []


def test_a_list_is_converted_in_one_call(api):
    for name in ("a", "b", "c"):
        api.post(NEW, new(name, host=name))
    found = api.get(OLD).json
    assert found["apiVersion"] == "example.com/v1beta1"
    assert [item["spec"]["address"] for item in found["items"]] == ["a:1", "b:1", "c:1"]
    assert {item["apiVersion"] for item in found["items"]} == {"example.com/v1beta1"}
    assert api.calls == [("v1beta1", ["a", "b", "c"])]


def test_an_empty_list_needs_no_webhook(api):
    assert api.get(OLD).json["items"] == []
    assert api.calls == []


def test_selectors_apply_to_converted_objects(api):
    for name in ("a", "b"):
        api.post(NEW, new(name, host=name))
    found = api.get(f"{OLD}?fieldSelector=spec.address%3Db:1").json
    assert [item["metadata"]["name"] for item in found["items"]] == ["b"]
    api.calls  # noqa: B018 - forget them
    found = api.get(f"{OLD}?fieldSelector=metadata.name%3Da").json
    assert [item["metadata"]["name"] for item in found["items"]] == ["a"]
    assert api.calls == [("v1beta1", ["a"])]


@pytest.mark.parametrize("selector", ["", "&fieldSelector=spec.address!%3Db:1"])
def test_only_one_page_of_a_list_is_converted(api, selector, monkeypatch):
    monkeypatch.setattr("fairlead.apiserver.endpoints.collection.list_page.MATCHED_MIN", 1)
    for name in "abcde":
        api.post(NEW, new(name, host=name))
    path, names = f"{OLD}?limit=2{selector}", []
    found = api.get(path).json
    assert api.calls[0] == ("v1beta1", ["a", "b"])
    while True:
        names += [item["spec"]["address"] for item in found["items"]]
        token = found["metadata"].get("continue")
        if not token:
            break
        found = api.get(f"{path}&continue={token}").json
    expected = ["a:1", "b:1", "c:1", "d:1", "e:1"]
    if selector:
        expected.remove("b:1")
    assert names == expected


def test_a_table_has_the_columns_of_the_version(api):
    api.post(NEW, new())
    for path in (OLD, f"{OLD}/w"):
        assert api.get(path, accept=TABLE).json["rows"][0]["cells"] == ["w", "a:1"]


def test_a_failing_webhook_fails_reads_in_its_version_only(failing):
    for path in (OLD, f"{OLD}/w", f"{OLD}/w/status", f"{OLD}/w/scale"):
        refused = failing.get(path)
        assert refused.status == 500
        assert refused.message == (
            "conversion webhook for example.com/v1, Kind=Widget failed: no way"
        )
    assert failing.get(NEW).status == 200


# --- write ---------------------------------------------------------------------------------------


def test_an_object_is_stored_in_the_storage_version(api):
    made = api.post(OLD, old())
    assert made.status == 201
    assert (made.json["apiVersion"], made.json["spec"]) == (
        "example.com/v1beta1",
        {"address": "a:1"},
    )
    assert api.stored()["apiVersion"] == "example.com/v1"
    assert api.stored()["spec"] == {"host": "a", "port": 1}
    assert api.calls == [("v1", ["w"]), ("v1beta1", ["w"])]


def test_defaults_and_validation_are_those_of_the_requested_version(api):
    assert api.post(OLD, {**old("d"), "spec": {}}).json["spec"] == {"address": "any:1"}
    refused = api.post(OLD, old(address="A"))
    assert refused.status == 422
    assert "spec.address in body should match" in refused.message
    # the converted object has a host that v1beta1 does not allow, and v1 does
    assert api.post(NEW, new(host="A")).status == 201


def test_unknown_fields_are_those_of_the_requested_version(api):
    refused = api.post(f"{OLD}?fieldValidation=Strict", old(host="x"))
    assert refused.status == 400
    assert 'unknown field "spec.host"' in refused.message


def test_a_dry_run_shows_the_converted_object_and_stores_nothing(api):
    assert api.post(f"{OLD}?dryRun=All", old()).json["spec"] == {"address": "a:1"}
    assert api.stored() is None


def test_an_update(api):
    made = api.post(OLD, old()).json
    changed = api.put(f"{OLD}/w", {**made, "spec": {"address": "b:2"}}).json
    assert changed["spec"] == {"address": "b:2"}
    assert changed["metadata"]["generation"] == 2
    assert api.stored()["spec"] == {"host": "b", "port": 2}
    stale = api.put(f"{OLD}/w", made)
    assert stale.status == 409


def test_an_update_without_a_change_writes_nothing(api):
    made = api.post(OLD, old()).json
    assert api.put(f"{OLD}/w", made).json == made


@pytest.mark.parametrize(
    ("content_type", "patch"),
    [
        ("application/merge-patch+json", {"spec": {"address": "b:2"}}),
        (JSON_PATCH, [{"op": "replace", "path": "/spec/address", "value": "b:2"}]),
    ],
)
def test_a_patch_is_applied_in_the_version_of_the_request(api, content_type, patch):
    api.post(NEW, new())
    changed = api.patch(f"{OLD}/w", patch, content_type)
    assert changed.status == 200
    assert changed.json["spec"] == {"address": "b:2"}
    assert api.stored()["spec"] == {"host": "b", "port": 2}


def test_status_is_written_and_read_in_the_version_of_the_request(api):
    api.post(NEW, new())
    patch = {"status": {"size": 3, "phase": "Up"}, "spec": {"address": "x:9"}}
    changed = api.patch(f"{OLD}/w/status", patch).json
    assert changed["status"] == {"size": 3, "phase": "Up"}
    assert changed["spec"] == {"address": "a:1"}
    assert api.stored()["status"] == {"replicas": 3, "phase": "Up"}
    assert api.get(f"{OLD}/w/status").json["status"] == {"size": 3, "phase": "Up"}
    made = {**changed, "status": {"size": 4}}
    assert api.put(f"{OLD}/w/status", made).json["status"] == {"size": 4}


def test_scale_uses_the_paths_of_the_version(api):
    api.post(NEW, new(replicas=2))
    assert api.get(f"{OLD}/w/scale").json["spec"] == {"replicas": 2}
    assert api.patch(f"{OLD}/w/scale", {"spec": {"replicas": 5}}).json["spec"] == {"replicas": 5}
    assert api.stored()["spec"] == {"host": "a", "port": 1, "replicas": 5}


def test_a_failing_webhook_fails_writes_in_its_version_only(failing):
    before = failing.stored()
    made = failing.get(f"{NEW}/w").json
    for refused in (
        failing.post(OLD, old("x")),
        failing.put(f"{OLD}/w", {**old(), "metadata": made["metadata"]}),
        failing.patch(f"{OLD}/w", {"spec": {"address": "b:2"}}),
        failing.patch(f"{OLD}/w?fieldManager=m", old(address="b:2"), APPLY),
        failing.patch(f"{OLD}/w/status", {"status": {"size": 1}}),
        failing.patch(f"{OLD}/w/scale", {"spec": {"replicas": 5}}),
        failing.delete(f"{OLD}/w"),
        failing.delete(OLD),
    ):
        assert refused.status == 500, refused.message
    assert failing.stored() is before
    assert failing.store.list(WIDGET) == [before]
    assert failing.put(f"{NEW}/w", {**made, "spec": {"host": "b"}}).status == 200


def test_an_object_that_changes_during_the_call_is_read_again(api):
    api.post(NEW, new())
    api.meanwhile = lambda: api.patch(f"{NEW}/w", {"spec": {"port": 7}})
    changed = api.patch(f"{OLD}/w", {"metadata": {"labels": {"a": "b"}}})
    assert changed.status == 200
    assert api.stored()["spec"] == {"host": "a", "port": 7}
    assert api.stored()["metadata"]["labels"] == {"a": "b"}


def test_a_name_that_is_taken_during_the_call_is_refused(api):
    api.meanwhile = lambda: api.post(NEW, new(host="first"))
    assert api.post(OLD, old()).status == 409
    assert api.stored()["spec"]["host"] == "first"


# --- delete --------------------------------------------------------------------------------------


def test_a_deleted_object_with_finalizers_is_returned_in_the_version_of_the_request(api):
    api.post(NEW, {**new(), "metadata": {"name": "w", "finalizers": ["example.com/f"]}})
    found = api.delete(f"{OLD}/w").json
    assert (found["apiVersion"], found["spec"]) == ("example.com/v1beta1", {"address": "a:1"})
    assert api.stored()["spec"] == {"host": "a", "port": 1}
    freed = api.patch(f"{OLD}/w", {"metadata": {"finalizers": []}}).json
    assert freed["spec"] == {"address": "a:1"}
    assert api.stored() is None


def test_a_deleted_collection_is_returned_in_the_version_of_the_request(api):
    for name in ("a", "b"):
        api.post(NEW, new(name, host=name))
    found = api.delete(f"{OLD}?fieldSelector=spec.address%3Da:1").json
    assert [item["spec"] for item in found["items"]] == [{"address": "a:1"}]
    assert [obj["metadata"]["name"] for obj in api.store.list(WIDGET)] == ["b"]


def test_the_objects_of_a_deleted_definition_are_deleted_without_a_webhook(failing):
    failing.delete(f"{DEFINITIONS}/widgets.example.com")
    assert failing.store.list(WIDGET) == []
    assert failing.get(f"{DEFINITIONS}/widgets.example.com").status == 404


# --- managed fields ------------------------------------------------------------------------------


def owners(obj):
    """The fields below spec of each manager, by manager and version."""
    return {
        (entry["manager"], entry["apiVersion"].partition("/")[2]): sorted(
            entry["fieldsV1"].get("f:spec", {})
        )
        for entry in obj["metadata"]["managedFields"]
    }


def test_managed_fields_have_the_version_of_the_request(api):
    api.post(f"{OLD}?fieldManager=ann", old())
    api.patch(f"{NEW}/w?fieldManager=bob", {"spec": {"replicas": 2}})
    expected = {
        ("ann", "v1beta1"): [".", "f:address"],
        ("bob", "v1"): ["f:replicas"],
    }
    for path in (OLD, NEW):
        assert owners(api.get(f"{path}/w").json) == expected


def test_a_field_that_is_written_in_another_version_changes_its_owner(api):
    api.post(f"{OLD}?fieldManager=ann", old())
    found = api.patch(f"{NEW}/w?fieldManager=bob", {"spec": {"host": "b"}}).json
    assert owners(found) == {("ann", "v1beta1"): [], ("bob", "v1"): ["f:host"]}


def test_apply_creates_and_updates_an_object(api):
    made = api.patch(f"{OLD}/w?fieldManager=ann", old(), APPLY)
    assert made.status == 201
    assert made.json["spec"] == {"address": "a:1"}
    assert api.stored()["spec"] == {"host": "a", "port": 1}
    changed = api.patch(f"{OLD}/w?fieldManager=ann", old(address="b:2"), APPLY).json
    assert changed["spec"] == {"address": "b:2"}
    assert owners(changed) == {("ann", "v1beta1"): ["f:address"]}


def test_apply_in_another_version_prunes_the_fields_of_the_last_apply(api):
    api.patch(f"{OLD}/w?fieldManager=ann", old(size=3), APPLY)
    changed = api.patch(f"{NEW}/w?fieldManager=ann", new(host="b", port=2), APPLY).json
    assert changed["spec"] == {"host": "b", "port": 2}
    assert owners(changed) == {("ann", "v1"): ["f:host", "f:port"]}


def test_apply_conflicts_with_the_owner_in_another_version(api):
    api.patch(f"{OLD}/w?fieldManager=ann", old(), APPLY)
    refused = api.patch(f"{NEW}/w?fieldManager=bob", new(host="b"), APPLY)
    assert refused.status == 409
    assert 'conflict with "ann"' in refused.message


def test_an_update_drops_managed_fields_if_they_cannot_be_converted(api):
    api.post(f"{OLD}?fieldManager=ann", old())
    api.webhook.failure = "no way"
    changed = api.patch(f"{NEW}/w?fieldManager=bob", {"spec": {"host": "b"}})
    assert changed.status == 200
    assert "managedFields" not in changed.json["metadata"]
    refused = api.patch(f"{NEW}/w?fieldManager=cat&force=true", new(), APPLY)
    assert refused.status == 200  # no manager uses another version now


# --- watch ---------------------------------------------------------------------------------------


def test_a_watch_sends_converted_objects_in_order(api):
    api.post(NEW, new("a"))
    watch = api.get(
        f"{OLD}?watch=1&allowWatchBookmarks=1&sendInitialEvents=true"
        "&resourceVersionMatch=NotOlderThan"
    )
    api.post(NEW, new("b"))
    api.patch(f"{NEW}/a", {"spec": {"port": 2}})
    watch.bookmark(api.store.version)
    api.delete(f"{NEW}/b")
    assert watch.pop_lines() == []
    assert api.events(watch) == [
        ("ADDED", "a", "v1beta1", {"address": "a:1"}),
        ("BOOKMARK", "", "v1beta1", None),
        ("ADDED", "b", "v1beta1", {"address": "a:1"}),
        ("MODIFIED", "a", "v1beta1", {"address": "a:2"}),
        ("BOOKMARK", "", "v1beta1", None),
        ("DELETED", "b", "v1beta1", {"address": "a:1"}),
    ]
    watch.bookmark(api.store.version)
    assert [type_ for type_, *_ in api.events(watch)] == ["BOOKMARK"]


def test_a_watch_from_a_version_sends_converted_changes(api):
    version = api.post(NEW, new("a")).json["metadata"]["resourceVersion"]
    api.patch(f"{NEW}/a", {"spec": {"port": 2}})
    watch = api.get(f"{OLD}?watch=1&resourceVersion={version}")
    assert api.events(watch) == [("MODIFIED", "a", "v1beta1", {"address": "a:2"})]


def test_a_watch_selects_converted_objects(api):
    api.post(NEW, new("a", host="a"))
    api.post(NEW, new("b", host="b"))
    watch = api.get(f"{OLD}?watch=1&fieldSelector=spec.address%3Db:1")
    api.patch(f"{NEW}/a", {"spec": {"host": "b"}})
    api.patch(f"{NEW}/b", {"spec": {"host": "c"}})
    assert [event[:2] for event in api.events(watch)] == [
        ("ADDED", "b"),
        ("ADDED", "a"),
        ("DELETED", "b"),
    ]


def test_a_watch_of_one_name_converts_no_other_object(api):
    api.post(NEW, new("a"))
    api.post(NEW, new("b"))
    watch = api.get(f"{OLD}?watch=1&fieldSelector=metadata.name%3Da")
    api.patch(f"{NEW}/b", {"spec": {"port": 2}})
    assert [event[:2] for event in api.events(watch)] == [("ADDED", "a")]
    assert api.calls == [("v1beta1", ["a"])]


def test_a_watch_of_tables_and_metadata(api):
    api.post(NEW, new())
    table = api.get(f"{OLD}?watch=1", accept=f"{TABLE}")
    api.events(table)
    api.patch(f"{NEW}/w", {"spec": {"port": 2}})
    run_to_end(table.convert_waiting(), api.call)
    (line,) = table.pop_lines()
    assert json.loads(line)["object"]["rows"][0]["cells"] == ["w", "a:2"]
    metadata = api.get(f"{OLD}?watch=1", accept=METADATA)
    assert [event[:2] for event in api.events(metadata)] == [("ADDED", "w")]


def test_existing_objects_do_not_count_as_the_backlog_of_a_watch(api, monkeypatch):
    monkeypatch.setattr("fairlead.apiserver.endpoints.collection.watch.BACKLOG_BYTES_MAX", 2_000)
    for number in range(20):
        api.post(NEW, new(f"w{number}"))
    watch = api.get(f"{OLD}?watch=1")
    assert len(api.events(watch)) == 20
    assert not watch.is_over


def test_a_failing_webhook_ends_a_watch_with_an_error(failing):
    watch = failing.get(f"{OLD}?watch=1")
    assert [type_ for type_, *_ in failing.events(watch)] == ["ERROR"]
    assert watch.is_over


def test_changes_that_wait_in_vain_end_a_watch(api, monkeypatch):
    monkeypatch.setattr("fairlead.apiserver.endpoints.collection.watch.WAITING_MAX", 2)
    watch = api.get(f"{OLD}?watch=1")
    for name in ("a", "b", "c"):
        assert not watch.is_over
        api.post(NEW, new(name))
    assert watch.is_over


# --- definitions ---------------------------------------------------------------------------------


def change_definition(api, change):
    found = api.get(f"{DEFINITIONS}/widgets.example.com").json
    change(found["spec"])
    changed = api.put(f"{DEFINITIONS}/widgets.example.com", found)
    assert changed.status == 200, changed.message
    return changed.json


def swap_storage(spec):
    for version in spec["versions"]:
        version["storage"] = not version["storage"]


def test_a_changed_conversion_applies_to_new_requests(api):
    api.post(NEW, new(replicas=2))

    def without_webhook(spec):
        spec["conversion"] = {"strategy": "None"}

    def with_webhook(spec):
        spec["conversion"] = definition()["spec"]["conversion"]

    watch = api.get(f"{OLD}?watch=1")
    change_definition(api, without_webhook)
    assert watch.is_over
    assert api.get(f"{OLD}/w").json["spec"] == {}
    assert api.calls == []
    change_definition(api, with_webhook)
    assert api.get(f"{OLD}/w").json["spec"] == {"address": "a:1", "size": 2}


def test_after_a_change_of_the_storage_version_old_objects_are_converted_when_read(api):
    api.post(NEW, new())
    changed = change_definition(api, swap_storage)
    assert changed["status"]["storedVersions"] == ["v1", "v1beta1"]
    assert api.stored()["apiVersion"] == "example.com/v1"
    assert api.get(f"{OLD}/w").json["spec"] == {"address": "a:1"}
    assert api.get(f"{NEW}/w").json["spec"] == {"host": "a", "port": 1}
    watch = api.get(f"{OLD}?watch=1")
    assert api.events(watch) == [("ADDED", "w", "v1beta1", {"address": "a:1"})]
    made = api.get(f"{OLD}/w").json
    migrated = api.put(f"{OLD}/w", made).json
    assert migrated["metadata"]["resourceVersion"] != made["metadata"]["resourceVersion"]
    assert api.stored()["apiVersion"] == "example.com/v1beta1"
    assert api.get(f"{NEW}/w").json["spec"] == {"host": "a", "port": 1}


def test_defaults_of_a_changed_schema_do_not_need_the_webhook(api):
    api.post(NEW, new())

    def with_default(spec):
        schema = spec["versions"][0]["schema"]["openAPIV3Schema"]
        schema["properties"]["spec"]["properties"]["replicas"]["default"] = 3

    change_definition(api, with_default)
    assert api.calls == []
    assert api.stored()["spec"] == {"host": "a", "port": 1, "replicas": 3}


# --- admission -----------------------------------------------------------------------------------

HOOK = "https://127.0.0.1:9/admit"
RULE = {"apiGroups": ["example.com"], "operations": ["*"], "resources": ["widgets"]}
CONFIGURATION = {
    "metadata": {"name": "m"},
    "webhooks": [
        {
            "name": "m.example.com",
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "rules": [{**RULE, "apiVersions": ["v1"]}],
            "clientConfig": {"url": HOOK},
            "matchConditions": [{"name": "host", "expression": "object.spec.host != 'skip'"}],
        }
    ],
}


def test_an_admission_webhook_gets_and_changes_the_version_of_its_rules():
    api, seen = ConvertingApi(admission=(MutatingAdmissionWebhook(),)), []
    hooks = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
    assert api.post(hooks, CONFIGURATION).status == 201

    def admit(body):
        request = json.loads(body)["request"]
        seen.append((request["object"], request["requestKind"]["version"]))
        operations = [{"op": "replace", "path": "/spec/port", "value": 99}]
        patch = base64.b64encode(json.dumps(operations).encode()).decode()
        response = {"uid": request["uid"], "allowed": True}
        response |= {"patch": patch, "patchType": "JSONPatch"}
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
        return json.dumps({**review, "response": response}).encode()

    api.hooks[HOOK] = admit
    assert api.post(OLD, old()).json["spec"] == {"address": "a:99"}
    ((obj, version),) = seen
    assert (obj["apiVersion"], obj["spec"], version) == (
        "example.com/v1",
        {"host": "a", "port": 1},
        "v1beta1",
    )
    assert api.post(OLD, old("s", "skip:1")).json["spec"] == {"address": "skip:1"}


def test_a_policy_gets_the_version_of_its_rules():
    api = ConvertingApi(admission=(ValidatingAdmissionPolicy(),))
    group = "/apis/admissionregistration.k8s.io/v1"
    policy = {
        "metadata": {"name": "p"},
        "spec": {
            "matchConstraints": {"resourceRules": [{**RULE, "apiVersions": ["v1"]}]},
            "validations": [{"expression": "object.spec.port < 10", "message": "too high"}],
        },
    }
    binding = {
        "metadata": {"name": "b"},
        "spec": {"policyName": "p", "validationActions": ["Deny"]},
    }
    assert api.post(f"{group}/validatingadmissionpolicies", policy).status == 201
    assert api.post(f"{group}/validatingadmissionpolicybindings", binding).status == 201
    assert api.post(OLD, old("a", "a:9")).status == 201
    refused = api.post(OLD, old("b", "a:10"))
    assert (refused.status, "too high" in refused.message) == (422, True)
