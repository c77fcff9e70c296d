"""The order of two lists made one: the second's items in its order, the first's between them.

Items are told apart by steps. Those that both have come from the second list; those only in the
first keep their place relative to shared neighbours, and stay as often as they are there.

upstream: sigs.k8s.io/structured-merge-diff/typed/merge.go:visitListItems
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Keyed = tuple[str, Any]


def interleaved(left: list[Keyed], right: list[Keyed]) -> Iterator[tuple[str, Any, bool]]:
    """The items of both in one order, each shared one once; and whether it is the second's."""
    known, wanted = {step for step, _ in left}, {step for step, _ in right}
    shared = iter([step for step, _ in right if step in known])
    awaited = next(shared, None)
    taken: set[str] = set()
    mine = theirs = 0
    while mine < len(left) or theirs < len(right):
        step = left[mine][0] if mine < len(left) else None
        if step is not None and step not in wanted:
            yield *left[mine], False
            mine += 1
            continue
        has_both = step is not None and theirs < len(right)
        is_met = has_both and step == right[theirs][0]
        if has_both and not is_met and awaited not in (None, step):
            mine += 1  # shared, but its turn is another
            continue
        if is_met or step in taken:
            mine += 1
        if theirs < len(right):
            found = right[theirs][0]
            taken.add(found)
            yield *right[theirs], True
            theirs += 1
            if is_met or found == awaited:
                awaited = next(shared, None)
