"""ApiServiceRegistration: maintains APIServices for the versions of custom resource groups.

The APIService of a version exists as long as a CustomResourceDefinition serves the version. An
APIService without the label `automanaged` belongs to the user and is not changed.

upstream: pkg/controlplane/controller/crdregistration/crdregistration_controller.go,
kube-aggregator/pkg/controllers/autoregister/autoregister_controller.go:checkAPIService
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

from fairlead.api.json import Json
from fairlead.api.objects import ApiObject, Unstructured
from fairlead.apiserver.kind import API_SERVICE, CUSTOM_RESOURCE_DEFINITION
from fairlead.apiserver.storage.storage import Storage
from fairlead.engine.core.command import Command, CreateObject, DeleteObject, ObjectRef, PatchObject
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.interest import Interest
from fairlead.engine.core.issuer import API_SERVER, Issuer
from fairlead.worlds.local.controllers.reactive_controller import ReactiveController, kind_name

LABEL: Final = "kube-aggregator.kubernetes.io/automanaged"
ALWAYS: Final = "true"
# Lower than the priorities of the built-in groups. All versions have the same priority, so the API
# server orders them by their names.
GROUP_PRIORITY: Final = 1_000
VERSION_PRIORITY: Final = 100
_KINDS: Final = (CUSTOM_RESOURCE_DEFINITION.kind, API_SERVICE.kind)


class ApiServiceRegistration(ReactiveController):
    """Creates and deletes the APIServices of custom resource groups."""

    issuer: ClassVar[Issuer] = API_SERVER
    interest: ClassVar[Interest] = Interest(
        changed=(Unstructured,),
        deleted=(Unstructured,),
        succeeded=(),
        failed=(CreateObject, DeleteObject, PatchObject),
    )

    def __init__(self, storage: Storage) -> None:
        super().__init__()
        self._storage = storage

    def react(self, changed: Iterator[tuple[ApiObject, bool]], now: Instant) -> list[Command]:
        """Return the writes to APIServices of the API groups whose CRDs or APIServices changed."""
        # Definitions and APIServices have names of the form `plural.group` or `version.group`.
        names = [one.metadata.name for one, _ in changed if kind_name(one) in _KINDS]
        groups = dict.fromkeys(name.partition(".")[2] for name in names)
        groups.pop("", None)
        return [command for group in groups for command in self._sync(group)]

    def is_own(self, target: ObjectRef) -> bool:
        """Return whether `target` is an APIService."""
        return target.kind == API_SERVICE.kind

    def reconcile(self, target: ObjectRef, now: Instant) -> list[Command]:
        """Return the writes that the APIServices of the group of `target` need now."""
        return self._sync(target.name.partition(".")[2])

    def _sync(self, group: str) -> list[Command]:
        served = self._served(group)
        registered = {
            one["spec"]["version"]: one
            for one in self._storage.unsorted(API_SERVICE)
            if one["spec"].get("group") == group
        }
        commands: list[Command] = []
        for version in dict.fromkeys((*served, *registered)):
            commands += _registration(
                group, version, registered.get(version), is_served=version in served
            )
        return commands

    def _served(self, group: str) -> dict[str, None]:
        return {
            version["name"]: None
            for definition in self._storage.unsorted(CUSTOM_RESOURCE_DEFINITION)
            if definition["spec"]["group"] == group
            for version in definition["spec"]["versions"]
            if version.get("served")
        }


def _registration(
    group: str, version: str, found: Json | None, *, is_served: bool
) -> list[Command]:
    name = f"{version}.{group}"
    if found is not None and (found["metadata"].get("labels") or {}).get(LABEL) != ALWAYS:
        return []
    spec = {
        "group": group,
        "version": version,
        "groupPriorityMinimum": GROUP_PRIORITY,
        "versionPriority": VERSION_PRIORITY,
    }
    target = ObjectRef(API_SERVICE.kind, "", name)
    if not is_served:
        return [] if found is None else [DeleteObject(target)]
    if found is None:
        return [CreateObject(_manifest(name, spec))]
    return [] if found["spec"] == spec else [PatchObject(target, {"spec": spec})]


def _manifest(name: str, spec: Json) -> Json:
    return {
        "apiVersion": API_SERVICE.api_version,
        "kind": API_SERVICE.kind,
        "metadata": {"name": name, "labels": {LABEL: ALWAYS}},
        "spec": spec,
    }
