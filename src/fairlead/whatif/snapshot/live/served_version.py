"""Finds the API versions in which a server serves a resource.

For example, Fairlead uses budgets of `policy/v1`, but Kubernetes 1.20 serves only `policy/v1beta1`.

upstream: client-go/discovery/discovery_client.go
"""

from __future__ import annotations

import asyncio
from typing import Final, TypeVar

import msgspec
from msgspec import Struct

from fairlead.apiserver.kind import Kind
from fairlead.client.error import UNDECODABLE, RequestError
from fairlead.client.rest_client import RestClient

_NOT_FOUND: Final = 404
_VERSIONS_MAX: Final = 10


class _Version(Struct):
    version: str = ""


class _ApiGroup(Struct):
    versions: list[_Version] | None = None


class _Resource(Struct):
    name: str = ""


class _ApiResourceList(Struct):
    resources: list[_Resource] | None = None


_Found = TypeVar("_Found", bound=Struct)


async def other_versions(client: RestClient, kind: Kind) -> list[str]:
    """Return the API versions, except the version of `kind`, in which the server serves `kind`.

    The versions are in the order in which the server prefers them. Returns [] for a kind of the
    core group, or if the requests fail. Raises ConnectionConfigError.
    """
    group, _, version = kind.api_version.rpartition("/")
    if not group:
        return []
    root = f"/apis/{group}"
    known = (await _discovered(client, root, _ApiGroup)).versions or ()
    others = [one.version for one in known if one.version != version][:_VERSIONS_MAX]
    lists = await asyncio.gather(
        *(_discovered(client, f"{root}/{one}", _ApiResourceList) for one in others)
    )
    return [
        other
        for other, found in zip(others, lists, strict=True)
        if any(kind.plural == one.name for one in found.resources or ())
    ]


async def is_served(client: RestClient, kind: Kind) -> bool:
    """Return whether the server serves the resource of `kind` in the version of `kind`.

    Returns True if the server does not tell, because discovery is forbidden or fails. Raises
    ConnectionConfigError.
    """
    group, _, version = kind.api_version.rpartition("/")
    root = f"/apis/{group}/{version}" if group else f"/api/{version}"
    try:
        found = msgspec.json.decode(await client.get(root), type=_ApiResourceList)
    except RequestError as refusal:
        return refusal.code != _NOT_FOUND
    except UNDECODABLE:
        return True
    return any(kind.plural == one.name for one in found.resources or ())


async def _discovered(client: RestClient, path: str, form: type[_Found]) -> _Found:
    try:
        return msgspec.json.decode(await client.get(path), type=form)
    except (RequestError, *UNDECODABLE):
        return form()
