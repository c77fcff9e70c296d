"""The functions by which calls are retold that the library cannot answer (`retelling`)."""

from __future__ import annotations

from typing import Any, Final

from fairlead.cel.address import text_of
from fairlead.cel.amount import loose_version, version_value
from fairlead.cel.function import LIST, MAP, TEXT, TRUTH, VALUE, WHOLE, Function, free
from fairlead.cel.printing import printable

Map = dict[Any, Any]


def _map_of(entries: list[list[Any]]) -> Map:
    """A map of keys and values."""
    return _merged([{key: value} for key, value in entries])


def _merged(maps: list[Map]) -> Map:
    whole: Map = {}
    for one in maps:
        for key, value in one.items():
            if key in whole:
                raise ValueError(f"insert failed: key {key} already exists")
            whole[key] = value
    return whole


def _char_at(text: str, at: int) -> str:
    _require_place(at, len(text))
    return text[at : at + 1]


def _substring(text: str, start: int, end: int | None = None) -> str:
    stop = len(text) if end is None else end
    if end is not None and start > end:
        raise ValueError(f"invalid substring range. start: {start}, end: {end}")
    _require_place(start, len(text))
    _require_place(stop, len(text))
    return text[start:stop]


def _require_place(at: int, size: int) -> None:
    if not 0 <= at <= size:
        raise ValueError(f"index out of range: {at}")


def _first_from(text: str, wanted: str, start: int) -> int:
    if start < 0:
        raise ValueError(f"index out of range: {start}")
    return text.find(wanted, start) if start < len(text) or not wanted else -1


def _last_to(text: str, wanted: str, start: int) -> int:
    if start < 0:
        raise ValueError(f"index out of range: {start}")
    if not wanted:
        return start
    return text.rfind(wanted, 0, start + len(wanted)) if start < len(text) else -1


def _first(items: list[Any], held: list[Any]) -> int:
    return next((at for at, item in enumerate(items) if item == held[0]), -1)


def _last(items: list[Any], wanted: list[Any]) -> int:
    at = _first(items[::-1], wanted)
    return len(items) - 1 - at if at >= 0 else -1


def _version(text: str, is_loose: bool) -> Map:  # noqa: FBT001 - the language has no keywords
    return version_value(loose_version(text) if is_loose else text)


def _is_version(text: str, is_loose: bool) -> bool:  # noqa: FBT001 - likewise
    try:
        _version(text, is_loose)
    except ValueError:
        return False
    return True


FUNCTIONS: Final[tuple[Function, ...]] = (
    free("@map", MAP, (LIST,), _map_of),
    free("@merge", MAP, (LIST,), _merged),
    free("@indexOf", WHOLE, (LIST, LIST), _first),
    free("@lastIndexOf", WHOLE, (LIST, LIST), _last),
    free("@indexOf", WHOLE, (TEXT, TEXT, WHOLE), _first_from),
    free("@lastIndexOf", WHOLE, (TEXT, TEXT, WHOLE), _last_to),
    free("@printable", LIST, (LIST,), printable),
    free("@charAt", TEXT, (TEXT, WHOLE), _char_at),
    free("@substring", TEXT, (TEXT, WHOLE), _substring),
    free("@substring", TEXT, (TEXT, WHOLE, WHOLE), _substring),
    free("@text", TEXT, (VALUE,), text_of),
    free("@semver", VALUE, (TEXT, TRUTH), _version),
    free("@isSemver", TRUTH, (TEXT, TRUTH), _is_version),
)
