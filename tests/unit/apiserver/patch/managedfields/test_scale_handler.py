"""The managers of .spec.replicas after a write through the Scale."""

from __future__ import annotations

from fairlead.apiserver.patch.managedfields.field_set import set_of_path, set_of_paths
from fairlead.apiserver.patch.managedfields.managed_fields import (
    UPDATE,
    ManagedFieldsEntry,
    ManagerIdentifier,
)
from fairlead.apiserver.patch.managedfields.scale_handler import (
    parent_managed_fields,
    scale_managed_fields,
)

REPLICAS = set_of_path("spec", "replicas")
FIELDS = set_of_paths(("spec", "replicas"), ("spec", "paused"))


def test_an_updater_keeps_its_other_fields_after_an_unchanged_scale():
    ann = ManagerIdentifier("ann", UPDATE, "apps/v1")
    managed = {ann: ManagedFieldsEntry(FIELDS, "2026-01-01T00:00:00Z")}
    scaled = scale_managed_fields(managed, REPLICAS)
    assert parent_managed_fields(managed, scaled, "apps/v1", REPLICAS) == managed


def test_an_updater_that_loses_the_field_keeps_its_other_fields():
    ann, bob = (ManagerIdentifier(name, UPDATE, "apps/v1") for name in ("ann", "bob"))
    in_scale = ManagerIdentifier("bob", UPDATE, "autoscaling/v1")
    managed = {ann: ManagedFieldsEntry(FIELDS)}
    found = parent_managed_fields(
        managed, {in_scale: ManagedFieldsEntry(REPLICAS)}, "apps/v1", REPLICAS
    )
    assert found == {
        ann: ManagedFieldsEntry(set_of_path("spec", "paused")),
        bob: ManagedFieldsEntry(REPLICAS),
    }
