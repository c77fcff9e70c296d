"""Manifest: one Kubernetes object as a user gave it, put into the form the API stores.

Lists are opened, nulls and managedFields dropped, former apiVersions renamed, namespaces filled
in. What makes an object unusable is refused here with its file and name; kinds that Fairlead does
not know are carried along.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from fairlead.api.codec import display_name, without_nulls
from fairlead.apiserver.kind import Kind, kind_of
from fairlead.core.command import Json, ObjectRef
from fairlead.whatif.documents import Document
from fairlead.whatif.input_error import InputError

DEFAULT_NAMESPACE: Final = "default"

_FORMER_API_VERSIONS: Final = {
    "apps/v1beta1": "apps/v1",
    "apps/v1beta2": "apps/v1",
    "extensions/v1beta1": "apps/v1",
    "policy/v1beta1": "policy/v1",
    "scheduling.k8s.io/v1alpha1": "scheduling.k8s.io/v1",
    "scheduling.k8s.io/v1beta1": "scheduling.k8s.io/v1",
}
_RENAMED: Final = frozenset(
    {"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "PodDisruptionBudget", "PriorityClass"}
)


@dataclass(frozen=True, slots=True)
class Manifest:
    """An object and the file it came from; `value` is JSON without nulls."""

    source: str
    kind: Kind
    ref: ObjectRef
    value: Json

    @property
    def title(self) -> str:
        """How messages name the object: `Pod store/web-1`."""
        return f"{self.ref.kind} {self.ref.key}"

    @property
    def identity(self) -> tuple[str, str, str]:
        """What no two objects may share: resource, namespace, name."""
        return (self.kind.resource, self.ref.namespace, self.ref.name)

    def refuse(self, problem: str, field: str = "") -> InputError:
        """The error that says what is wrong with this object."""
        return InputError(self.source, problem, object_name=self.title, field=field)


def manifests(documents: Iterable[Document], namespace: str = DEFAULT_NAMESPACE) -> list[Manifest]:
    """All objects in `documents`; those without a namespace that need one get `namespace`.

    Raises InputError, also where two of them are the same object.
    """
    found = [
        _manifest(source, value, namespace)
        for document in documents
        for source, value in _opened(document.source, document.value)
    ]
    refuse_duplicates(found)
    return found


def refuse_duplicates(found: Iterable[Manifest]) -> None:
    """Raise InputError where two of `found` are the same object."""
    seen: dict[tuple[str, str, str], Manifest] = {}
    for manifest in found:
        first = seen.setdefault(manifest.identity, manifest)
        if first is not manifest:
            where = f" (first in {first.source})" if first.source != manifest.source else ""
            raise manifest.refuse(f"is given twice{where}", field="metadata.name")


def _opened(source: str, value: Any) -> Iterator[tuple[str, Any]]:
    """`value` itself, or the items of the list that it is."""
    if isinstance(value, list):
        for item in value:
            yield from _opened(source, item)
    elif _is_list(value):
        items = value["items"]
        if not isinstance(items, list):
            raise InputError(source, f"expected a list, got {type_name(items)}", field="items")
        defaults = _item_defaults(value)
        for item in items:
            yield from _opened(source, {**defaults, **item} if isinstance(item, dict) else item)
    else:
        yield source, value


def _is_list(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and str(value.get("kind", "")).endswith("List")
        and ("items" in value)
    )


def _item_defaults(value: Json) -> Json:
    """What items of a typed list (PodList) may leave out."""
    kind = str(value["kind"]).removesuffix("List")
    return {"apiVersion": value.get("apiVersion"), "kind": kind} if kind else {}


def _manifest(source: str, value: Any, namespace: str) -> Manifest:
    if not isinstance(value, dict):
        raise InputError(
            source, f"expected an object with apiVersion and kind, got {type_name(value)}"
        )
    for field in ("kind", "apiVersion"):
        if not isinstance(value.get(field), str) or not value[field]:
            raise InputError(
                source, "is required, as text", object_name=display_name(value), field=field
            )
    clean = _clean(source, value)
    kind = kind_of(clean)
    metadata = clean["metadata"]
    if not kind.namespaced:
        metadata.pop("namespace", None)
    elif not metadata.get("namespace"):
        metadata["namespace"] = namespace
    ref = ObjectRef(
        kind.kind, metadata.get("namespace", ""), metadata["name"], metadata.get("uid", "")
    )
    return Manifest(source, kind, ref, clean)


def _clean(source: str, value: Json) -> Json:
    """`value` without what nobody looks at; its identity is checked."""
    kind = value["kind"]
    metadata = value.get("metadata")
    if not isinstance(metadata, dict) or not metadata.get("name"):
        raise InputError(
            source,
            "is required",
            object_name=f"{kind} {display_name(value)}",
            field="metadata.name",
        )
    for field in ("name", "namespace", "uid"):
        if not isinstance(metadata.get(field, ""), str | None):
            raise InputError(
                source,
                f"expected text, got {type_name(metadata[field])}",
                object_name=f"{kind} {display_name(value)}",
                field=f"metadata.{field}",
            )
    try:
        clean: Json = without_nulls({**value, "metadata": _without_managed_fields(metadata)})
    except RecursionError:
        raise InputError(
            source, "is nested too deeply", object_name=f"{kind} {display_name(value)}"
        ) from None
    if kind in _RENAMED:
        version = clean["apiVersion"]
        clean["apiVersion"] = _FORMER_API_VERSIONS.get(version, version)
    return clean


def _without_managed_fields(metadata: Json) -> Json:
    return {key: item for key, item in metadata.items() if key != "managedFields"}


def type_name(value: Any) -> str:
    """The JSON type of `value`, in words."""
    match value:
        case None:
            return "nothing"
        case bool():
            return "true or false"
        case str():
            return "text"
        case int() | float():
            return "a number"
        case list():
            return "a list"
        case _:
            return "an object"
