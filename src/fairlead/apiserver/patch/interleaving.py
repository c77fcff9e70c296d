"""The order of two lists made one: the second's items in its order, the first's between them.

Items are told apart by steps. Those that both have come from the second list; those only in the
first keep their place relative to shared neighbours.

upstream: sigs.k8s.io/structured-merge-diff/typed/merge.go:visitListItems
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

Keyed = tuple[str, Any]


def interleaved(left: list[Keyed], right: list[Keyed]) -> Iterator[Keyed]:
    """The items of both in one order, each shared one once."""
    known = {step for step, _ in left}
    wanted = {step for step, _ in right}
    shared = deque(step for step, _ in right if step in known)
    taken: set[str] = set()
    queue = list(reversed(left))
    for step, item in right:
        yield from _before(step, queue, wanted, shared, taken)
        if queue and queue[-1][0] == step:
            queue.pop()
        taken.add(step)
        if shared and shared[0] == step:
            shared.popleft()
        yield step, item
    yield from ((step, item) for step, item in reversed(queue) if step not in wanted)


def _before(
    step: str, queue: list[Keyed], wanted: set[str], shared: deque[str], taken: set[str]
) -> Iterator[Keyed]:
    """What only the first list has and stands, there, before the next shared item."""
    while queue and queue[-1][0] != step:
        mine = queue[-1][0]
        if mine not in wanted:
            yield queue.pop()
        elif mine in taken or (shared and shared[0] != mine):
            queue.pop()
        else:
            return
