"""What every namespace has.

A namespace gets its `default` ServiceAccount and the ConfigMap `kube-root-ca.crt`, and gets them
back, as far as its quotas allow, until it is to go.

upstream: pkg/controller/serviceaccount/serviceaccounts_controller.go,
pkg/controller/certificates/rootcacertpublisher
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import NAMESPACE, RESOURCE_QUOTA, Kind, kind_of
from fairlead.apiserver.registry.store import Store
from fairlead.apiserver.storage.storage import ChangeType, StoredChange
from fairlead.engine.core.instant import Instant
from fairlead.worlds.local.field_manager import controllers_write

_ACCOUNT: Final = kind_of({"apiVersion": "v1", "kind": "ServiceAccount"})
_CONFIG_MAP: Final = kind_of({"apiVersion": "v1", "kind": "ConfigMap"})
_ACCOUNT_NAME: Final = "default"
_AUTHORITY_NAME: Final = "kube-root-ca.crt"
_ABOUT: Final = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal "
    "endpoints such as the internal service IP or kubernetes.default.svc. No other usage is "
    "guaranteed across distributions of Kubernetes clusters."
)


class Namespaces:
    """Furnishes all namespaces; `authority` is the PEM text of the server's CA, "" without one."""

    def __init__(self, authority: str = "") -> None:
        """Nothing is furnished before the first change."""
        self._authority = authority

    def attend(self, change: StoredChange, store: Store, now: Instant) -> None:
        """See Attendant."""
        if change.kind is NAMESPACE:
            if change.type is not ChangeType.DELETED:
                self._see_to(change.object["metadata"]["name"], store, now)
        elif change.kind.namespaced and (
            change.type is ChangeType.DELETED or change.kind is RESOURCE_QUOTA
        ):
            self._see_to(change.object["metadata"].get("namespace", ""), store, now)

    def _see_to(self, name: str, store: Store, now: Instant) -> None:
        namespace = store.find(NAMESPACE, "", name)
        if namespace is not None and not namespace["metadata"].get("deletionTimestamp"):
            self._furnish(name, store, now)

    def _furnish(self, name: str, store: Store, now: Instant) -> None:
        _ensure(store, _ACCOUNT, name, {"metadata": {"name": _ACCOUNT_NAME}}, now)
        if self._authority:
            content = {
                "metadata": {
                    "name": _AUTHORITY_NAME,
                    "annotations": {"kubernetes.io/description": _ABOUT},
                },
                "data": {"ca.crt": self._authority},
            }
            _ensure(store, _CONFIG_MAP, name, content, now)


def _ensure(store: Store, kind: Kind, namespace: str, content: Json, now: Instant) -> None:
    meta = {**content["metadata"], "namespace": namespace}
    if store.find(kind, namespace, meta["name"]) is None:
        named = {"apiVersion": kind.api_version, "kind": kind.kind}
        with suppress(ApiError):  # a quota may be in the way
            write = controllers_write(kind, "", now)
            store.create({**named, **content, "metadata": meta}, now, write=write)
