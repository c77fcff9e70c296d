"""CustomResourceDefinitions: accepted, served, changed, and deleted with their objects."""

from __future__ import annotations

import json

import pytest

from fairlead.apiserver.endpoints.post_start_hook.definition_controller import DefinitionController
from fairlead.apiserver.endpoints.post_start_hook.reconcile_delay import ReconcileDelay
from fairlead.apiserver.endpoints.request.body_type import require_type
from fairlead.apiserver.endpoints.request.typed_object import of_another_version
from fairlead.apiserver.endpoints.server import ApiServer
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import CUSTOM_RESOURCE_DEFINITION, find_kind
from fairlead.apiserver.registry.api_server import API_SERVER
from fairlead.apiserver.registry.served_kinds import ServedKinds
from fairlead.apiserver.registry.store import Store
from fairlead.apiserver.request import Request
from fairlead.worlds.seeded_ids import SeededIds

NOW = 1_767_226_000_000_000_000
NAME = "widgets.example.com"


def manifest(**spec):
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object"}}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": NAME},
        "spec": {
            "group": "example.com",
            "scope": "Cluster",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [version],
            **spec,
        },
    }


@pytest.fixture
def store():
    return Store(SeededIds(1), registry=API_SERVER)


@pytest.fixture
def registry():
    return ServedKinds()


@pytest.fixture
def definitions(store, registry):
    return DefinitionController(store, registry)


@pytest.mark.parametrize("version", ["v1", "v2"])
@pytest.mark.parametrize("is_forged", [False, True])
def test_a_definition_of_a_built_in_resource_is_refused(
    definitions, store, registry, version, is_forged
):
    """Otherwise, users could write and delete the server's own objects through the definition."""
    group = "rbac.authorization.k8s.io"
    role = {"apiVersion": f"{group}/v1", "kind": "ClusterRole", "metadata": {"name": "r"}}
    store.create(role, NOW)
    made = manifest(group=group, names={"plural": "clusterroles", "kind": "ClusterRole"})
    made["spec"]["versions"][0]["name"] = version
    meta = {
        "name": f"clusterroles.{group}",
        "annotations": {"api-approved.kubernetes.io": "unapproved, a test"},
    }
    stored = store.create({**made, "metadata": meta}, NOW)
    if is_forged:
        conditions = [{"type": name, "status": "True"} for name in ("NamesAccepted", "Established")]
        status = {"conditions": conditions, "acceptedNames": stored["spec"]["names"]}
        store.storage.put(CUSTOM_RESOURCE_DEFINITION, {**stored, "status": status})
    definitions.reconcile(NOW)
    served = registry.find(group, version, "clusterroles")
    assert served is (find_kind("clusterrole") if version == "v1" else None)
    if not is_forged:
        kept = store.find(CUSTOM_RESOURCE_DEFINITION, "", meta["name"])
        (accepted, _) = kept["status"]["conditions"]
        assert (accepted["status"], accepted["message"]) == (
            "False",
            '"clusterroles" is already in use',
        )
    store.delete(CUSTOM_RESOURCE_DEFINITION, "", meta["name"], NOW)
    definitions.reconcile(NOW)
    assert store.find(CUSTOM_RESOURCE_DEFINITION, "", meta["name"]) is None
    assert [one["metadata"]["name"] for one in store.list(find_kind("clusterrole"))] == ["r"]


def test_a_definition_with_the_name_of_a_built_in_kind_is_refused(definitions, store, registry):
    group = "rbac.authorization.k8s.io"
    made = manifest(group=group, names={"plural": "foos", "kind": "ClusterRole"})
    meta = {"name": f"foos.{group}", "annotations": {"api-approved.kubernetes.io": "unapproved, x"}}
    store.create({**made, "metadata": meta}, NOW)
    definitions.reconcile(NOW)
    assert registry.find(group, "v1", "foos") is not None
    assert registry.of_type(f"{group}/v1", "ClusterRole") is find_kind("clusterrole")


def widget_kind(registry):
    return registry.find("example.com", "v1", "widgets")


def conditions(store):
    status = store.get(CUSTOM_RESOURCE_DEFINITION, "", NAME)["status"]
    return {row["type"]: row["status"] for row in status["conditions"]}


def test_a_definition_is_completed_accepted_and_served(store, registry, definitions):
    created = store.create(manifest(), NOW, kind=CUSTOM_RESOURCE_DEFINITION)
    assert created["spec"]["names"] == {
        "plural": "widgets",
        "kind": "Widget",
        "singular": "widget",
        "listKind": "WidgetList",
    }
    assert created["status"]["storedVersions"] == ["v1"]
    assert widget_kind(registry) is None
    definitions.reconcile(NOW)
    assert conditions(store) == {"NamesAccepted": "True", "Established": "True"}
    assert widget_kind(registry).list_kind == "WidgetList"


def test_a_stored_definition_is_served_from_the_start(store, registry):
    store.create(manifest(), NOW, kind=CUSTOM_RESOURCE_DEFINITION)
    DefinitionController(store, registry).reconcile(NOW)
    assert widget_kind(registry) is not None


def test_a_second_reconciliation_changes_nothing(store, definitions):
    store.create(manifest(), NOW, kind=CUSTOM_RESOURCE_DEFINITION)
    definitions.reconcile(NOW)
    version = store.version
    definitions.reconcile(NOW)
    assert store.version == version


def test_an_invalid_definition_is_not_stored(store):
    with pytest.raises(ApiError, match=r"spec\.group: Required value"):
        store.create(manifest(group=""), NOW, kind=CUSTOM_RESOURCE_DEFINITION)


def test_an_invalid_stored_definition_is_kept_but_not_served(store, registry, definitions):
    store.put_as_is(manifest(versions=[]), NOW)
    definitions.reconcile(NOW)
    assert registry.groups()[-1] != "example.com"


def test_the_scope_of_an_established_definition_is_immutable(store, definitions):
    old = store.create(manifest(), NOW, kind=CUSTOM_RESOURCE_DEFINITION)
    new = {**old, "spec": {**old["spec"], "scope": "Namespaced"}}
    store.update(CUSTOM_RESOURCE_DEFINITION, old, new, NOW)  # not accepted yet
    definitions.reconcile(NOW)
    accepted = store.get(CUSTOM_RESOURCE_DEFINITION, "", NAME)
    back = {**accepted, "spec": {**accepted["spec"], "scope": "Cluster"}}
    with pytest.raises(ApiError, match=r"spec\.scope: .*: field is immutable"):
        store.update(CUSTOM_RESOURCE_DEFINITION, accepted, back, NOW)


def also(**names):
    """Return another definition of the same group."""
    made = manifest(names=names)
    return {**made, "metadata": {"name": f"{names['plural']}.example.com"}}


@pytest.mark.parametrize(
    ("names", "reason", "message"),
    [
        ({"kind": "W", "singular": "widget"}, "SingularConflict", '"widget" is already in use'),
        (
            {"kind": "Widget", "singular": "w", "listKind": "Ws"},
            "KindConflict",
            '"Widget" is already in use',
        ),
        ({"kind": "W", "listKind": "Widget"}, "ListKindConflict", '"Widget" is already in use'),
        ({"kind": "W", "shortNames": ["wd"]}, "ShortNamesConflict", '"wd" is already in use'),
        (
            {"kind": "W", "shortNames": ["wd", "x", "wg"]},
            "ShortNamesConflict",
            '["wd" is already in use, "wg" is already in use]',
        ),
    ],
)
def test_a_definition_with_a_name_in_use_is_not_served(
    store, registry, definitions, names, reason, message
):
    """The later definition is not served until the name is free."""
    first = manifest(names={"plural": "widgets", "kind": "Widget", "shortNames": ["wd", "wg"]})
    store.create(first, NOW, kind=CUSTOM_RESOURCE_DEFINITION)
    definitions.reconcile(NOW)
    store.create(also(plural="ws", **names), NOW, kind=CUSTOM_RESOURCE_DEFINITION)
    definitions.reconcile(NOW)
    found = store.get(CUSTOM_RESOURCE_DEFINITION, "", "ws.example.com")["status"]
    conditions = {one["type"]: (one["reason"], one["message"]) for one in found["conditions"]}
    assert found["acceptedNames"]["plural"] == "ws"
    assert conditions["Established"][0] == "NotAccepted"
    assert conditions["NamesAccepted"] == (reason, message)
    assert registry.find("example.com", "v1", "ws") is None
    store.delete(CUSTOM_RESOURCE_DEFINITION, "", NAME, NOW)
    definitions.reconcile(NOW)
    assert registry.find("example.com", "v1", "ws") is not None


@pytest.mark.parametrize(
    ("newest", "old", "said"),
    [
        ({}, {}, "example.com/v1beta1 Widget is deprecated; use example.com/v1 Widget"),
        ({"deprecated": True}, {}, "example.com/v1beta1 Widget is deprecated"),
        ({"served": False}, {}, "example.com/v1beta1 Widget is deprecated"),
        ({}, {"deprecationWarning": "go away"}, "go away"),
    ],
)
def test_a_deprecated_version_has_a_warning(store, registry, definitions, newest, old, said):
    """The warning names the replacement, unless the author gave another text."""
    (version,) = manifest()["spec"]["versions"]
    beta = {**version, "name": "v1beta1", "storage": False, "deprecated": True, **old}
    made = manifest(versions=[{**version, **newest}, beta])
    store.create(made, NOW, kind=CUSTOM_RESOURCE_DEFINITION)
    definitions.reconcile(NOW)
    assert registry.find("example.com", "v1beta1", "widgets").custom.deprecation == said


def test_deletion_of_a_definition_deletes_its_objects(store, registry, definitions):
    store.create(manifest(), NOW, kind=CUSTOM_RESOURCE_DEFINITION)
    definitions.reconcile(NOW)
    kind = widget_kind(registry)
    obj = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}}
    store.create(obj, NOW, kind=kind)
    marked = store.delete(CUSTOM_RESOURCE_DEFINITION, "", NAME, NOW)
    assert marked["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
    assert conditions(store)["Terminating"] == "True"
    definitions.reconcile(NOW)
    assert store.find(CUSTOM_RESOURCE_DEFINITION, "", NAME) is None
    assert store.list(kind) == []
    assert widget_kind(registry) is None


def test_deletion_of_a_definition_waits_for_finalizers_of_its_objects(store, registry, definitions):
    store.create(manifest(), NOW, kind=CUSTOM_RESOURCE_DEFINITION)
    definitions.reconcile(NOW)
    kind = widget_kind(registry)
    meta = {"name": "a", "finalizers": ["example.com/hold"]}
    obj = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": meta}
    store.create(obj, NOW, kind=kind)
    store.delete(CUSTOM_RESOURCE_DEFINITION, "", NAME, NOW)
    definitions.reconcile(NOW)
    waiting = store.get(CUSTOM_RESOURCE_DEFINITION, "", NAME)
    assert waiting["status"]["conditions"][-1]["reason"] == "InstanceDeletionInProgress"
    held = store.get(kind, "", "a")
    freed = {**held, "metadata": {**held["metadata"], "finalizers": []}}
    store.update(kind, held, freed, NOW)
    definitions.reconcile(NOW)
    assert store.find(CUSTOM_RESOURCE_DEFINITION, "", NAME) is None


def test_an_object_of_another_kind_is_refused(store, registry, definitions):
    store.create(manifest(), NOW, kind=CUSTOM_RESOURCE_DEFINITION)
    definitions.reconcile(NOW)
    obj = {"apiVersion": "example.com/v1", "kind": "Wodget", "metadata": {"name": "a"}}
    with pytest.raises(ApiError) as caught:
        require_type(obj, widget_kind(registry))
    assert caught.value.code == 422
    assert caught.value.message == (
        'Wodget.example.com "a" is invalid: kind: Invalid value: "Wodget": must be Widget'
    )


@pytest.mark.parametrize(
    ("version", "notes"), [("v1", []), ("v2", ['unknown field "data"', 'unknown field "spec"'])]
)
def test_unknown_fields_of_an_object_of_another_version_are_reported(
    store, registry, definitions, version, notes
):
    store.create(manifest(), NOW, kind=CUSTOM_RESOURCE_DEFINITION)
    definitions.reconcile(NOW)
    obj = {"apiVersion": f"example.com/{version}", "kind": "Widget", "spec": {}, "data": 1}
    assert of_another_version(widget_kind(registry), obj) == notes


def test_the_writer_of_the_status_of_a_definition_is_a_field_manager(store, registry):
    server = ApiServer(store, clock=lambda: NOW, registry=registry)
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    server.handle(Request("POST", path, body=json.dumps(manifest()).encode()), NOW)
    server.handle(Request("GET", "/apis"), NOW)
    entry, _ = store.get(CUSTOM_RESOURCE_DEFINITION, "", NAME)["metadata"]["managedFields"]
    assert (entry["manager"], entry["subresource"]) == ("kube-apiserver", "status")
    assert entry["fieldsV1"]["f:status"].keys() == {"f:acceptedNames", "f:conditions"}


DELAYS = ReconcileDelay(accepted=2, established=3, ending=4, ended=5)


def test_with_delays_names_are_accepted_before_the_definition_is_established(store, registry):
    definitions = DefinitionController(store, registry, delays=DELAYS)
    store.create(manifest(), NOW, kind=CUSTOM_RESOURCE_DEFINITION)
    definitions.reconcile(NOW)
    assert store.get(CUSTOM_RESOURCE_DEFINITION, "", NAME)["status"]["conditions"] is None
    definitions.reconcile(NOW + 2)
    assert conditions(store) == {"NamesAccepted": "True", "Established": "False"}
    assert widget_kind(registry) is None
    definitions.reconcile(NOW + 5)
    assert conditions(store) == {"NamesAccepted": "True", "Established": "True"}
    assert widget_kind(registry) is not None
    assert not definitions.waits


def test_with_delays_a_definition_is_terminating_before_it_is_deleted(store, registry):
    definitions = DefinitionController(store, registry, delays=DELAYS)
    store.create(manifest(), NOW, kind=CUSTOM_RESOURCE_DEFINITION)
    definitions.reconcile(NOW)
    store.delete(CUSTOM_RESOURCE_DEFINITION, "", NAME, NOW)
    definitions.reconcile(NOW + 10)
    definitions.reconcile(NOW + 14)
    held = store.get(CUSTOM_RESOURCE_DEFINITION, "", NAME)
    assert held["status"]["conditions"][-1]["reason"] == "InstanceDeletionInProgress"
    definitions.reconcile(NOW + 19)
    assert store.find(CUSTOM_RESOURCE_DEFINITION, "", NAME) is None


def test_a_second_deletion_shows_a_grace_period_of_zero(store, registry):
    DefinitionController(store, registry, delays=DELAYS)
    store.create(manifest(), NOW, kind=CUSTOM_RESOURCE_DEFINITION)
    marked = [store.delete(CUSTOM_RESOURCE_DEFINITION, "", NAME, NOW) for _ in range(2)]
    assert [one["metadata"].get("deletionGracePeriodSeconds") for one in marked] == [None, 0]


def version_of(name, *, stored=True, **fields):
    """Return a served version whose spec has these fields."""
    spec = {"type": "object", "properties": fields}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    return {"name": name, "served": True, "storage": stored, "schema": schema}


TEXT = {"type": "string"}
SIZE = {"type": "integer", "default": 3}


def redefine(store, definitions, *versions):
    """Change the versions of the definition."""
    old = store.get(CUSTOM_RESOURCE_DEFINITION, "", NAME)
    new = {**old, "spec": {**old["spec"], "versions": list(versions)}}
    store.update(CUSTOM_RESOURCE_DEFINITION, old, new, NOW)
    definitions.reconcile(NOW)


@pytest.fixture
def widget(store, registry, definitions):
    """A stored object whose definition has the fields `old` and `text`."""
    made = manifest(versions=[version_of("v1", old=TEXT, text=TEXT)])
    store.create(made, NOW, kind=CUSTOM_RESOURCE_DEFINITION)
    definitions.reconcile(NOW)
    obj = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}
    spec = {"old": "x", "text": "y"}
    return store.create({**obj, "spec": spec}, NOW, kind=widget_kind(registry))


def test_a_changed_schema_applies_to_stored_objects(store, registry, definitions, widget):
    """A field that the schema no longer has is dropped, and a new field gets its default."""
    redefine(store, definitions, version_of("v1", text=TEXT, size=SIZE))
    read = store.get(widget_kind(registry), "", "w")
    assert read["spec"] == {"text": "y", "size": 3}
    assert read["metadata"] == widget["metadata"]


@pytest.mark.usefixtures("widget")
def test_a_changed_schema_applies_to_the_stored_objects_of_a_new_server(
    store, registry, definitions
):
    """A server that starts with the objects of an earlier server reads them in the same way."""
    before = store.get(widget_kind(registry), "", "w")
    redefine(store, definitions, version_of("v1", text=TEXT, size=SIZE))
    store.storage.restore([(widget_kind(registry), before)], store.storage.version)
    DefinitionController(store, ServedKinds()).reconcile(NOW)
    assert store.get(widget_kind(registry), "", "w")["spec"] == {"text": "y", "size": 3}


@pytest.mark.usefixtures("widget")
def test_objects_are_converted_when_the_stored_version_changes(store, registry, definitions):
    """They have the defaults of the version in which they were stored, as in upstream."""
    first = version_of("v1", stored=False, text=TEXT, size=SIZE)
    redefine(store, definitions, first, version_of("v2", text=TEXT, size={"type": "integer"}))
    read = store.get(registry.find("example.com", "v2", "widgets"), "", "w")
    assert (read["apiVersion"], read["spec"]) == ("example.com/v2", {"text": "y", "size": 3})


def test_an_object_that_its_schema_does_not_change_is_kept(store, registry, definitions, widget):
    redefine(store, definitions, version_of("v1", old=TEXT, text=TEXT, more=TEXT))
    assert store.get(widget_kind(registry), "", "w") is widget


def test_watches_end_when_the_definition_changes_or_is_removed(store, registry):
    """Otherwise, the watches would show objects by a definition that no longer exists."""
    server = ApiServer(store, clock=lambda: NOW, registry=registry)
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

    def watch():
        return server.handle(Request("GET", widgets, (("watch", "1"),)), NOW)

    def patch(body):
        headers = {"content-type": "application/merge-patch+json"}
        path = f"{definitions}/{NAME}"
        request = Request("PATCH", path, headers=headers, body=json.dumps(body).encode())
        assert server.handle(request, NOW).status == 200
        server.handle(Request("GET", "/apis"), NOW)

    widgets = "/apis/example.com/v1/widgets"
    server.handle(Request("POST", definitions, body=json.dumps(manifest()).encode()), NOW)
    first = watch()
    patch({"metadata": {"labels": {"a": "b"}}})
    assert not first.is_over
    patch({"spec": {"versions": [version_of("v1", text=TEXT)]}})
    assert first.is_over
    second = watch()
    obj = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}
    server.handle(Request("POST", widgets, body=json.dumps(obj).encode()), NOW)
    server.handle(Request("DELETE", f"{definitions}/{NAME}"), NOW)
    server.handle(Request("GET", "/apis"), NOW)
    assert second.is_over
    assert [json.loads(line)["type"] for line in second.pop_lines()] == ["ADDED", "DELETED"]
