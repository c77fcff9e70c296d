"""Repetition: which items of a list stand in it already.

Lists of users are long; whoever compares each item with all before it takes hours.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fairlead.apiserver.json_equality import canonical_key


def repeated_places(items: Iterable[Any]) -> frozenset[int]:
    """The places of those JSON values that are like one before them."""
    places: list[int] = []
    seen: set[str | bytes] = set()
    for place, item in enumerate(items):
        what = canonical_key(item)
        if what in seen:
            places.append(place)
        seen.add(what)
    return frozenset(places)
