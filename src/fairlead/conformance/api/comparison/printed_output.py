"""Comparing what a command printed, line by line.

A line with a placeholder has another width, and so may have the columns above and below it: then
runs of blanks count as one. Lines with generated names may stand in another order, for they are
sorted by them.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from copy import deepcopy
from itertools import zip_longest
from typing import Any, Final

import yaml

from fairlead.apiserver.registry.id_source import SUFFIX_ALPHABET, SUFFIX_LENGTH
from fairlead.conformance.api.comparison.agreement import Agreement
from fairlead.conformance.api.comparison.placeholder import Bindings, has_placeholder, same_form
from fairlead.conformance.comparison import ABSENT, Mismatch

_BLANKS: Final = re.compile(r" {2,}|\t+ *")
_KLOG: Final = re.compile(r"^[EWI]\d{4} [\d:.]+ +\d+ ", re.MULTILINE)
_DRAFT: Final = re.compile(r"\S*kubectl\S*edit-\d+\.(yaml|json)")
# Among equal nodes upstream's choice is chance.
_SUFFIX: Final = re.compile(rf"(?<=-)[{SUFFIX_ALPHABET}]{{{SUFFIX_LENGTH}}}\b")
_HASH: Final = re.compile(rf"(?<=[-=])[{SUFFIX_ALPHABET}]{{8,10}}\b")
_MINUTE: Final = re.compile(r"(?<=-)\d{8}(?=-| |\Z)")  # of a CronJob's Job, since 1970
# Which process of a machine holds a Lease was recorded as it was.
_HOLDER: Final = re.compile(r"(?<=_)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
_GENERATED: Final = re.compile(r"<(?:hash|gen):")
_MADE: Final = re.compile(r"<(?:hash|gen):\w+>")  # which of a set's pods it is may be chance
_YAML: Final = ("apiVersion: ", "kind: ")
_PODS: Final = re.compile(r'\b(?!node/)[\w.-]+/"?[\w.:<>-]+"?(?:, [\w.-]+/[\w.:<>-]+)*')
_NODE: Final = re.compile(r"\bnode-[123]\b|\bzone-[ab]\b")


def difference(
    recorded: str, found: str, bindings: Bindings, called: str, *, in_order: bool = True
) -> Mismatch | None:
    """The first line that differs; `called` is which output it is.

    One object is compared as what it is. `in_order` False: lines may come in any.
    """
    objects = _object(recorded), _object(found)
    if objects[0] is not None and objects[1] is not None:
        return Agreement(bindings, managed_fields=True).difference(*objects, called)
    lines, others = _lines(recorded, recorded), _lines(found, recorded)
    told = _in_order(lines, others, deepcopy(bindings), called)
    if told is not None:
        rearranged = _rearranged(lines, others, any_line=not in_order)
        if rearranged is None:
            return told
        others = rearranged
    return None if _in_order(lines, others, bindings, called) is None else told


def said_of_pods(text: str) -> str:
    """What a drain said, once each, whichever pods it said it of: where they run is chance."""
    said = {_PODS.sub("<pods>", line): None for line in text.splitlines()}
    return "".join(f"{line}\n" for line in said)


def _in_order(
    lines: list[str], others: list[str], bindings: Bindings, called: str
) -> Mismatch | None:
    for number, (expected, shown) in enumerate(zip_longest(lines, others, fillvalue=ABSENT), 1):
        if not _is_same(expected, shown, bindings):
            return Mismatch(f"{called} line {number}", expected, shown)
    return None


def _lines(text: str, recorded: str) -> list[str]:
    """The lines of an output, without what differs from run to run."""
    text = _DRAFT.sub("<draft>", _KLOG.sub("E<klog> ", _HOLDER.sub("<holder>", text)))
    if has_placeholder(recorded):
        text = _BLANKS.sub(" ", text)
    return [line.rstrip() for line in text.splitlines()]


def _rearranged(lines: list[str], others: list[str], *, any_line: bool) -> list[str] | None:
    """`others` so that each stands beside a line that it could be, None where that cannot be.

    Unless `any_line` may move, only lines with generated names do.
    """
    left, found, moved = list(others), [], []
    for line in lines:
        same = next((other for other in left if _is_alike(line, other)), None)
        if same is None:
            return None
        left.remove(same)
        found.append(same)
        if any_line or _GENERATED.search(line):
            moved.append(same)
    found += left
    return found if _less(found, moved) == _less(others, moved) else None


def _less(lines: list[str], taken: list[str]) -> list[str]:
    """`lines` without those `taken`."""
    left = list(lines)
    for line in taken:
        left.remove(line)
    return left


def _is_alike(expected: str, shown: str) -> bool:
    return any(same_form(cut(expected), cut(shown)) for cut in _CUTS)


def _is_same(expected: str, shown: str, bindings: Bindings) -> bool:
    return any(bindings.matches(cut(expected), cut(shown)) for cut in _CUTS)


def _whole(line: str) -> str:
    return line


def _without_nodes(line: str) -> str:
    return _NODE.sub("", line)


def _without_suffixes(line: str) -> str:
    return _MINUTE.sub("", _HASH.sub("", _SUFFIX.sub("", _NODE.sub("", line))))


def _without_names(line: str) -> str:
    return _MADE.sub("", _without_suffixes(line))


# What of a line must be the same, from all of it to what no chance has a part in.
_CUTS: Final = (_whole, _without_nodes, _without_suffixes, _without_names)


def _object(text: str) -> dict[str, Any] | None:
    """What JSON or YAML shows, None where it is something else or a YAML of several."""
    with suppress(ValueError, yaml.YAMLError):
        if text.startswith(_YAML):
            found = yaml.CSafeLoader(text).get_single_data()
        else:
            found = json.loads(text)
        if isinstance(found, dict):
            return found
    return None
