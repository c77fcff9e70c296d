"""Negotiates the media type and the view of a response.

The view is the object, a Table, or metadata only. Clauses of the Accept header are tried in the
order of descending q values. Clauses with equal q values are tried in the order of the header. A
clause that requests an unknown view is skipped. Responses are JSON or YAML, never protobuf.

Routes of built-in kinds first compare the Accept header with the media types that the route can
produce, as go-restful does. This comparison refuses `application/*`, which the negotiation
itself accepts.

upstream: apiserver/pkg/endpoints/handlers/negotiation/negotiate.go
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from fairlead.api.text.text_cache import text_cache
from fairlead.apiserver.negotiation.request_error import not_acceptable, unknown_media_type

JSON: Final = "application/json"
YAML: Final = "application/yaml"
PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
APPLY_PATCH: Final = "application/apply-patch+yaml"
ACCEPTED: Final = (JSON, YAML, PROTOBUF)
WATCHES: Final = (f"{JSON};stream=watch", f"{PROTOBUF};stream=watch")

TABLE: Final = "Table"
PARTIAL: Final = "PartialObjectMetadata"
PARTIAL_LIST: Final = "PartialObjectMetadataList"
_VIEWS: Final = (TABLE, PARTIAL, PARTIAL_LIST)
_VIEW_PARAMETERS: Final = ("as", "g", "v")
_VIEW_VERSIONS: Final = ("v1", "v1beta1")
CACHE_SIZE: Final = 512


class MediaTypeOptions(Struct, frozen=True):
    """The negotiated media type and view; `view` is "" for the object itself."""

    media_type: str = JSON
    view: str = ""
    view_version: str = "v1"

    @property
    def view_api_version(self) -> str:
        """The apiVersion of the requested Table or metadata view, such as `meta.k8s.io/v1`."""
        return f"meta.k8s.io/{self.view_version}"


class Clause(Struct, frozen=True):
    """One clause of an Accept header, with the names of its parameters in lower case."""

    media_type: str
    parameters: tuple[tuple[str, str], ...]
    quality: float

    def parameter(self, name: str) -> str:
        """Return the value of the parameter `name`; "" if it is missing."""
        return dict(self.parameters).get(name, "")

    @property
    def requests_view(self) -> bool:
        """Whether a parameter such as `as=Table` requests a view, even an unsupported one."""
        return any(name in _VIEW_PARAMETERS and value for name, value in self.parameters)


@text_cache(maxsize=CACHE_SIZE)
def clauses(accept: str) -> tuple[Clause, ...]:
    """Return the clauses of an Accept header, sorted by descending q value."""
    found = [_clause(text) for text in accept.split(",") if text.strip()]
    return tuple(sorted(found, key=lambda clause: -clause.quality))


@text_cache(maxsize=CACHE_SIZE)
def negotiated_media_type(
    accept: str,
    *,
    streams: bool = False,
    is_list: bool = False,
    is_routed: bool = True,
    has_views: bool = True,
) -> MediaTypeOptions:
    """Return the media type and the view of a response to a request with the header `accept`.

    `streams` means that the response is a watch; `is_list` means that it is a list or a watch.
    `is_routed` means that the path has a go-restful route, as the paths of built-in kinds do.
    `has_views` means that the response can be shown as a Table or as metadata only. An empty
    `accept` means `*/*`.

    Raises ApiError 406 if the server supports none of the clauses, and for a watch in YAML.
    """
    if is_routed:
        require_produced(accept, (*ACCEPTED, *WATCHES) if is_list else ACCEPTED)
    known = [clause for clause in clauses(accept) or clauses("*/*") if _media_type(clause)]
    for clause in known:
        form = _form(clause)
        if form is None:
            continue
        if streams and form.media_type == YAML:
            raise unknown_media_type(WATCHES)  # even if the client also accepts JSON
        if has_views or not form.view:
            return form
    if any(_media_type(clause) == PROTOBUF and not clause.parameter("as") for clause in known):
        raise not_acceptable((JSON, YAML))
    raise unknown_media_type(ACCEPTED)


@text_cache(maxsize=CACHE_SIZE)
def require_produced(accept: str, produced: tuple[str, ...]) -> None:
    """Raise ApiError 406 if the Accept header contains none of the media types in `produced`.

    An empty header and `*/*` accept every media type.
    """
    # upstream: go-restful/route.go:matchesAccept
    if not accept:
        return
    taken = [text.partition(";")[0].strip() for text in accept.split(",")]
    if not any(media_type in (*produced, "*/*") for media_type in taken):
        raise not_acceptable(produced)


def error_media_type(accept: str) -> str:
    """Return the media type of a Status for a client that sent the Accept header `accept`.

    The result is the media type of the first clause that allows JSON or YAML and requests no view.
    If there is no such clause, it is JSON.
    """
    for clause in clauses(accept):
        media_type = _media_type(clause)
        if media_type in (JSON, YAML) and not clause.requests_view:
            return media_type
    return JSON


@text_cache(maxsize=CACHE_SIZE)
def accepts_objects(accept: str) -> bool:
    """Return whether the client accepts the object itself, not only a Table or metadata."""
    found = clauses(accept) or clauses("*/*")
    return any(_media_type(clause) and not clause.requests_view for clause in found)


def _clause(text: str) -> Clause:
    media_type, *written = (part.strip() for part in text.split(";"))
    pairs = [part.partition("=") for part in written]
    parameters = tuple((name.strip().lower(), value.strip(' "')) for name, _, value in pairs)
    try:
        quality = float(dict(parameters).get("q", "1"))
    except ValueError:
        quality = 1.0
    return Clause(media_type.lower(), parameters, quality)


def _media_type(clause: Clause) -> str:
    """Return the served media type that the clause matches; "" if there is none."""
    if clause.media_type in ("*/*", "application/*"):
        return JSON
    return clause.media_type if clause.media_type in ACCEPTED else ""


def _form(clause: Clause) -> MediaTypeOptions | None:
    media_type = _media_type(clause)
    if media_type == PROTOBUF:
        return None
    view = clause.parameter("as")
    if not clause.requests_view:
        return MediaTypeOptions(media_type)
    version = clause.parameter("v")
    if (
        view not in _VIEWS
        or version not in _VIEW_VERSIONS
        or clause.parameter("g") != "meta.k8s.io"
    ):
        return None
    return MediaTypeOptions(media_type, view, version)
