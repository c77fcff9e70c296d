"""Compares a response with the recorded one: status, headers that clients use, and body."""

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
from fairlead.conformance.api.exchange import Exchange
from fairlead.conformance.api.transport import HttpAnswer
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


def mismatch(exchange: Exchange, answer: HttpAnswer, agreement: Agreement) -> Mismatch | None:
    """Return the first mismatch between `answer` and the recorded response of `exchange`.

    Returns None if there is no mismatch. Also returns None if the recorded server did not respond
    or was not ready yet. Of a setup step, only the success or failure is compared. A failure is no
    mismatch if the step also failed in the recording, or if the object that the step creates
    already exists. The path of the mismatch is NOT_SERVED if the tested server does not support
    protobuf for a request.

    Recordings contain placeholders for values that differ from run to run, such as uids. A
    placeholder without a value in `agreement` gets the value in `answer`.
    """
    recorded = exchange.answer
    if recorded.get("status") in (None, HTTPStatus.SERVICE_UNAVAILABLE):
        return None  # The server sent no response, or was not ready when the request was recorded.
    recorded_body = recorded.get("body")
    if _was_too_early(exchange, recorded):
        return None
    is_text = "$text" in (recorded_body or ())
    body = _of_the_case(exchange, recorded_body, content(answer, as_text=is_text))
    if exchange.is_setup:
        agreement.mismatch(recorded_body, body, "body")  # This binds placeholders.
        # The step may fail if it also failed in the recording, or if its object already exists.
        may_fail = recorded["status"] >= 400 or answer.status == 409
        if may_fail or answer.status < 300:
            return None
        return Mismatch("setup", recorded["status"], [answer.status, _message(body)])
    if agreement.structure:
        agreement.mismatch(recorded_body, body, "body")  # This binds placeholders.
        return _of_structure(recorded, answer, body)
    if answer.status != recorded["status"]:
        if answer.status == 406 and "$protobuf" in (recorded_body or ()):
            return Mismatch(NOT_SERVED, "protobuf", _message(body))
        return Mismatch("status", _recorded_status(recorded), [answer.status, _message(body)])
    return _of_headers(recorded, answer, agreement) or of_body(recorded_body, body, agreement)


def _was_too_early(exchange: Exchange, recorded: Json) -> bool:
    """Return whether the recorded server was not ready yet."""
    is_starting = recorded["status"] == 429 and _message(recorded.get("body")) == _STARTING
    return is_starting or exchange.step.get("note") == _TOO_EARLY


def _of_the_case(exchange: Exchange, recorded: Any, found: Any) -> Any:
    """Return the response body `found`, with Tables truncated as they are in the recordings.

    A recorded cluster-wide Table contains only the rows of objects that the case created. Some
    other recorded Tables contain only their first row.
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


def _of_structure(recorded: Json, answer: HttpAnswer, body: object) -> Mismatch | None:
    """Compare the HTTP status class (such as 2xx), then the body's kind; return the first mismatch.

    Returns None if there is no mismatch. If either status is 404 or 409, a mismatch of the classes
    is ignored, because these statuses depend on other objects.
    """
    depends = {recorded["status"], answer.status} & {404, 409}
    if answer.status // 100 != recorded["status"] // 100:
        return (
            None
            if depends
            else Mismatch("status", _recorded_status(recorded), [answer.status, _message(body)])
        )
    match recorded.get("body"):
        case {"kind": kind} | {"$protobuf": {"kind": kind}} if answer.status < 300:
            found = body.get("kind") if isinstance(body, dict) else None
            return None if found == kind else Mismatch("body.kind", kind, found)
        case _:
            return None


def of_body(recorded: object, found: object, agreement: Agreement) -> Mismatch | None:
    """Return the first mismatch of a body; None if there is none.

    `found` is a body that the function `content` returned. If the recorded body is protobuf, a JSON
    body is accepted, and only its kind and apiVersion are compared.
    """
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
            return agreement.mismatch(published, without_words(found), "body")
        case dict() if any(key in recorded for key in _LISTS):
            return agreement.mismatch(recorded, found, "list")
        case _:
            return agreement.mismatch(recorded, found, "body")


def _of_text(recorded: str, found: str, agreement: Agreement) -> Mismatch | None:
    """Return the first mismatch of two texts, or None.

    Resource versions are ignored. YAML documents and lines of JSON are compared as values.
    """
    if recorded.startswith("{"):
        with suppress(ValueError):
            return agreement.mismatch(_json_lines(recorded), _json_lines(found), "body")
    texts = [_VERSION.sub("", text) for text in (recorded, found)]
    if _YAML.match(recorded):
        values = [yaml.CSafeLoader(text).get_single_data() for text in texts]
        return agreement.mismatch(values[0], values[1], "body")
    return agreement.mismatch(texts[0], texts[1], "body")


def _json_lines(text: str) -> list[Any]:
    """Return each line as a JSON value without resource versions.

    Raises ValueError if a line is not JSON.
    """
    return [json.loads(_VERSION_MEMBER.sub("", line)) for line in text.splitlines()]


def content(answer: HttpAnswer, *, as_text: bool = False) -> object:
    """Return the decompressed body as a JSON value; None if it is empty.

    A body that is not JSON is returned as text, and so is every body if `as_text` is set.
    """
    body = answer.body
    if "gzip" in answer.values("content-encoding"):
        body = gzip.decompress(body)
    if not body:
        return None
    if not as_text:
        with suppress(ValueError):
            return json.loads(body)
    return body.decode(errors="replace")


def _of_headers(recorded: Json, answer: HttpAnswer, agreement: Agreement) -> Mismatch | None:
    protobuf = isinstance(recorded.get("body"), dict) and "$protobuf" in recorded["body"]
    for name in _HEADERS:
        if protobuf and name == "content-type":
            continue
        if name == "content-encoding" and not agreement.encodings:
            continue
        expected = recorded["headers"].get(name, [])
        expected = [expected] if isinstance(expected, str) else expected
        found = agreement.mismatch(expected, answer.values(name), name)
        if found is not None:
            return found
    return None


def _recorded_status(recorded: Json) -> list[object]:
    return [recorded["status"], _message(recorded.get("body"))]


def _message(body: object) -> object:
    """Return the message of a response body, else its kind, else the start of its text."""
    match body:
        case {"message": str(message)}:
            return message
        case {"kind": str(kind)}:
            return kind
        case str():
            return body[:200]
        case _:
            return None
