"""NamespaceDefaults: maintains the objects that every namespace has.

A namespace gets the ServiceAccount `default` and the ConfigMap `kube-root-ca.crt`. If one of these
objects is deleted, it is recreated, unless a quota forbids it or the namespace is terminating. If
the ConfigMap has other data than the server's CA, the data is replaced. This also applies to a
ConfigMap in a snapshot, which has the CA of another cluster.

upstream: pkg/controller/serviceaccount/serviceaccounts_controller.go,
pkg/controller/certificates/rootcacertpublisher
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

from fairlead.api.json import Json
from fairlead.api.objects import ApiObject, Namespace, Unstructured
from fairlead.apiserver.kind import CONFIG_MAP, NAMESPACE, SERVICE_ACCOUNT, Kind
from fairlead.apiserver.storage.storage import Storage
from fairlead.engine.core.command import Command, CreateObject, ObjectRef, PatchObject
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.interest import Interest
from fairlead.engine.core.issuer import Issuer, controller_account
from fairlead.worlds.local.controllers.reactive_controller import ReactiveController, kind_name

_ACCOUNT_NAME: Final = "default"
_AUTHORITY_NAME: Final = "kube-root-ca.crt"
_OBJECTS: Final = ((SERVICE_ACCOUNT.kind, _ACCOUNT_NAME), (CONFIG_MAP.kind, _AUTHORITY_NAME))
_DESCRIBED: Final = "kubernetes.io/description"
_DESCRIPTION: Final = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal "
    "endpoints such as the internal service IP or kubernetes.default.svc. No other usage is "
    "guaranteed across distributions of Kubernetes clusters."
)


class NamespaceDefaults(ReactiveController):
    """Maintains the default objects of namespaces: a ServiceAccount and a ConfigMap with the CA.

    `authority` is the PEM text of the server's CA, "" for no CA.
    """

    issuer: ClassVar[Issuer] = controller_account("service-account-controller")
    interest: ClassVar[Interest] = Interest(
        changed=(Namespace, Unstructured), succeeded=(), failed=(CreateObject, PatchObject)
    )

    def __init__(self, storage: Storage, authority: str = "") -> None:
        super().__init__()
        self._storage = storage
        self._authority = authority

    def react(self, changed: Iterator[tuple[ApiObject, bool]], now: Instant) -> list[Command]:
        """Create or correct the default objects of the namespaces that changed.

        A namespace also counts as changed if one of its objects was deleted, or if its CA ConfigMap
        or one of its ResourceQuotas was changed. A changed quota may permit a default object that
        the old quota forbade.
        """
        names: dict[str, None] = {}
        for one, is_deleted in changed:
            if kind_name(one) == NAMESPACE.kind:
                if not is_deleted:
                    names[one.metadata.name] = None
            elif is_deleted or kind_name(one) == "ResourceQuota" or _has_authority(one):
                names[one.metadata.namespace] = None
        names.pop("", None)
        return [command for name in names for command in self._missing(name)]

    def is_own(self, target: ObjectRef) -> bool:
        """Return whether `target` is a default object of a namespace."""
        return (target.kind, target.name) in _OBJECTS

    def reconcile(self, target: ObjectRef, now: Instant) -> list[Command]:
        """Return the commands that create or correct the default objects of a namespace.

        `target` is an object in this namespace.
        """
        return self._missing(target.namespace)

    def _missing(self, name: str) -> list[Command]:
        namespace = self._storage.find(NAMESPACE, "", name)
        if namespace is None or namespace["metadata"].get("deletionTimestamp"):
            return []
        commands: list[Command] = []
        if self._storage.find(SERVICE_ACCOUNT, name, _ACCOUNT_NAME) is None:
            commands.append(_creation(SERVICE_ACCOUNT, name, {"name": _ACCOUNT_NAME}, {}))
        if self._authority:
            commands += self._publication(name)
        return commands

    def _publication(self, namespace: str) -> list[Command]:
        """Return the write that makes the ConfigMap in `namespace` contain exactly the CA."""
        data, annotations = {"ca.crt": self._authority}, {_DESCRIBED: _DESCRIPTION}
        found = self._storage.find(CONFIG_MAP, namespace, _AUTHORITY_NAME)
        if found is None:
            meta = {"name": _AUTHORITY_NAME, "annotations": annotations}
            return [_creation(CONFIG_MAP, namespace, meta, {"data": data})]
        data_before = found.get("data") or {}
        annotations_before = found["metadata"].get("annotations") or {}
        if data_before == data and annotations_before.get(_DESCRIBED) == _DESCRIPTION:
            return []
        changes = {**dict.fromkeys(data_before), **data}
        patch = {"metadata": {"annotations": annotations}, "data": changes}
        return [PatchObject(ObjectRef(CONFIG_MAP.kind, namespace, _AUTHORITY_NAME), patch)]


def _has_authority(obj: ApiObject) -> bool:
    return kind_name(obj) == CONFIG_MAP.kind and obj.metadata.name == _AUTHORITY_NAME


def _creation(kind: Kind, namespace: str, meta: Json, content: Json) -> Command:
    meta = {**meta, "namespace": namespace}
    named = {"apiVersion": kind.api_version, "kind": kind.kind}
    return CreateObject({**named, "metadata": meta, **content})
