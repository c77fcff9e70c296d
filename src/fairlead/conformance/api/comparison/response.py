"""Comparing one answer with the recorded one: status, the headers that clients read, and body."""

from __future__ import annotations

import gzip
import json
import re
from contextlib import suppress
from http import HTTPStatus
from typing import Any, Final

import yaml

from fairlead.api.json import Json
from fairlead.conformance.api.comparison.agreement import Agreement
from fairlead.conformance.api.comparison.openapi import as_published, without_words
from fairlead.conformance.api.replay.exchange import Exchange
from fairlead.conformance.api.replay.transport import Answer
from fairlead.conformance.comparison import Mismatch

_HEADERS: Final = (
    "content-type",
    "warning",
    "retry-after",
    "content-encoding",
    "location",
    "allow",
    "etag",
)
_VERSION: Final = re.compile(r"resourceVersion\"?: ?[\"']\d+[\"']")
_VERSION_MEMBER: Final = re.compile(r',"resourceVersion":"\d+"')
_YAML: Final = re.compile(r"apiVersion: ")
NOT_SERVED: Final = "not served"
_STARTING: Final = "storage is (re)initializing"
_TOO_EARLY: Final = "maybe not yet served"

_LISTS: Final = ("items", "rows", "$names")


def difference(exchange: Exchange, answer: Answer, agreement: Agreement) -> Mismatch | None:
    """Where the answer to a step differs; of preparations it only matters that they succeed."""
    recorded = exchange.answer
    if recorded.get("status") in (None, HTTPStatus.SERVICE_UNAVAILABLE):
        return None  # no answer, or one that came too early
    recorded_body = recorded.get("body")
    if _was_too_early(exchange, recorded):
        return None
    is_text = "$text" in (recorded_body or ())
    body = _of_the_case(exchange, recorded_body, content(answer, as_text=is_text))
    if exchange.is_setup:
        agreement.difference(recorded_body, body, "body")  # to bind what can be bound
        return _of_setup(recorded, answer, body)
    if agreement.structure:
        agreement.difference(recorded_body, body, "body")  # to bind what can be bound
        return _of_structure(recorded, answer, body)
    if answer.status != recorded["status"]:
        if answer.status == 406 and "$protobuf" in (recorded_body or ()):
            return Mismatch(NOT_SERVED, "protobuf", _message(body))
        return Mismatch("status", _told(recorded), [answer.status, _message(body)])
    return _of_headers(recorded, answer, agreement) or of_body(recorded_body, body, agreement)


def _was_too_early(exchange: Exchange, recorded: Json) -> bool:
    """Whether what was asked for was just being made; a server may be done with it at once."""
    is_starting = recorded["status"] == 429 and _message(recorded.get("body")) == _STARTING
    return is_starting or exchange.step.get("note") == _TOO_EARLY


def _of_the_case(exchange: Exchange, recorded: Any, found: Any) -> Any:
    """A Table cut down as those in the recordings are.

    Those of the whole cluster have only the rows of what the case itself has made, and of some of
    a namespace only the first row was kept.
    """
    is_of_cluster = "/namespaces/" not in exchange.step["request"]["path"]
    match recorded, found:
        case {"rows": list(rows)}, {"rows": list(others)} if rows and is_of_cluster:
            names = {_first_cell(row) for row in rows}
            return {**found, "rows": [row for row in others if _first_cell(row) in names]}
        case {"rows": [_]}, {"rows": [first, *_]}:
            return {**found, "rows": [first]}
        case _:
            return found


def _first_cell(row: Json) -> str:
    return str((row.get("cells") or [""])[0])


def _of_structure(recorded: Json, answer: Answer, body: object) -> Mismatch | None:
    """Where an answer is of another sort: refused for its form, or of another kind.

    That something is not there, or there already, depends on what was before.
    """
    depends = {recorded["status"], answer.status} & {404, 409}
    if answer.status // 100 != recorded["status"] // 100:
        return (
            None
            if depends
            else Mismatch("status", _told(recorded), [answer.status, _message(body)])
        )
    match recorded.get("body"):
        case {"kind": kind} | {"$protobuf": {"kind": kind}} if answer.status < 300:
            found = body.get("kind") if isinstance(body, dict) else None
            return None if found == kind else Mismatch("body.kind", kind, found)
        case _:
            return None


def of_body(recorded: object, found: object, agreement: Agreement) -> Mismatch | None:
    """Where a body differs; a server may answer JSON where protobuf was recorded."""
    match recorded:
        case {"$protobuf": {"kind": kind, "apiVersion": version}}:
            shown = found if isinstance(found, dict) else {}
            said = [shown.get("kind"), shown.get("apiVersion", "")]
            return None if said == [kind, version] else Mismatch("body", [kind, version], said)
        case {"$protobuf": _}:
            return None
        case {"$text": text}:
            return _of_text(text, found if isinstance(found, str) else "", agreement)
        case {"openapi": str()}:
            published = without_words(as_published(recorded))
            return agreement.difference(published, without_words(found), "body")
        case dict() if any(key in recorded for key in _LISTS):
            return agreement.difference(recorded, found, "list")
        case _:
            return agreement.difference(recorded, found, "body")


def _of_text(recorded: str, found: str, agreement: Agreement) -> Mismatch | None:
    """Versions in a text were recorded as they were; YAML may be written in more than one way."""
    if recorded.startswith("{"):
        with suppress(ValueError):
            return agreement.difference(_json_lines(recorded), _json_lines(found), "body")
    texts = [_VERSION.sub("", text) for text in (recorded, found)]
    if _YAML.match(recorded):
        values = [yaml.CSafeLoader(text).get_single_data() for text in texts]
        return agreement.difference(values[0], values[1], "body")
    return agreement.difference(texts[0], texts[1], "body")


def _json_lines(text: str) -> list[Any]:
    """Each line as a JSON value, versions left out. Raises ValueError."""
    return [json.loads(_VERSION_MEMBER.sub("", line)) for line in text.splitlines()]


def content(answer: Answer, *, as_text: bool = False) -> object:
    """The body as a JSON value, as text where it is none, None where there is none."""
    body = answer.body
    if "gzip" in answer.values("content-encoding"):
        body = gzip.decompress(body)
    if not body:
        return None
    if not as_text:
        with suppress(ValueError):
            return json.loads(body)
    return body.decode(errors="replace")


def _of_setup(recorded: Json, answer: Answer, body: object) -> Mismatch | None:
    """What it makes may be there already, or have been there when it was recorded."""
    if recorded["status"] >= 400 or answer.status < 300 or answer.status == 409:
        return None
    return Mismatch("setup", recorded["status"], [answer.status, _message(body)])


def _of_headers(recorded: Json, answer: Answer, agreement: Agreement) -> Mismatch | None:
    protobuf = isinstance(recorded.get("body"), dict) and "$protobuf" in recorded["body"]
    for name in _HEADERS:
        if protobuf and name == "content-type":
            continue
        if name == "content-encoding" and not agreement.encodings:
            continue
        expected = recorded["headers"].get(name, [])
        expected = [expected] if isinstance(expected, str) else expected
        found = agreement.difference(expected, answer.values(name), name)
        if found is not None:
            return found
    return None


def _told(recorded: Json) -> list[object]:
    return [recorded["status"], _message(recorded.get("body"))]


def _message(body: object) -> object:
    """The gist of a body for whoever reads of an unexpected status."""
    match body:
        case {"message": str(message)}:
            return message
        case {"kind": str(kind)}:
            return kind
        case str():
            return body[:200]
        case _:
            return None
