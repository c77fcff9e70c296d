"""Compares the printed output of a command with the recorded output, line by line.

Values that differ from run to run change the widths of columns. Therefore several spaces count as
one if the recorded output contains placeholders. Lists are sorted by name, so lines with generated
names may be in a different order.
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
from fairlead.conformance.api.placeholder import PlaceholderValues, has_placeholder, same_form
from fairlead.conformance.comparison import ABSENT, Mismatch

_BLANKS: Final = re.compile(r" {2,}|\t+ *")
_KLOG: Final = re.compile(r"^[EWI]\d{4} [\d:.]+ +\d+ ", re.MULTILINE)
_EDIT_FILE: Final = re.compile(r"\S*kubectl\S*edit-\d+\.(yaml|json)")
_SUFFIX: Final = re.compile(rf"(?<=-)[{SUFFIX_ALPHABET}]{{{SUFFIX_LENGTH}}}\b")
_HASH: Final = re.compile(rf"(?<=[-=])[{SUFFIX_ALPHABET}]{{8,10}}\b")
# The minutes since 1970, in the name of a CronJob's Job.
_MINUTE: Final = re.compile(r"(?<=-)\d{8}(?=-| |\Z)")
# The process that holds a Lease was recorded without a placeholder.
_HOLDER: Final = re.compile(r"(?<=_)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
_GENERATED: Final = re.compile(r"<(?:hash|gen):")
_GENERATED_NAME: Final = re.compile(r"<(?:hash|gen):\w+>")
_YAML: Final = ("apiVersion: ", "kind: ")
_PODS: Final = re.compile(r'\b(?!node/)[\w.-]+/"?[\w.:<>-]+"?(?:, [\w.-]+/[\w.:<>-]+)*')
_NODE: Final = re.compile(r"\bnode-[123]\b|\bzone-[ab]\b")


def mismatch(
    recorded: str, found: str, bindings: PlaceholderValues, called: str, *, in_order: bool = True
) -> Mismatch | None:
    """Return the first mismatching line; None if there is none.

    `bindings` contains the values of placeholders. If a placeholder has no value yet, it gets the
    value in `found`. `called` is the name of the output in the returned mismatch, such as stdout.
    If each output is a single JSON or YAML object, the objects are compared. If `in_order` is
    False, the lines may be in any order.
    """
    objects = _object(recorded), _object(found)
    if objects[0] is not None and objects[1] is not None:
        return Agreement(bindings, managed_fields=True).mismatch(*objects, called)
    lines, others = _lines(recorded, recorded), _lines(found, recorded)
    found_mismatch = _in_order(lines, others, deepcopy(bindings), called)
    if found_mismatch is not None:
        rearranged = _rearranged(lines, others, any_line=not in_order)
        if rearranged is None:
            return found_mismatch
        others = rearranged
    return None if _in_order(lines, others, bindings, called) is None else found_mismatch


def drain_messages(text: str) -> str:
    """Return the distinct messages of a drain, with a placeholder for the random pod names."""
    said = {_PODS.sub("<pods>", line): None for line in text.splitlines()}
    return "".join(f"{line}\n" for line in said)


def _in_order(
    lines: list[str], others: list[str], bindings: PlaceholderValues, called: str
) -> Mismatch | None:
    for number, (expected, shown) in enumerate(zip_longest(lines, others, fillvalue=ABSENT), 1):
        if not _is_same(expected, shown, bindings):
            return Mismatch(f"{called} line {number}", expected, shown)
    return None


def _lines(text: str, recorded: str) -> list[str]:
    """Return the lines of the output `text`, without the parts that differ between runs.

    If the output `recorded` has placeholders, each sequence of spaces or tabs in `text` is reduced
    to one space, because the widths of table columns may differ.
    """
    text = _EDIT_FILE.sub("<draft>", _KLOG.sub("E<klog> ", _HOLDER.sub("<holder>", text)))
    if has_placeholder(recorded):
        text = _BLANKS.sub(" ", text)
    return [line.rstrip() for line in text.splitlines()]


def _rearranged(lines: list[str], others: list[str], *, any_line: bool) -> list[str] | None:
    """Return the lines `others`, rearranged so that they match `lines` in order.

    Lines that match none of `lines` are last. If `any_line` is False, only lines with generated
    names may move. Returns None if another line would have to move, or if one of `lines` has no
    match.
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
    """Return `lines` after removing, for each line of `taken`, one line that is equal to it."""
    left = list(lines)
    for line in taken:
        left.remove(line)
    return left


def _is_alike(expected: str, shown: str) -> bool:
    return any(same_form(cut(expected), cut(shown)) for cut in _NORMALIZATIONS)


def _is_same(expected: str, shown: str, bindings: PlaceholderValues) -> bool:
    return any(bindings.matches(cut(expected), cut(shown)) for cut in _NORMALIZATIONS)


def _whole(line: str) -> str:
    return line


def _without_nodes(line: str) -> str:
    return _NODE.sub("", line)


def _without_suffixes(line: str) -> str:
    return _MINUTE.sub("", _HASH.sub("", _SUFFIX.sub("", _NODE.sub("", line))))


def _without_names(line: str) -> str:
    return _GENERATED_NAME.sub("", _without_suffixes(line))


# Two lines match if they match after one of these functions is applied to both. The first function
# keeps the complete line, and the last one only the deterministic parts. With the last one, a line
# about a pod of a ReplicaSet also matches a line about another pod of this ReplicaSet.
_NORMALIZATIONS: Final = (_whole, _without_nodes, _without_suffixes, _without_names)


def _object(text: str) -> dict[str, Any] | None:
    """Return the object in a JSON or YAML text; None for other texts, such as several documents."""
    with suppress(ValueError, yaml.YAMLError):
        if text.startswith(_YAML):
            found = yaml.CSafeLoader(text).get_single_data()
        else:
            found = json.loads(text)
        if isinstance(found, dict):
            return found
    return None
