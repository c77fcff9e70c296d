"""The paths of a kind and its subresources, with their operations.

upstream: apiserver/pkg/endpoints/installer.go:registerResourceHandlers
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.kind import Subresource
from fairlead.apiserver.openapi import operation, parameter
from fairlead.apiserver.openapi.operation import Subject
from fairlead.apiserver.registry.strategies.table import strategy_of

# (apiVersion, kind) -> name of the type
TypeOf = Callable[[str, str], str | None]

_NAMES: Final[Mapping[str, str]] = {
    "ephemeralcontainers": "Ephemeralcontainers",
}


def root(group: str, version: str) -> str:
    """Return the root path of an API version, such as `/api/v1` or `/apis/apps/v1`."""
    return f"/apis/{group}/{version}" if group else f"/api/{version}"


def paths_of(subject: Subject, type_of: TypeOf) -> Iterator[tuple[str, Json]]:
    """Yield (path, its operations) for each path of a kind."""
    kind = subject.kind
    base = root(kind.group, kind.version)
    scoped = f"{base}/namespaces/{{namespace}}" if kind.namespaced else base
    where = ("namespace",) if kind.namespaced else ()
    yield f"{scoped}/{kind.plural}", _collection(subject) | _with(*where, "pretty")
    if "get" in kind.verbs:
        named = _with("name", *where, "pretty")
        yield f"{scoped}/{kind.plural}/{{name}}", _object(subject) | named
        for part in kind.subresources:
            made = _subresource(subject, part, type_of)
            if made:
                yield f"{scoped}/{kind.plural}/{{name}}/{part.name}", made | named
    if "list" in kind.verbs and kind.namespaced:
        all_namespaces = {"get": operation.list_operation(subject, all_namespaces=True)}
        yield f"{base}/{kind.plural}", all_namespaces | _with(*_list_parameters())
    if "watch" in kind.verbs and not kind.is_custom:
        yield from _watches(subject, base, where)


def _watches(subject: Subject, base: str, where: tuple[str, ...]) -> Iterator[tuple[str, Json]]:
    plural, listing = subject.kind.plural, parameter.LIST
    scoped = f"{base}/watch/namespaces/{{namespace}}" if where else f"{base}/watch"
    many = {"get": operation.watch_operation(subject, is_list=True)}
    yield f"{scoped}/{plural}", many | _with(*sorted((*listing, *where, "pretty")))
    one = {"get": operation.watch_operation(subject, is_list=False)}
    yield f"{scoped}/{plural}/{{name}}", one | _with(*sorted((*listing, *where, "name", "pretty")))
    if where:
        all_namespaces = {
            "get": operation.watch_operation(subject, is_list=True, all_namespaces=True)
        }
        yield f"{base}/watch/{plural}", all_namespaces | _with(*_list_parameters())


def _list_parameters() -> list[str]:
    return sorted((*parameter.LIST, "pretty"))


def _with(*names: str) -> Json:
    return {"parameters": parameter.parameters(*names)}


def _collection(subject: Subject) -> Json:
    verbs, made = subject.kind.verbs, {}
    if "list" in verbs:
        made["get"] = operation.list_operation(subject)
    if "create" in verbs:
        made["post"] = operation.create_operation(subject)
    if "deletecollection" in verbs:
        made["delete"] = operation.delete_collection_operation(subject)
    return made


def _object(subject: Subject) -> Json:
    verbs, made = subject.kind.verbs, {"get": operation.get_operation(subject)}
    if "update" in verbs:
        made["put"] = operation.update_operation(subject)
    if "delete" in verbs:
        returns_object = strategy_of(subject.kind).returns_deleted_object
        made["delete"] = operation.delete_operation(subject, returns_object=returns_object)
    if "patch" in verbs:
        made["patch"] = operation.patch_operation(subject)
    return made


def _subresource(subject: Subject, part: Subresource, type_of: TypeOf) -> Json:
    """Return the operations of a subresource."""
    kind = subject.kind
    about = (part.group or kind.group, part.version or kind.version, part.kind)
    group = f"{about[0]}/" if about[0] else ""
    definition = type_of(f"{group}{about[1]}", part.kind) or subject.object_type
    title = _NAMES.get(part.name, part.name.capitalize())
    made: Json = {}
    if "get" in part.verbs:
        made["get"] = operation.get_operation(subject, title, definition, about)
    if "update" in part.verbs:
        made["put"] = operation.update_operation(subject, title, definition, about)
    if "create" in part.verbs:
        made["post"] = operation.post_operation(subject, title, definition, about)
    if "patch" in part.verbs:
        made["patch"] = operation.patch_operation(subject, title, definition, about)
    return made
