"""NamespaceLifecycle: requires that an object's namespace exists and can accept the object.

upstream: apiserver/pkg/admission/plugin/namespace/lifecycle/admission.go
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.admission.attributes import AdmissionAttributes, Operation
from fairlead.apiserver.error import Cause, forbidden, not_found
from fairlead.apiserver.kind import NAMESPACE, Kind
from fairlead.apiserver.storage.storage import Storage

IMMORTAL_NAMESPACES: Final = frozenset(("default", "kube-system", "kube-public"))
# Every server creates these namespaces. upstream: pkg/controlplane/controller/systemnamespaces
SYSTEM_NAMESPACES: Final = IMMORTAL_NAMESPACES | {"kube-node-lease"}
IMMORTAL_REFUSAL: Final = "this namespace may not be deleted"
# upstream: lifecycle/admission.go:accessReviewResources
_REVIEWS: Final = frozenset(("LocalSubjectAccessReview",))


class NamespaceLifecycle:
    """The admission plugin `NamespaceLifecycle`."""

    def __init__(
        self, *, requires_namespace: bool = True, never_missing: Collection[str] = ()
    ) -> None:
        """If `requires_namespace` is False, an object is admitted even if its Namespace is missing.

        The namespaces in `never_missing` count as existing even without a Namespace object.
        """
        self._requires_namespace = requires_namespace
        self._never_missing = frozenset(never_missing)

    def admit(self, attributes: AdmissionAttributes, storage: Storage) -> Json:
        """Refuse objects in a missing namespace, and new objects in a terminating namespace.

        Also refuses to delete a namespace in `IMMORTAL_NAMESPACES`. All other deletions and all
        LocalSubjectAccessReviews are admitted. Raises ApiError 404 if the namespace is missing.
        Raises ApiError 403 for any other refusal.
        """
        kind, obj = attributes.kind, attributes.obj
        meta = obj.get("metadata") or {}
        if kind is NAMESPACE:
            if attributes.operation is Operation.DELETE and meta["name"] in IMMORTAL_NAMESPACES:
                raise forbidden(NAMESPACE, "", meta["name"], IMMORTAL_REFUSAL)
            return obj
        if not kind.namespaced or kind.kind in _REVIEWS or attributes.operation is Operation.DELETE:
            return obj
        namespace = meta.get("namespace", "")
        found = storage.find(NAMESPACE, "", namespace)
        is_missing = found is None and namespace not in self._never_missing
        if is_missing and self._requires_namespace:
            raise not_found(NAMESPACE, "", namespace)
        if attributes.operation is Operation.CREATE and _is_terminating(found):
            name = meta.get("name", "")
            raise _terminating(kind, namespace, name)
        return obj


def _is_terminating(namespace: Json | None) -> bool:
    return bool(((namespace or {}).get("status") or {}).get("phase") == "Terminating")


def _terminating(kind: Kind, namespace: str, name: str) -> Exception:
    reason = f"unable to create new content in namespace {namespace} because it is being terminated"
    refusal = forbidden(kind, namespace, name, reason)
    message = f"namespace {namespace} is being terminated"
    refusal.causes = (Cause("NamespaceTerminating", message, "metadata.namespace"),)
    return refusal
