"""URLs: absolute ones, or absolute paths.

upstream: apiserver/pkg/cel/library/urls.go, Go's net/url:ParseRequestURI
"""

from __future__ import annotations

import json
import re
from typing import Final

from fairlead.cel.function import TEXT, TRUTH, VALUE, Function, Value, free, is_readable, member, of

_URL: Final = "kubernetes.URL"
_FORM: Final = re.compile(
    r"(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?://([^/?]*))?([^?]*)(?:\?(.*))?", re.DOTALL
)
_CONTROL: Final = re.compile(r"[\x00-\x20\x7f]")
_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_HOST: Final = re.compile(r"(?:[^@]*@)?(\[[^\[\]]*\]|[^:\[\]]*)(?::([0-9]*))?")
_CODE: Final = re.compile(rb"%([0-9A-Fa-f]{2})")


def uri_problem(text: str) -> str:
    """Why a text is no URL; nothing where it is one."""
    try:
        _parts(text)
    except ValueError as cause:
        return str(cause).partition(": ")[2]
    return ""


def _parts(text: str) -> tuple[str, str, str, str]:
    """Scheme, host with port, path and query. Raises ValueError."""
    matched = _FORM.fullmatch(text)
    if matched is None or not text or _CONTROL.search(text):
        raise ValueError(_no_url(text))
    scheme, host, path, query = (part or "" for part in matched.groups())
    is_absolute = bool(scheme) or (path.startswith("/") and not host)
    if not is_absolute or _ESCAPE.search(path) or not _HOST.fullmatch(host):
        raise ValueError(_no_url(text))
    return scheme.lower(), host.rpartition("@")[2], path, query


def _no_url(text: str) -> str:
    """Why a text is no URL, as far as it is told apart here."""
    why = "invalid URI for request" if text else "empty url"
    if _CONTROL.search(text) and " " not in text:
        why = "net/url: invalid control character in URL"
    if " " in text.partition("://")[2].partition("/")[0]:
        why = 'invalid character " " in host name'
    shown = json.dumps(text, ensure_ascii=False)
    return f"URL parse error during conversion from string: parse {shown}: {why}"


def _url(text: str) -> Value:
    _parts(text)
    return {_URL: text}


def _of(value: Value) -> tuple[str, str, str, str]:
    return _parts(of(value, _URL, "a URL"))


def _host(value: Value) -> tuple[str, str]:
    matched = _HOST.fullmatch(_of(value)[1])
    name, port = matched.groups() if matched else ("", "")
    return name.strip("[]"), port or ""


def _plain(text: str) -> str:
    raw = text.replace("+", " ").encode()
    return _CODE.sub(lambda found: bytes((int(found[1], 16),)), raw).decode(errors="replace")


def _query(value: Value) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for pair in filter(None, _of(value)[3].partition("#")[0].split("&")):
        key, _, said = pair.partition("=")
        found.setdefault(_plain(key), []).append(_plain(said))
    return found


FUNCTIONS: Final[tuple[Function, ...]] = (
    free("url", VALUE, (TEXT,), _url),
    free("isURL", TRUTH, (TEXT,), is_readable(_url)),
    member("getScheme", TEXT, (VALUE,), lambda value: _of(value)[0]),
    member("getHost", TEXT, (VALUE,), lambda value: _of(value)[1]),
    member("getHostname", TEXT, (VALUE,), lambda value: _host(value)[0]),
    member("getPort", TEXT, (VALUE,), lambda value: _host(value)[1]),
    member("getEscapedPath", TEXT, (VALUE,), lambda value: _of(value)[2]),
    member("getQuery", VALUE, (VALUE,), _query),
)
