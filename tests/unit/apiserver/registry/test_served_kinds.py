"""The kinds that a server serves, and how definitions change them."""

from __future__ import annotations

import pytest

from fairlead.apiserver.discovery.documents import api_group_discovery_list
from fairlead.apiserver.discovery.legacy import api_resource_list
from fairlead.apiserver.kind import POD, Kind, version_order
from fairlead.apiserver.registry.served_kinds import ServedKinds

WIDGET = Kind("example.com", "v1", "Widget", "widgets", is_custom=True, has_generation=True)
OLD_WIDGET = Kind("example.com", "v1beta1", "Widget", "widgets", is_custom=True)


@pytest.fixture
def registry():
    return ServedKinds()


def test_a_kind_is_found_by_its_path_and_by_its_type(registry):
    assert registry.find("", "v1", "pods") is POD
    assert registry.of_type("v1", "Pod") is POD
    assert registry.find("", "v1", "po") is None
    assert registry.find("apps", "v1", "pods") is None


def test_reviews_and_bindings_support_only_create(registry):
    assert registry.find("", "v1", "bindings").verbs == ("create",)
    assert registry.find("authorization.k8s.io", "v1", "subjectaccessreviews").verbs == ("create",)


def test_custom_resources_are_served_while_they_are_defined(registry):
    before = registry.revision
    registry.define("widgets.example.com", [OLD_WIDGET, WIDGET])
    assert registry.groups()[-1] == "example.com"
    assert registry.versions("example.com") == ("v1", "v1beta1")
    assert registry.kind_of({"apiVersion": "example.com/v1", "kind": "Widget"}) is WIDGET
    registry.withdraw("widgets.example.com")
    assert registry.versions("example.com") == ()
    assert registry.find("example.com", "v1", "widgets") is None
    assert registry.revision == before + 2


def test_groups_of_custom_kinds_are_sorted_by_the_names_of_their_api_services(registry):
    """The name of an APIService begins with the version."""
    early = Kind("a.com", "v1beta1", "Widget", "widgets", is_custom=True)
    registry.define("widgets.a.com", [early])
    registry.define("widgets.example.com", [OLD_WIDGET, WIDGET])
    assert registry.groups()[-2:] == ("example.com", "a.com")


def test_withdrawing_an_unknown_definition_changes_nothing(registry):
    before = registry.revision
    registry.withdraw("widgets.example.com")
    assert registry.revision == before


def test_discovery_contains_the_group_of_custom_kinds(registry):
    registry.define("widgets.example.com", [WIDGET])
    (group,) = api_group_discovery_list(registry, is_core=False)["items"][-1:]
    assert group["versions"][0]["resources"][0]["responseKind"] == {
        "group": "example.com",
        "version": "v1",
        "kind": "Widget",
    }


def test_the_storage_version_hash_is_that_of_the_stored_version(registry):
    stored = Kind("golden.example.com", "v1", "Widget", "widgets", is_custom=True)
    registry.define("widgets.golden.example.com", [stored])
    (row,) = api_resource_list(registry, "golden.example.com", "v1")["resources"]
    assert row["storageVersionHash"] == "FtbgEmiKtnw="  # recorded


def test_versions_are_sorted_by_stability():
    versions = ["foo1", "v1", "v10", "v11beta2", "v12alpha1", "v2", "v3beta1", "v11alpha2"]
    assert sorted(versions, key=version_order) == [
        "v10",
        "v2",
        "v1",
        "v11beta2",
        "v3beta1",
        "v12alpha1",
        "v11alpha2",
        "foo1",
    ]
