"""Operations of a path in OpenAPI v3.

upstream: apiserver/pkg/endpoints/installer.go:registerResourceHandlers
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from fairlead.api.json import Json
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.openapi import parameter
from fairlead.apiserver.openapi.schema_document import META, PATCH, V3

# Group, version and kind of a body, if they differ from those of the subject.
GroupVersionKind = tuple[str, str, str]

JSON: Final = "application/json"
PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
YAML: Final = "application/yaml"
READ: Final = (JSON, PROTOBUF, YAML)
STREAMED: Final = (JSON, f"{JSON};stream=watch", PROTOBUF, f"{PROTOBUF};stream=watch", YAML)
CUSTOM_READ: Final = (JSON, YAML)
_PATCHES: Final = (
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
)
_STRATEGIC: Final = "application/strategic-merge-patch+json"
_DESCRIPTIONS: Final = {"200": "OK", "201": "Created", "202": "Accepted", "401": "Unauthorized"}
_WATCH_EVENT: Final = f"{META}.WatchEvent"
_STATUS: Final = f"{META}.Status"
_DELETE_OPTIONS: Final = f"{META}.DeleteOptions"


class Subject(Struct, frozen=True):
    """The kind that an operation reads or writes, and the names of its object and list types."""

    kind: Kind
    object_type: str
    list_type: str

    @property
    def title(self) -> str:
        """The group and version in operation ids, such as `CoreV1` or `RbacAuthorizationV1`."""
        return f"{_capitalized(group_title(self.kind.group))}{_capitalized(self.kind.version)}"

    @property
    def scope(self) -> str:
        """The scope in operation ids: `Namespaced` or ""."""
        return "Namespaced" if self.kind.namespaced else ""

    @property
    def object_media_types(self) -> tuple[str, ...]:
        """The media types of responses with objects."""
        return CUSTOM_READ if self.kind.is_custom else READ

    def operation_id(self, verb: str, part: str = "") -> str:
        """Return the operation id of `verb` and `part`, such as `readCoreV1NamespacedPodStatus`."""
        return f"{verb}{self.title}{self.scope}{self.kind.kind}{part}"


def group_title(group: str) -> str:
    """Return `group` in camel case without ".k8s.io": `core`, `policy`, `rbacAuthorization`."""
    first, *more = (group.removesuffix(".k8s.io") or "core").split(".")
    return first + "".join(map(_capitalized, more))


def tag(group: str, version: str) -> str:
    """Return the tag of a version's operations, such as `rbacAuthorization_v1`."""
    return f"{group_title(group)}_{version}"


def _capitalized(text: str) -> str:
    return text[:1].upper() + text[1:]


def operation(  # noqa: PLR0913 - the parts of one operation
    subject: Subject,
    action: str,
    name: str,
    *,
    definitions: Iterable[tuple[str, str]],
    media_types: tuple[str, ...] = READ,
    query: tuple[str, ...] = (),
    body: Json | None = None,
    about: GroupVersionKind | None = None,
) -> Json:
    """Return an operation; `action` is its x-kubernetes-action, and `name` is its operationId.

    `definitions` are (status code, response type) pairs; `media_types` are those of the responses;
    `query` contains parameter names. `body` is the requestBody. `about` is the operation's (group,
    version, kind), by default that of `subject`.
    """
    kind = subject.kind
    group, version, title = about or (kind.group, kind.version, kind.kind)
    made: Json = {
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": {"group": group, "version": version, "kind": title},
        "tags": [tag(kind.group, kind.version)],
        "operationId": name,
    }
    if query:
        made["parameters"] = parameter.parameters(*query)
    if body is not None:
        made["requestBody"] = body
    made["responses"] = responses(definitions, media_types)
    return made


def responses(definitions: Iterable[tuple[str, str]], media_types: tuple[str, ...]) -> Json:
    """Return the responses by status code, including a 401 response without content.

    `definitions` contains (status code, definition of the content) for every other response. The
    content can have any of `media_types`.
    """
    made: Json = {
        code: {"description": _DESCRIPTIONS[code], "content": content(definition, media_types)}
        for code, definition in definitions
    }
    return {**made, "401": {"description": _DESCRIPTIONS["401"]}}


def content(definition: str, media_types: Iterable[str]) -> Json:
    """Return the description of a body of type `definition`, for each of `media_types`."""
    return {media_type: {"schema": V3.reference(definition)} for media_type in media_types}


def _required_body(subject: Subject, definition: str) -> Json:
    """Return the description of a required body of the type `definition`."""
    media_types = CUSTOM_READ if subject.kind.is_custom else ("*/*",)
    return {"content": content(definition, media_types), "required": True}


def _delete_options() -> Json:
    return {"content": content(_DELETE_OPTIONS, ("*/*",))}


def list_operation(subject: Subject, *, all_namespaces: bool = False) -> Json:
    """Return the operation that lists a kind, in all namespaces if `all_namespaces` is set."""
    name = subject.operation_id("list")
    if all_namespaces:
        name = f"list{subject.title}{subject.kind.kind}ForAllNamespaces"
    return operation(
        subject,
        "list",
        name,
        definitions=(("200", subject.list_type),),
        media_types=subject.object_media_types if subject.kind.is_custom else STREAMED,
        query=() if all_namespaces else parameter.LIST,
    )


def create_operation(subject: Subject) -> Json:
    """Return the operation that creates an object."""
    return operation(
        subject,
        "post",
        subject.operation_id("create"),
        definitions=tuple((code, subject.object_type) for code in ("200", "201", "202")),
        media_types=subject.object_media_types,
        query=parameter.WRITE,
        body=_required_body(subject, subject.object_type),
    )


def delete_collection_operation(subject: Subject) -> Json:
    """Return the operation that deletes a collection."""
    return operation(
        subject,
        "deletecollection",
        f"delete{subject.title}Collection{subject.scope}{subject.kind.kind}",
        definitions=(("200", _STATUS),),
        media_types=subject.object_media_types,
        query=parameter.DELETE_COLLECTION,
        body=_delete_options(),
    )


def delete_operation(subject: Subject, *, returns_object: bool) -> Json:
    """Return the operation that deletes an object.

    The response is the object if `returns_object` is set, otherwise a Status.
    """
    response_type = subject.object_type if returns_object else _STATUS
    return operation(
        subject,
        "delete",
        subject.operation_id("delete"),
        definitions=(("200", response_type), ("202", response_type)),
        media_types=subject.object_media_types,
        query=parameter.DELETE,
        body=_delete_options(),
    )


def get_operation(
    subject: Subject, part: str = "", response_type: str = "", about: GroupVersionKind | None = None
) -> Json:
    """Return the operation that gets an object, or its subresource `part`.

    `response_type` is the type of the response, by default the object type of `subject`. `about` is
    the operation's (group, version, kind), by default that of `subject`.
    """
    return operation(
        subject,
        "get",
        subject.operation_id("read", part),
        definitions=(("200", response_type or subject.object_type),),
        media_types=subject.object_media_types,
        about=about,
    )


def update_operation(
    subject: Subject, part: str = "", response_type: str = "", about: GroupVersionKind | None = None
) -> Json:
    """Return the operation that updates an object, or its subresource `part`.

    `get_operation` explains the arguments.
    """
    definition = response_type or subject.object_type
    return operation(
        subject,
        "put",
        subject.operation_id("replace", part),
        definitions=(("200", definition), ("201", definition)),
        media_types=subject.object_media_types,
        query=parameter.WRITE,
        body=_required_body(subject, definition),
        about=about,
    )


def patch_operation(
    subject: Subject, part: str = "", response_type: str = "", about: GroupVersionKind | None = None
) -> Json:
    """Return the operation that patches an object, or its subresource `part`.

    `get_operation` explains the arguments.
    """
    definition = response_type or subject.object_type
    patches = [one for one in _PATCHES if not (subject.kind.is_custom and one == _STRATEGIC)]
    codes = ("200",) if subject.kind.is_custom else ("200", "201")
    return operation(
        subject,
        "patch",
        subject.operation_id("patch", part),
        definitions=tuple((code, definition) for code in codes),
        media_types=subject.object_media_types,
        query=parameter.PATCH,
        body={"content": content(PATCH, patches), "required": True},
        about=about,
    )


def post_operation(subject: Subject, part: str, definition: str, about: GroupVersionKind) -> Json:
    """Return the operation that creates the subresource `part`, such as a binding.

    `definition` is the type of the body and of the response; `about` is the operation's (group,
    version, kind).
    """
    return operation(
        subject,
        "post",
        subject.operation_id("create", part),
        definitions=tuple((code, definition) for code in ("200", "201", "202")),
        query=parameter.WRITE,
        body=_required_body(subject, definition),
        about=about,
    )


def watch_operation(subject: Subject, *, is_list: bool, all_namespaces: bool = False) -> Json:
    """Return the operation of a deprecated watch path.

    If `is_list` is True, the path watches a list of objects; otherwise, it watches one object. If
    `all_namespaces` is True, the list has the objects of a namespaced kind in all namespaces.
    """
    name = subject.operation_id("watch", "List" if is_list else "")
    if all_namespaces:
        name = f"watch{subject.title}{subject.kind.kind}ListForAllNamespaces"
    return operation(
        subject,
        "watchlist" if is_list else "watch",
        name,
        definitions=(("200", _WATCH_EVENT),),
        media_types=STREAMED,
    )
