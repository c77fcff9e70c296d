"""Translates managedFields between an object and its Scale.

The Scale shows one field of the object, such as .spec.replicas of a Deployment. A manager that owns
this field owns .spec.replicas of the Scale. After a write through the Scale, the owners of
.spec.replicas of the Scale own the field of the object:

    Deployment: ann {.spec.replicas, .spec.template}, bob {.metadata.labels}
    its Scale:  ann {.spec.replicas}
    hpa updates the Scale: hpa {.spec.replicas}
    Deployment: ann {.spec.template}, bob {.metadata.labels}, hpa {.spec.replicas}

Managers with the operation Apply are the same manager if their names are equal. For managers with
the operation Update (updaters), the API versions must be equal, too. The entries of the Scale have
the version autoscaling/v1, and those of the object have other versions. An updater in the Scale is
therefore never the same as an updater of the object, even if their names are equal. So a write
through the Scale first removes the field from the entries of all updaters of the object. Then each
updater that owns the field in the Scale becomes an owner of the object's field. The field is added
to the entry that has the updater's name and the object's version. If there is no such entry, a new
one is written. Upstream always writes a new entry, even if one with the same manager and version
exists.

upstream: apimachinery/pkg/util/managedfields/scalehandler.go
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from fairlead.apiserver.patch.managedfields.field_set import (
    FieldSet,
    difference,
    intersection,
    set_of_path,
    union,
)
from fairlead.apiserver.patch.managedfields.managed_fields import (
    APPLY,
    ManagedFields,
    ManagedFieldsEntry,
    ManagerIdentifier,
)

_SCALE_VERSION: Final = "autoscaling/v1"
_REPLICAS_IN_SCALE: Final = set_of_path("spec", "replicas")


def scale_managed_fields(managed: ManagedFields, replicas: FieldSet) -> ManagedFields:
    """Return the managedFields of a Scale; `managed` are the managedFields of its object.

    The Scale shows one field of the object; `replicas` is the field set of this field.
    """
    # upstream: scalehandler.go:ToSubresource
    return {
        replace(owner, api_version=_SCALE_VERSION): ManagedFieldsEntry(
            _REPLICAS_IN_SCALE, entry.time
        )
        for owner, entry in managed.items()
        if intersection(entry.fields, replicas)
    }


def parent_managed_fields(
    managed: ManagedFields, scaled: ManagedFields, api_version: str, replicas: FieldSet
) -> ManagedFields:
    """Return the managedFields of an object after its Scale was written.

    `managed` are the object's managedFields before the write; `scaled` are the managedFields of the
    written Scale. `api_version` is the object's apiVersion according to the path of the request;
    entries that come from `scaled` get this version. The Scale shows one field of the object;
    `replicas` is the field set of this field.
    """
    # upstream: scalehandler.go:ToParent
    left = {_identity(owner): owner for owner in scaled}
    made: ManagedFields = {}
    for owner, entry in managed.items():
        fields = entry.fields
        if intersection(fields, replicas) and left.pop(_identity(owner), None) is None:
            fields = difference(fields, replicas)  # another manager now owns the field
        if fields:
            made[owner] = replace(entry, fields=fields)
    for owner in left.values():
        if intersection(scaled[owner].fields, _REPLICAS_IN_SCALE):
            key = replace(owner, api_version=api_version)
            before = made.get(key, ManagedFieldsEntry({}))
            made[key] = replace(before, fields=union(before.fields, replicas))
    return made


def _identity(owner: ManagerIdentifier) -> ManagerIdentifier:
    """Return `owner`, without its API version if `owner` is an applier.

    A manager of an object and a manager of its Scale are the same if this function returns equal
    values for them.
    """
    return replace(owner, api_version="") if owner.operation == APPLY else owner
