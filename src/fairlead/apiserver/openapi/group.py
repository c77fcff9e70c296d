"""The document of one version of a group: its paths, and the types they speak.

upstream: kube-openapi/pkg/builder3/openapi.go, apiserver/pkg/endpoints/installer.go,
apiserver/pkg/endpoints/openapi/openapi.go:GetOperationIDAndTags
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fairlead.apiserver.kind import Kind
from fairlead.apiserver.openapi.definition import (
    custom_definitions,
    custom_name,
    references,
    with_references,
)
from fairlead.apiserver.openapi.operation import (
    DELETE_OPTIONS,
    DELETING,
    DELETING_MANY,
    LISTING,
    PATCH,
    PATCHING,
    RESOURCE_LIST,
    STATUS,
    WATCH_EVENT,
    WRITING,
    Operation,
    parameter,
)
from fairlead.apiserver.schema.model import schemas
from fairlead.apiserver.subresource import Subresource

Json = dict[str, Any]

TITLE: Final = "Kubernetes"
_SUFFIX: Final = ".k8s.io"


def document(version: str, paths: Json, kinds: Sequence[Kind] = ()) -> Json:
    """A whole document: `paths`, and the types that they refer to."""
    custom: dict[str, Json] = {}
    for kind in kinds:
        if kind.custom is not None:
            custom |= custom_definitions(kind)
    named = dict.fromkeys([*references(paths), *references(list(custom.values()))])
    types = with_references([name for name in named if name not in custom])
    marked = {name: _marked(name, body, kinds) for name, body in types.items()}
    return {
        "openapi": "3.0.0",
        "info": {"title": TITLE, "version": version},
        "paths": dict(sorted(paths.items())),
        "components": {
            "schemas": dict(sorted({**marked, **custom}.items())),
            "securitySchemes": {
                "BearerToken": {
                    "type": "apiKey",
                    "description": "Bearer Token authentication",
                    "name": "authorization",
                    "in": "header",
                }
            },
        },
    }


def _marked(name: str, body: Json, kinds: Sequence[Kind]) -> Json:
    """`body` with the kinds that it is the type of; some types are everybody's."""
    stated = schemas().kinds_of(name)
    if name in (DELETE_OPTIONS, WATCH_EVENT):
        own = dict.fromkeys((kind.group, kind.version) for kind in kinds)
        kind_name = name.rpartition(".")[2]
        stated = tuple(dict.fromkeys((("", "v1", kind_name), *((*one, kind_name) for one in own))))
    if not stated:
        return body
    listed = [{"group": group, "kind": kind, "version": version} for group, version, kind in stated]
    return {**body, "x-kubernetes-group-version-kind": listed}


def paths_of(kinds: Sequence[Kind]) -> Json:
    """The paths of one version of a group."""
    kind = kinds[0]
    naming = _Naming(kind.group, kind.version)
    made: Json = {
        f"{naming.root}/": {
            "get": Operation(
                identity=f"get{naming.prefix}APIResources",
                action="",
                gvk={},
                tag=naming.tag,
                answer=RESOURCE_LIST,
            ).document()
        }
    }
    for one in kinds:
        made |= dict(_KindPaths(naming, one).all())
    return made


class _Naming:
    """What things are called in one version of a group."""

    def __init__(self, group: str, version: str) -> None:
        parts = group.removesuffix(_SUFFIX).split(".") if group else ["core"]
        camel = [parts[0], *(part.capitalize() for part in parts[1:])]
        name = "".join(camel)
        self.tag = f"{name}_{version}"
        self.prefix = name[0].upper() + name[1:] + version.capitalize()
        self.root = f"/apis/{group}/{version}" if group else f"/api/{version}"


@dataclass(frozen=True, slots=True)
class _KindPaths:
    """The paths of one kind."""

    naming: _Naming
    kind: Kind

    def all(self) -> Iterator[tuple[str, Json]]:
        """Each path and what it answers."""
        kind, root = self.kind, self.naming.root
        spaced = f"{root}/namespaces/{{namespace}}" if kind.namespaced else root
        yield f"{spaced}/{kind.plural}", self._collection()
        if "get" in kind.verbs:
            one = f"{spaced}/{kind.plural}/{{name}}"
            yield one, self._object()
            for part in kind.subresources:
                yield f"{one}/{part.name}", self._part(part)
        if kind.namespaced and "list" in kind.verbs:
            yield f"{root}/{kind.plural}", self._everywhere("list", "list", self.list_type)
        if "watch" in kind.verbs:
            yield from self._watches()

    @property
    def type(self) -> str:
        """The definition of an object."""
        return self._definition(self.kind.api_version, self.kind.kind)

    @property
    def list_type(self) -> str:
        """The definition of a list."""
        kind = self.kind
        if kind.custom is not None:
            return f"{custom_name(kind)}List"
        return self._definition(kind.api_version, kind.list_kind)

    def _definition(self, api_version: str, name: str) -> str:
        if self.kind.custom is not None:
            return custom_name(self.kind)
        return schemas().definition_of(api_version, name) or STATUS

    @property
    def gvk(self) -> Json:
        """The kind, as extensions name it."""
        return {"group": self.kind.group, "version": self.kind.version, "kind": self.kind.kind}

    @property
    def scope(self) -> str:
        """What stands in names of operations before the kind."""
        return "Namespaced" if self.kind.namespaced else ""

    def _operation(self, verb: str, action: str, tail: str, **more: Any) -> Json:
        more = {"answer": self.type, "gvk": self.gvk, **more}
        identity = f"{verb}{self.naming.prefix}{tail}"
        return Operation(identity=identity, action=action, tag=self.naming.tag, **more).document()

    def _common(self, *names: str) -> list[Json]:
        spaced = ("namespace",) if self.kind.namespaced else ()
        return [parameter(name) for name in sorted((*names, *spaced, "pretty"))]

    def _collection(self) -> Json:
        tail, verbs = f"{self.scope}{self.kind.kind}", self.kind.verbs
        made: Json = {}
        if "list" in verbs:
            made["get"] = self._operation(
                "list", "list", tail, answer=self.list_type, parameters=LISTING, streamed=True
            )
        if "create" in verbs:
            codes = ("200", "201", "202")
            made["post"] = self._operation(
                "create", "post", tail, body=self.type, parameters=WRITING, codes=codes
            )
        if "deletecollection" in verbs:
            made["delete"] = self._operation(
                "delete", "deletecollection", f"Collection{tail}",
                answer=STATUS, body=DELETE_OPTIONS, parameters=DELETING_MANY,
            )  # fmt: skip
        return {**made, "parameters": self._common()}

    def _object(self) -> Json:
        tail, verbs = f"{self.scope}{self.kind.kind}", self.kind.verbs
        made: Json = {"get": self._operation("read", "get", tail)}
        if "update" in verbs:
            made["put"] = self._replace(tail, {})
        if "delete" in verbs:
            made["delete"] = self._operation(
                "delete", "delete", tail,
                answer=STATUS, body=DELETE_OPTIONS, parameters=DELETING, codes=("200", "202"),
            )  # fmt: skip
        if "patch" in verbs:
            made["patch"] = self._patch(tail, {})
        return {**made, "parameters": self._common("name")}

    def _replace(self, tail: str, more: Json) -> Json:
        more = {"body": self.type, **more}
        return self._operation(
            "replace", "put", tail, parameters=WRITING, codes=("200", "201"), **more
        )

    def _patch(self, tail: str, more: Json) -> Json:
        return self._operation(
            "patch", "patch", tail,
            **{**more, "body": PATCH}, parameters=PATCHING, codes=("200", "201"), patch=True,
        )  # fmt: skip

    def _part(self, part: Subresource) -> Json:
        kind = self.kind
        group, version = part.group or kind.group, part.version or kind.version
        api_version = f"{group}/{version}" if group else version
        name = self._definition(api_version, part.kind) if part.kind != kind.kind else self.type
        gvk = {"group": group, "version": version, "kind": part.kind}
        tail = f"{self.scope}{kind.kind}{part.name.capitalize()}"
        own: Json = {"answer": name, "gvk": gvk}
        made: Json = {}
        if "get" in part.verbs:
            made["get"] = self._operation("read", "get", tail, **own)
        if "update" in part.verbs:
            made["put"] = self._replace(tail, {**own, "body": name})
        if "patch" in part.verbs:
            made["patch"] = self._patch(tail, own)
        if part.verbs == ("create",):
            codes = ("200", "201", "202")
            made["post"] = self._operation("create", "post", tail, **own, body=name, codes=codes)
        return {**made, "parameters": self._common("name")}

    def _everywhere(self, verb: str, action: str, answer: str) -> Json:
        ending = "ListForAllNamespaces" if verb == "watch" else "ForAllNamespaces"
        made = self._operation(
            verb, action, f"{self.kind.kind}{ending}", answer=answer, streamed=True
        )
        return {
            "get": made,
            "parameters": [parameter(name) for name in sorted((*LISTING, "pretty"))],
        }

    def _watches(self) -> Iterator[tuple[str, Json]]:
        kind, root = self.kind, self.naming.root
        spaced = f"{root}/watch/namespaces/{{namespace}}" if kind.namespaced else f"{root}/watch"
        tail = f"{self.scope}{kind.kind}"
        yield f"{spaced}/{kind.plural}", self._watch("watchlist", f"{tail}List", ())
        if "get" in kind.verbs:
            yield f"{spaced}/{kind.plural}/{{name}}", self._watch("watch", tail, ("name",))
        if kind.namespaced:
            yield (
                f"{root}/watch/{kind.plural}",
                self._everywhere("watch", "watchlist", WATCH_EVENT),
            )

    def _watch(self, action: str, tail: str, names: tuple[str, ...]) -> Json:
        made = self._operation("watch", action, tail, answer=WATCH_EVENT, streamed=True)
        spaced = ("namespace",) if self.kind.namespaced else ()
        listed = sorted((*LISTING, *names, *spaced, "pretty"))
        return {"get": made, "parameters": [parameter(name) for name in listed]}
