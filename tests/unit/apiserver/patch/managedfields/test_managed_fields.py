"""The entries of managedFields."""

from __future__ import annotations

from fairlead.apiserver.patch.managedfields.managed_fields import (
    UPDATERS_MAX,
    ManagedFieldsEntry,
    ManagerIdentifier,
    TrackedResource,
    entries_of,
    updated,
    with_managed_fields,
    without_timestamps,
)
from fairlead.apiserver.schema.model import schemas

CONFIG_MAP = TrackedResource(schema=schemas().of_definition("io.k8s.api.core.v1.ConfigMap"))
FIELDS: dict[str, dict] = {"f:data": {"f:k": {".": {}}}}


def config(**data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": data}


def test_entries_are_sorted_by_operation_and_time():
    managed = {
        ManagerIdentifier("c", "Update", "v1"): ManagedFieldsEntry(FIELDS, "2026-01-01T00:00:00Z"),
        ManagerIdentifier("b", "Update", "v1"): ManagedFieldsEntry(FIELDS, ""),
        ManagerIdentifier("a", "Apply", "v1"): ManagedFieldsEntry(FIELDS, "2026-01-02T00:00:00Z"),
    }
    entries = with_managed_fields(config(), managed)["metadata"]["managedFields"]
    assert [entry["manager"] for entry in entries] == ["a", "b", "c"]


def test_invalid_entries_are_dropped():
    broken = [{"manager": "bad"}]
    assert entries_of({"metadata": {"managedFields": broken}}) == {}


def test_a_newer_time_alone_does_not_change_an_entry():
    managed = {
        ManagerIdentifier("a", "Apply", "v1"): ManagedFieldsEntry(FIELDS, "2026-01-01T00:00:00Z")
    }
    later = {
        ManagerIdentifier("a", "Apply", "v1"): ManagedFieldsEntry(FIELDS, "2026-01-02T00:00:00Z")
    }
    one, other = with_managed_fields(config(), managed), with_managed_fields(config(), later)
    assert one != other
    assert without_timestamps(one) == without_timestamps(other)


def test_the_oldest_update_entries_are_merged():
    obj = None
    for number in range(UPDATERS_MAX + 2):
        before = {} if obj is None else obj["data"]
        new = config(**before, **{f"k{number}": "1"})
        writer = ManagerIdentifier(f"m{number:02}", "Update", "v1")
        obj = updated(CONFIG_MAP, obj, new, writer, f"2026-01-01T00:00:{number:02}Z")
    managers = [entry["manager"] for entry in obj["metadata"]["managedFields"]]
    assert len(managers) == UPDATERS_MAX
    assert managers.count("ancient-changes") == 1
    assert "m11" in managers
    assert "m00" not in managers
