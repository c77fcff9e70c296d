"""Placeholders in recordings for values that differ between runs.

For example, `<uid:3>` is the third uid of a case: `uid` is the name of the placeholder, and `3` is
its key. If the name is in `_BOUND`, the first response with the placeholder binds it to a value.
Later responses must have the same value wherever the placeholder occurs, and later requests are
sent with this value. Resource versions (`rv`) are bound only if `exact_version` is set
(`PlaceholderValues.matches`). A bound version must be greater than the versions of all smaller
keys. For all other placeholders, such as times, only the form of the value is compared.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from msgspec import Struct, field

SECOND_TIME: Final = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"
MICRO_TIME: Final = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z"
# The form of the values of each placeholder.
_FORMS: Final[Mapping[str, str]] = {
    "uid": r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    "rv": r"\d+",
    "ts": SECOND_TIME,
    "mts": MICRO_TIME,
    "gen": r"[0-9a-z]+",
    "hash": r"[0-9A-Za-z]+",
    "svcip": r"[0-9a-f.:]+",
    "podip": r"[0-9a-f.:]+",
    "nodeport": r"\d+",
    "continue": r"[\w=-]+",
    "evt": r"[0-9a-f.]+",
    "age": r"(?:[0-9a-z]+|<unknown>|<invalid>)",
    "date": r".+?",
    "jwt": r"[\w.=-]+",
    "cert": r"[^\"]+",
    "etag": r".+?",
    "tmp": r"\S+?",
    "wd": r"\S+?",
    "host": r"[^_\"\s]+",
}
# Placeholders that stand for the same value wherever they have the same key.
_BOUND: Final = frozenset(
    ("uid", "gen", "hash", "svcip", "podip", "nodeport", "continue", "evt"),
)
_PLACEHOLDER: Final = re.compile(rf"<({'|'.join(_FORMS)})(?::([a-z]?\d+))?>")


@dataclass(frozen=True, slots=True)
class _Form:
    """A text as a regular expression, with a capturing group for each placeholder.

    Capturing group i + 1 has the value of the placeholder whose (name, key) is `stands_for[i]`.
    """

    pattern: re.Pattern[str]
    stands_for: tuple[tuple[str, str], ...]


@lru_cache(maxsize=4096)
def _form(text: str) -> _Form | None:
    """Return the pattern of a recorded text; None if the text contains no placeholder."""
    parts, names, end = [], [], 0
    for found in _PLACEHOLDER.finditer(text):
        parts += [re.escape(text[end : found.start()]), f"({_FORMS[found[1]]})"]
        names.append((found[1], found[2] or ""))
        end = found.end()
    if not names:
        return None
    parts.append(re.escape(text[end:]))
    return _Form(re.compile("".join(parts), re.DOTALL), tuple(names))


def has_placeholder(text: str) -> bool:
    """Return whether `text` contains a placeholder."""
    return _form(text) is not None


def same_form(recorded: str, found: str) -> bool:
    """Return whether `found` is `recorded` with a value in place of each placeholder.

    A value needs only the form of its placeholder. This function neither reads nor changes the
    values to which placeholders are bound.
    """
    form = _form(recorded)
    return recorded == found if form is None else form.pattern.fullmatch(found) is not None


class PlaceholderValues(Struct):
    """The values to which a case's placeholders are bound in this replay."""

    _values: dict[str, object] = field(default_factory=dict)
    _versions: dict[int, int] = field(default_factory=dict)

    def matches(self, recorded: str, found: object, *, exact_version: bool = False) -> bool:
        """Return whether `found` matches `recorded`; binds unbound placeholders.

        Returns False if a placeholder is already bound to a value that differs from the value in
        `found`. If `exact_version` is set, resource versions are compared: each `<rv:N>` stands for
        one version, and a greater N stands for a greater version. Otherwise, only the form of
        resource versions is compared.
        """
        form = _form(recorded)
        if form is None:
            return recorded == found
        matched = form.pattern.fullmatch(str(found))
        if matched is None:
            return False
        values = dict(zip(form.stands_for, matched.groups(), strict=True))
        if exact_version and form.stands_for[0][0] == "rv" and form.stands_for[0][1]:
            return self._bind_version(int(form.stands_for[0][1]), int(matched[1]))
        alone = len(values) == 1 and matched[1] == str(found)
        return all(
            self._bind(name, key, found if alone else value)
            for (name, key), value in values.items()
        )

    def names_another(self, recorded: str, found: str) -> bool:
        """Return whether `found` is `recorded` with a known name in place of each placeholder.

        A name is known if a placeholder `gen` with any key is bound to it. Each `gen` in `recorded`
        may be replaced by any known name. Returns False if `recorded` contains no placeholder, or
        if it contains a placeholder other than `gen`.
        """
        form = _form(recorded)
        matched = form.pattern.fullmatch(found) if form else None
        if form is None or matched is None or {name for name, _ in form.stands_for} != {"gen"}:
            return False
        known = {value for text, value in self._values.items() if text.startswith("gen:")}
        return known.issuperset(matched.groups())

    def filled(self, value: Any) -> Any:
        """Return `value`, a part of a recorded request, with its placeholders replaced.

        Each placeholder is replaced by the value to which it is bound. An unbound placeholder is
        first bound to a made-up value. If no value can be made up, the placeholder stays.
        """
        match value:
            case str():
                return self._filled_text(value)
            case list():
                return [self.filled(item) for item in value]
            case dict():
                return {self._filled_text(k): self.filled(item) for k, item in value.items()}
            case _:
                return value

    def _filled_text(self, text: str) -> Any:
        alone = _PLACEHOLDER.fullmatch(text)
        if alone:
            return self._value(alone[0], alone[1], alone[2] or "")
        return _PLACEHOLDER.sub(lambda m: str(self._value(m[0], m[1], m[2] or "")), text)

    def _value(self, placeholder: str, name: str, key: str) -> object:
        """Return the value to which the placeholder `<name:key>` is bound.

        An unbound placeholder is first bound to a new value. If no value can be made up, return
        `placeholder`.
        """
        text = f"{name}:{key}"
        if text not in self._values:
            made = _generated(name, key)
            if made is None:
                return placeholder
            self._values[text] = made
        return self._values[text]

    def _bind(self, name: str, key: str, value: object) -> bool:
        text = f"{name}:{key}"
        if not key or name not in _BOUND:
            self._values[text] = value
            return True
        bound = self._values.setdefault(text, value)
        return str(bound) == str(value)

    def _bind_version(self, rank: int, version: int) -> bool:
        self._values[f"rv:{rank}"] = str(version)
        if rank in self._versions:
            return self._versions[rank] == version
        ranks = sorted(self._versions)
        place = bisect(ranks, rank)
        self._versions[rank] = version
        is_after = place == 0 or self._versions[ranks[place - 1]] < version
        return is_after and (place == len(ranks) or version < self._versions[ranks[place]])


def _generated(name: str, key: str) -> str | None:
    """Return a made-up value for `name:key`, a placeholder that no response has bound to a value.

    Returns None if no value can be made up for `name`.
    """
    number = int(re.sub(r"\D", "", key) or 0)
    match name:
        case "uid":
            return f"00000000-0000-4000-8000-{number:012x}"
        case "ts":
            return f"2026-01-01T{number // 3600:02}:{number // 60 % 60:02}:{number % 60:02}Z"
        case "mts":
            return f"2026-01-01T00:00:{number % 60:02}.{number:06}Z"
        case "rv":
            return str(number)
        case "podip":
            return f"10.244.1.{number}"
        case "svcip":
            return f"10.96.200.{number}"
        case "gen" | "hash" | "evt":
            return f"b{number:04}"
        case _:
            return None
