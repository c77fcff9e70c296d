"""APIServices of custom resources: one for each version of a group that is served.

They come with the first definition and go with the last one. One that somebody else has made, who
does not say that it is looked after by itself, is left alone.

upstream: pkg/controlplane/controller/crdregistration/crdregistration_controller.go,
kube-aggregator/pkg/controllers/autoregister/autoregister_controller.go:checkAPIService
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.admission.write import Write
from fairlead.apiserver.endpoints.bootstrap import MANAGER, create_as_apiserver
from fairlead.apiserver.endpoints.field_manager import track
from fairlead.apiserver.endpoints.status_reconcilers import API_SERVICE
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import CUSTOM_RESOURCE_DEFINITION
from fairlead.apiserver.registry.deletion import Deletion
from fairlead.apiserver.registry.store import Store
from fairlead.apiserver.storage.storage import StoredChange
from fairlead.engine.core.instant import Instant

LABEL: Final = "kube-aggregator.kubernetes.io/automanaged"
ALWAYS: Final = "true"
# Below the built-in groups; versions are in the order that their names say.
GROUP_PRIORITY: Final = 1_000
VERSION_PRIORITY: Final = 100


class Registrations:
    """An Attendant."""

    def attend(self, change: StoredChange, store: Store, now: Instant) -> None:
        """See Attendant."""
        if change.kind is CUSTOM_RESOURCE_DEFINITION:
            group = change.object["spec"]["group"]
            versions = dict.fromkeys(
                one["name"]
                for definition in (change.previous, change.object)
                if definition is not None
                for one in definition["spec"]["versions"]
            )
            for version in versions:
                _register(store, group, version, now)
        elif change.kind is API_SERVICE:
            spec = change.object["spec"]
            if spec.get("group"):
                _register(store, spec["group"], spec["version"], now)


def _register(store: Store, group: str, version: str, now: Instant) -> None:
    """Let the APIService of that version be there if it is served, and not if it is not."""
    name = f"{version}.{group}"
    found = store.find(API_SERVICE, "", name)
    is_ours = found is None or (found["metadata"].get("labels") or {}).get(LABEL) == ALWAYS
    if not is_ours:
        return
    spec = {
        "group": group,
        "version": version,
        "groupPriorityMinimum": GROUP_PRIORITY,
        "versionPriority": VERSION_PRIORITY,
    }
    with suppress(ApiError):  # a policy may be in the way
        if version not in _served(store, group):
            if found is not None:
                store.delete(API_SERVICE, "", name, now, Deletion())
        elif found is None:
            create_as_apiserver(store, (_manifest(name, spec),), now)
        elif found["spec"] != spec:
            note = track(API_SERVICE, MANAGER, "Update", "", now)
            store.update(API_SERVICE, found, {**found, "spec": spec}, write=Write(track=note))


def _served(store: Store, group: str) -> Iterator[str]:
    for definition in store.storage.unsorted(CUSTOM_RESOURCE_DEFINITION):
        if definition["spec"]["group"] == group:
            yield from (one["name"] for one in definition["spec"]["versions"] if one.get("served"))


def _manifest(name: str, spec: Json) -> Json:
    return {
        "apiVersion": API_SERVICE.api_version,
        "kind": API_SERVICE.kind,
        "metadata": {"name": name, "labels": {LABEL: ALWAYS}},
        "spec": spec,
    }
