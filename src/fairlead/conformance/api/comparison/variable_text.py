"""Compares texts that vary between runs of upstream.

The texts vary for three reasons: they contain generated names, Go iterates maps in random order,
and upstream chooses randomly among equal nodes and quotas.
"""

from __future__ import annotations

import json
import re
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.registry.id_source import SUFFIX_ALPHABET, SUFFIX_LENGTH
from fairlead.conformance.api.placeholder import has_placeholder

# Resource versions in messages were recorded without placeholders.
_VERSION: Final = re.compile(r"(?<=in record \()\d+(?=\))")
_OLDEST: Final = re.compile(r"(too old resource version: \S+ \()(\d+)(?=\))")
# The minutes since 1970, in the name of a CronJob's Job that was recorded without a placeholder.
_MINUTE: Final = re.compile(r"(?<=-)\d{8}(?=-|\Z)")
# The suffix of the name of a pod that was never created; it was recorded without a placeholder.
_ABSENT_POD: Final = re.compile(rf"(?<=>-)[{SUFFIX_ALPHABET}]{{{SUFFIX_LENGTH}}}\b")
# The hash of a pod template, which was recorded without a placeholder.
_HASH: Final = re.compile(rf"(?<=-)[{SUFFIX_ALPHABET}]{{8,10}}\b")
# (end of the path, form of the value) of generated fields in printed objects, whose values were
# recorded without placeholders.
_PRINTED: Final = (
    (".pod-template-hash", re.compile(rf"[{SUFFIX_ALPHABET}]{{8,10}}")),
    ("metadata.resourceVersion", re.compile(r"\d+")),
)
_UNTYPED: Final = re.compile(
    r"(failed to create typed patch object \([^)]*\)): (?:errors:\n  )?(.*)", re.DOTALL
)
_UNKNOWN: Final = "field not declared in schema"
_VARIABLE: Final = (_HASH, _MINUTE)
PLACE: Final = re.compile(r"node-[123]|zone-[ab]")
_QUOTA: Final = re.compile(r"(?<=exceeded quota: )[^ ,]+(?=,)")


def is_generated(path: str, recorded: str, found: str) -> bool:
    """Return whether `path` is the path of a generated field and both texts have its form."""
    form = next((form for member, form in _PRINTED if path.endswith(member)), None)
    return form is not None and all(form.fullmatch(text) for text in (recorded, found))


def without_absent_pods(recorded: str) -> str:
    """Return `recorded`, with `<gen>` in place of the name suffix of any pod that was not created.

    In the recordings, only the suffixes of created pods were replaced by placeholders.
    """
    return _ABSENT_POD.sub("<gen>", recorded)


def without_generated(recorded: str, found: str) -> tuple[str, str]:
    """Return (recorded, found), with the text "any" in place of each generated part of a name.

    A generated part is the hash of a pod template, or the scheduled time (minutes since 1970) in
    the name of a CronJob's Job. Hashes are replaced only if `recorded` contains a hash, and times
    only if it contains a time.
    """
    for chance in _VARIABLE:
        if chance.search(recorded):
            recorded, found = chance.sub("any", recorded), chance.sub("any", found)
    return recorded, found


def with_nodes_of(recorded: str, found: str) -> str:
    """Return `recorded` with its node and zone names replaced, in order, by those in `found`.

    If the two texts contain different numbers of such names, return `recorded` unchanged.
    """
    places = PLACE.findall(found)
    if len(places) != len(PLACE.findall(recorded)):
        return recorded
    return PLACE.sub(lambda _: places.pop(0), recorded)


def same_typed_errors(recorded: str, found: str) -> bool:
    """Return whether both texts are typed-patch errors that may have the same cause.

    Upstream visits fields in random order and stops at the first unknown field, so the same patch
    can cause different lists of errors. The causes may be the same if one of the lists contains all
    errors of the other. Returns False if none of the recorded errors is about an unknown field.
    """
    one, other = _UNTYPED.fullmatch(recorded), _UNTYPED.fullmatch(found)
    if one is None or other is None or one[1] != other[1]:
        return False
    sides = [set(side[2].split("\n  ")) for side in (one, other)]
    return _UNKNOWN in recorded and (sides[0] <= sides[1] or sides[1] <= sides[0])


def with_generated_values_of(recorded: Json, found: Json) -> Json:
    """Return the Status `recorded` with the generated values of the Status `found`.

    These values are the object's name, if it was generated, and the resource versions.
    """
    before = (recorded.get("details") or {}).get("name", "")
    after = (found.get("details") or {}).get("name", "")
    text = json.dumps(recorded)
    if before and as_generated(before, after) != before:
        text = text.replace(before, after)
    version = _VERSION.search(str(found.get("message")))
    if version is not None:
        text = _VERSION.sub(version[0], text)
    oldest = _OLDEST.search(str(found.get("message")))
    if oldest is not None:
        text = _OLDEST.sub(lambda m: f"{m[1]}{oldest[2]}", text)
    changed: Json = json.loads(text)
    return changed


def as_generated(recorded: str, found: str) -> str:
    """Return `found` if the texts differ only in a generated suffix, otherwise `recorded`."""
    prefix = recorded[:-SUFFIX_LENGTH]
    suffixes = recorded[len(prefix) :] + found[len(prefix) :]
    alike = len(recorded) == len(found) and found.startswith(prefix) and bool(prefix)
    return found if alike and set(suffixes) <= set(SUFFIX_ALPHABET) else recorded


def same_problem_list(recorded: str, found: object) -> bool:
    """Return whether both messages list the same problems; order and quota names may differ.

    If a request exceeds several quotas, upstream's message names only one of them, at random.
    Returns False if `recorded` contains placeholders.
    """
    if not isinstance(found, str) or has_placeholder(recorded):
        return False
    recorded, found = _QUOTA.sub("quota", recorded), _QUOTA.sub("quota", found)
    return sorted(_complaints(recorded)) == sorted(_complaints(found))


def _complaints(message: str) -> list[str]:
    head, bracket, rest = message.partition(": [")
    if not bracket:
        return [message]
    return [head, *rest.removesuffix("]").split(", ")]
