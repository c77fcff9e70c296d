"""The event about an object whose owner is in another namespace.

An owner must be cluster-scoped, or in the namespace of its dependents. The garbage collector
deletes a dependent whose owner is in another namespace, because this owner does not exist in the
dependent's namespace.

upstream: pkg/controller/garbagecollector/graph_builder.go:reportInvalidNamespaceOwnerRef
"""

from __future__ import annotations

from typing import Final

from fairlead.api.objects import OwnerReference
from fairlead.engine.core.command import ObjectRef, RecordEvent

REASON: Final = "OwnerRefInvalidNamespace"
_CONTROLLER: Final = "garbage-collector-controller"


def foreign_owner_event(dependent: ObjectRef, owner: OwnerReference) -> RecordEvent:
    """Return the event about `dependent`, whose `owner` exists only in another namespace."""
    namespace = dependent.namespace
    named = (
        f"[{owner.api_version}/{owner.kind}, namespace: {namespace}, name: {owner.name}, "
        f"uid: {owner.uid}]"
    )
    return RecordEvent(
        regarding=dependent,
        type="Warning",
        reason=REASON,
        action=REASON,
        note=f'ownerRef {named} does not exist in namespace "{namespace}"',
        reporting_controller=_CONTROLLER,
    )
