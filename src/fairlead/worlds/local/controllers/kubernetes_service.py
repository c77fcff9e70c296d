"""The Service `kubernetes`, by which pods reach the API server, and what stands behind it.

It is there from the beginning, comes back when somebody deletes it, and leads to where the server
listens now. The addresses of Services have an object, too.

upstream: pkg/controlplane/controller/{kubernetesservice,defaultservicecidr}, reconcilers
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from ipaddress import ip_address
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.endpoints.bootstrap import MANAGER, create_as_apiserver
from fairlead.apiserver.endpoints.field_manager import track
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import NAMESPACE, Kind, kind_of
from fairlead.apiserver.registry.store import Store
from fairlead.apiserver.storage.storage import ChangeType, StoredChange
from fairlead.engine.core.instant import Instant

NAME: Final = "kubernetes"
PLACE: Final = "default"
RANGE: Final = "10.96.0.0/16"
FIRST: Final = "10.96.0.1"
PORT: Final = 443
_NAMED: Final = "https"


class OwnService:
    """An Attendant; `address` is the host and port that clients are told."""

    def __init__(self, address: str) -> None:
        """Nothing is there before the first change."""
        host, _, port = address.rpartition(":")
        self._host = host.strip("[]")
        self._port = int(port)

    def attend(self, change: StoredChange, store: Store, now: Instant) -> None:
        """See Attendant."""
        meta = change.object["metadata"]
        has_begun = change.kind is NAMESPACE and meta["name"] == PLACE
        is_gone = change.type is ChangeType.DELETED and meta["name"] == NAME
        if has_begun or (is_gone and meta.get("namespace", PLACE) == PLACE):
            for manifest in self._manifests():
                _ensure(store, manifest, now)

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
        with suppress(ValueError):  # a host's name is no address
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


def _ensure(store: Store, manifest: Json, now: Instant) -> None:
    """Let `manifest` be there; where it leads to is written anew if that has changed."""
    kind, meta = kind_of(manifest), manifest["metadata"]
    found = store.find(kind, meta.get("namespace", ""), NAME)
    leads: Json = {
        key: manifest[key] for key in ("subsets", "endpoints", "ports") if key in manifest
    }
    if leads:
        # Clients may not lead a Service to this machine; we may.
        note = track(kind, MANAGER, "Update", "", now)
        if found is None:
            store.put_as_is(_numbered(kind, note(None, manifest), 0), now)
        elif any(found.get(key) != value for key, value in leads.items()):
            before = found["metadata"].get("generation", 0)
            store.write(kind, found, _numbered(kind, note(found, {**found, **leads}), before))
    elif found is None:
        with suppress(ApiError):  # a quota may be in the way, or its namespace on its way out
            create_as_apiserver(store, (manifest,), now)


def _numbered(kind: Kind, obj: Json, before: int) -> Json:
    """`obj` with its next generation, where its kind has any."""
    if kind.kind != "EndpointSlice":
        return obj
    return {**obj, "metadata": {**obj["metadata"], "generation": before + 1}}
