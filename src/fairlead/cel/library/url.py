"""CEL functions for URLs. A URL needs a scheme, unless it is an absolute path such as `/a/b`.

upstream: apiserver/pkg/cel/library/urls.go, Go's net/url:ParseRequestURI
"""

from __future__ import annotations

import json
import re
from typing import ClassVar, Final

from msgspec import Struct

from fairlead.cel.function import Function, free, is_readable, member, scan

_FORM: Final = re.compile(
    r"(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?://([^/?]*))?([^?]*)(?:\?(.*))?", re.DOTALL
)
_CONTROL: Final = re.compile(r"[\x00-\x20\x7f]")
_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_HOST: Final = re.compile(r"(?:[^@]*@)?(\[[^\[\]]*\]|[^:\[\]]*)(?::([0-9]*))?")
_CODE: Final = re.compile(rb"%([0-9A-Fa-f]{2})")


def uri_problem(text: str) -> str:
    """Return the error text if `text` is not a URL, otherwise ""."""
    try:
        _parts(text)
    except ValueError as cause:
        return str(cause).partition(": ")[2]
    return ""


def _parts(text: str) -> tuple[str, str, str, str]:
    """Return (scheme, host with port, path, query) of a URL. Raises ValueError."""
    matched = _FORM.fullmatch(text)
    if matched is None or not text or _CONTROL.search(text):
        raise ValueError(_no_url(text))
    scheme, host, path, query = (part or "" for part in matched.groups())
    is_absolute = bool(scheme) or (path.startswith("/") and not host)
    if not is_absolute or _ESCAPE.search(path) or not _HOST.fullmatch(host):
        raise ValueError(_no_url(text))
    return scheme.lower(), host.rpartition("@")[2], path, query


def _no_url(text: str) -> str:
    """Return the error message of Go's parser for a text that is not a URL."""
    why = "invalid URI for request" if text else "empty url"
    if _CONTROL.search(text) and " " not in text:
        why = "net/url: invalid control character in URL"
    if " " in text.partition("://")[2].partition("/")[0]:
        why = 'invalid character " " in host name'
    shown = json.dumps(text, ensure_ascii=False)
    return f"URL parse error during conversion from string: parse {shown}: {why}"


class URL(Struct, frozen=True):
    """A URL as text that `url()` has already parsed."""

    text: str
    type_name: ClassVar[str] = "kubernetes.URL"

    @property
    def size(self) -> int:
        """The number of characters of the URL."""
        return len(self.text)

    @property
    def host_and_port(self) -> tuple[str, str]:
        """(host without brackets, port); the port is "" if there is none."""
        matched = _HOST.fullmatch(_parts(self.text)[1])
        name, port = matched.groups() if matched else ("", "")
        return name.strip("[]"), port or ""


def _url(text: str) -> URL:
    _parts(text)
    return URL(text)


def _plain(text: str) -> str:
    raw = text.replace("+", " ").encode()
    return _CODE.sub(lambda found: bytes((int(found[1], 16),)), raw).decode(errors="replace")


def _query(value: URL) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for pair in filter(None, _parts(value.text)[3].partition("#")[0].split("&")):
        key, _, text = pair.partition("=")
        found.setdefault(_plain(key), []).append(_plain(text))
    return found


FUNCTIONS: Final[tuple[Function, ...]] = (
    free("url", (str,), _url, scan),
    free("isURL", (str,), is_readable(_url)),
    member("getScheme", (URL,), lambda value: _parts(value.text)[0]),
    member("getHost", (URL,), lambda value: _parts(value.text)[1]),
    member("getHostname", (URL,), lambda value: value.host_and_port[0]),
    member("getPort", (URL,), lambda value: value.host_and_port[1]),
    member("getEscapedPath", (URL,), lambda value: _parts(value.text)[2]),
    member("getQuery", (URL,), _query),
)
