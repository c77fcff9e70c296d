"""Words for numbers of things: `counted` and `counted_of`."""

from __future__ import annotations


def counted(count: int, noun: str, plural: str = "") -> str:
    """Return `count` with its noun, such as `2,000 pods`; `plural` defaults to `noun` plus `s`."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def counted_of(
    count: int, total: int, noun: str, verbs: tuple[str, str] = ("is", "are"), plural: str = ""
) -> str:
    """Return words for `count` of `total` things, with their verb: `2 of 9 nodes are`.

    `verbs` are the singular and the plural of the verb. `plural` defaults to `noun` plus `s`. The
    noun is plural unless `total` is 1. The verb is singular if `count` or `total` is 1: `0 of 1
    node is`, `1 of 9 nodes is`.
    """
    one, several = verbs
    return f"{count:,} of {counted(total, noun, plural)} {one if 1 in (count, total) else several}"
