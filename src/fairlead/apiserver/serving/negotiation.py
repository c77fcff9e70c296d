"""Negotiation: in which form a client wants its answer.

The form is a media type (JSON or YAML) and a view: the object itself, a Table, or its metadata
alone. Clauses of Accept are tried by their q, in their order; a clause that asks for a view that
there is not is passed over. Protobuf is never sent: whoever asks for it takes JSON too.

upstream: apiserver/pkg/endpoints/handlers/negotiation/negotiate.go
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fairlead.api.text_cache import text_cache
from fairlead.apiserver.serving.refusal import not_a_view, not_acceptable

JSON: Final = "application/json"
YAML: Final = "application/yaml"
PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
ACCEPTED: Final = (JSON, YAML, PROTOBUF)
WATCHES: Final = (f"{JSON};stream=watch", f"{PROTOBUF};stream=watch")

TABLE: Final = "Table"
PARTIAL: Final = "PartialObjectMetadata"
PARTIAL_LIST: Final = "PartialObjectMetadataList"
_VIEWS: Final = (TABLE, PARTIAL, PARTIAL_LIST)
_VIEW_VERSIONS: Final = ("v1", "v1beta1")
CACHE_SIZE: Final = 512


@dataclass(frozen=True, slots=True)
class Form:
    """How to answer; `view` is "" for the object itself."""

    media_type: str = JSON
    view: str = ""
    view_version: str = "v1"

    @property
    def view_api_version(self) -> str:
        """`meta.k8s.io/v1`."""
        return f"meta.k8s.io/{self.view_version}"


@dataclass(frozen=True, slots=True)
class Clause:
    """One alternative of an Accept header; names and values of `parameters` in lower case."""

    media_type: str
    parameters: tuple[tuple[str, str], ...]
    quality: float

    def parameter(self, name: str) -> str:
        """The value of a parameter, "" when it is not given."""
        return dict(self.parameters).get(name, "")


@text_cache(maxsize=CACHE_SIZE)
def clauses(accept: str) -> tuple[Clause, ...]:
    """The alternatives of an Accept header, the most wanted first."""
    found = [_clause(text) for text in accept.split(",") if text.strip()]
    return tuple(sorted(found, key=lambda clause: -clause.quality))


@text_cache(maxsize=CACHE_SIZE)
def negotiated(accept: str, *, streams: bool = False, is_list: bool = False) -> Form:
    """The form for an answer; `streams` for a watch, `is_list` for what a watch may follow.

    Raises ApiError 406.
    """
    wanted = clauses(accept) or clauses("*/*")
    known = [clause for clause in wanted if _media_type(clause)]
    if not known:
        raise not_acceptable((*ACCEPTED, *WATCHES) if is_list else ACCEPTED)
    for clause in known:
        form = _form(clause)
        if form is not None and not (streams and form.media_type == YAML):
            return form
    if any(_media_type(clause) == PROTOBUF and not clause.parameter("as") for clause in known):
        raise not_acceptable((JSON, YAML))
    raise not_a_view(WATCHES if streams else ACCEPTED)


def error_media_type(accept: str) -> str:
    """The media type in which a refusal is told, whatever view was asked for."""
    for clause in clauses(accept):
        media_type = _media_type(clause)
        if media_type in (JSON, YAML):
            return media_type
    return JSON


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
    """What of ours the clause means, "" for none."""
    if clause.media_type == "*/*":
        return JSON
    return clause.media_type if clause.media_type in ACCEPTED else ""


def _form(clause: Clause) -> Form | None:
    media_type = _media_type(clause)
    if media_type == PROTOBUF:
        return None
    view = clause.parameter("as")
    if not view:
        return Form(media_type)
    version = clause.parameter("v")
    if (
        view not in _VIEWS
        or version not in _VIEW_VERSIONS
        or clause.parameter("g") != "meta.k8s.io"
    ):
        return None
    return Form(media_type, view, version)
