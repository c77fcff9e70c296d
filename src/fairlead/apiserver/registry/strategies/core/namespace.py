"""The strategy of Namespaces.

A new Namespace is `Active` and has a finalizer. After a request to delete the Namespace, it is
`Terminating` until its content is deleted.

upstream: pkg/registry/core/namespace/strategy.go, storage/storage.go,
pkg/apis/core/validation/validation.go:ValidateNamespace
"""

from __future__ import annotations

from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.registry.deletion import mark_for_deletion
from fairlead.apiserver.registry.strategy import PreparationContext, ResourceStrategy, text_field
from fairlead.apiserver.validation.meta.field import Causes
from fairlead.apiserver.validation.meta.format import dns_label_problems
from fairlead.apiserver.validation.meta.kind_rules import KindRules, json_check
from fairlead.apiserver.validation.meta.object_meta import check_finalizer_names
from fairlead.apiserver.validation.status import check_namespace_status

# --- validation ----------------------------------------------------------------------------------


def check_namespace(obj: Json) -> Causes:
    """Yield the errors of a Namespace."""
    yield from check_finalizer_names("spec.finalizers", (obj.get("spec") or {}).get("finalizers"))


_FINALIZER: Final = "kubernetes"


def _prepare_for_create(namespace: Json, _: PreparationContext) -> Json:
    return {**namespace, "spec": {"finalizers": [_FINALIZER]}, "status": {"phase": "Active"}}


def _prepare_for_update(old: Json, new: Json, _: PreparationContext) -> Json:
    return {**new, "spec": old["spec"]} if "spec" in old else new


def begin_deletion(namespace: Json, now: int, _: int | None) -> Json | None:
    """Return `namespace` in phase Terminating; None if it has no finalizers in its spec."""
    # upstream: storage.go:Delete
    if not has_content_finalizers(namespace):
        return None
    marked = mark_for_deletion(namespace, now, 0)
    meta = {
        key: value
        for key, value in marked["metadata"].items()
        if key != "deletionGracePeriodSeconds"
    }
    status = {**namespace.get("status", {}), "phase": "Terminating"}
    return {**marked, "metadata": meta, "status": status}


def has_content_finalizers(namespace: Json) -> bool:
    """Return whether spec.finalizers is not empty."""
    return bool(namespace.get("spec", {}).get("finalizers"))


STRATEGY: Final = ResourceStrategy(
    prepare_for_create=_prepare_for_create,
    prepare_for_update=_prepare_for_update,
    rules=KindRules(
        name=dns_label_problems,
        new=json_check(check_namespace),
        subresources={"status": check_namespace_status},
    ),
    begin_deletion=begin_deletion,
    holds_deleted=has_content_finalizers,
    returns_deleted_object=True,
    selectable_fields={"status.phase": text_field("status", "phase")},
    selects_namespace=False,
)
