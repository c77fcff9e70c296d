"""KubernetesService: the Service `kubernetes`, through which pods reach the API server.

The Service exists from the start and is recreated if it is deleted. Its endpoint is the address on
which the server currently listens.

upstream: pkg/controlplane/controller/{kubernetesservice,defaultservicecidr}, reconcilers
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from ipaddress import ip_address
from typing import ClassVar, Final

from fairlead.api.json import Json
from fairlead.api.objects import ApiObject, Namespace
from fairlead.apiserver.kind import kind_of
from fairlead.apiserver.storage.storage import Storage
from fairlead.engine.core.command import Command, CreateObject, ObjectRef, PatchObject
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.interest import Interest
from fairlead.engine.core.issuer import API_SERVER, Issuer
from fairlead.worlds.local.controllers.reactive_controller import ReactiveController

NAME: Final = "kubernetes"
PLACE: Final = "default"
RANGE: Final = "10.96.0.0/16"
FIRST: Final = "10.96.0.1"
PORT: Final = 443
_NAMED: Final = "https"
# Fields of Endpoints and EndpointSlices that hold the Service's addresses.
_TARGETS: Final = ("subsets", "endpoints", "ports")


class KubernetesService(ReactiveController):
    """Maintains the Service `kubernetes`; its endpoint is `address`, the API server's host:port."""

    issuer: ClassVar[Issuer] = API_SERVER
    interest: ClassVar[Interest] = Interest(
        changed=(Namespace,), succeeded=(), failed=(CreateObject, PatchObject)
    )

    def __init__(self, storage: Storage, address: str) -> None:
        super().__init__()
        host, _, port = address.rpartition(":")
        self._storage = storage
        self._host = host.strip("[]")
        self._port = int(port)

    def react(self, changed: Iterator[tuple[ApiObject, bool]], now: Instant) -> list[Command]:
        """Reconcile this controller's objects if one is deleted or their Namespace changes."""
        for one, is_deleted in changed:
            meta = one.metadata
            has_begun = isinstance(one, Namespace) and meta.name == PLACE
            is_gone = is_deleted and meta.name == NAME and meta.namespace in ("", PLACE)
            if has_begun or is_gone:
                return self._sync_all()
        return []

    def is_own(self, target: ObjectRef) -> bool:
        """Return whether `target` is one of the objects that this controller maintains."""
        return target.name == NAME and target.namespace in ("", PLACE)

    def reconcile(self, target: ObjectRef, now: Instant) -> list[Command]:
        """Create missing objects, and correct the endpoint of the Service."""
        return self._sync_all()

    def _sync_all(self) -> list[Command]:
        return [command for manifest in self._manifests() for command in self._sync(manifest)]

    def _sync(self, manifest: Json) -> list[Command]:
        kind, namespace = kind_of(manifest), manifest["metadata"].get("namespace", "")
        found = self._storage.find(kind, namespace, NAME)
        if found is None:
            return [CreateObject(manifest)]
        if "spec" in manifest:
            return []
        targets: Json = {key: manifest[key] for key in _TARGETS if key in manifest}
        if all(found.get(key) == value for key, value in targets.items()):
            return []
        return [PatchObject(ObjectRef(kind.kind, namespace, NAME), targets)]

    def _manifests(self) -> Iterator[Json]:
        yield {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "ServiceCIDR",
            "metadata": {"name": NAME},
            "spec": {"cidrs": [RANGE]},
        }
        port = {"name": _NAMED, "port": self._port, "protocol": "TCP"}
        yield {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": _meta({"component": "apiserver", "provider": NAME}),
            "spec": {
                "clusterIP": FIRST,
                "ipFamilyPolicy": "SingleStack",
                "ports": [{**port, "port": PORT, "targetPort": self._port}],
            },
        }
        with suppress(ValueError):  # a host name is no IP address
            family = f"IPv{ip_address(self._host).version}"
            yield {
                "apiVersion": "v1",
                "kind": "Endpoints",
                "metadata": _meta({"endpointslice.kubernetes.io/skip-mirror": "true"}),
                "subsets": [{"addresses": [{"ip": self._host}], "ports": [port]}],
            }
            yield {
                "apiVersion": "discovery.k8s.io/v1",
                "kind": "EndpointSlice",
                "metadata": _meta({"kubernetes.io/service-name": NAME}),
                "addressType": family,
                "endpoints": [{"addresses": [self._host], "conditions": {"ready": True}}],
                "ports": [port],
            }


def _meta(labels: Json) -> Json:
    return {"name": NAME, "namespace": PLACE, "labels": labels}
