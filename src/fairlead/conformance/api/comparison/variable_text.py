"""Chance: texts that say the same, though no two runs of upstream share their words.

Names that are made up stand in texts as they were recorded, Go comes to the entries of a map in any
order, and which of equal nodes or quotas is named first is anybody's guess.
"""

from __future__ import annotations

import json
import re
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.registry.id_source import SUFFIX_ALPHABET, SUFFIX_LENGTH
from fairlead.conformance.api.comparison.placeholder import has_placeholder

# A version in a message was recorded as it was.
_VERSION: Final = re.compile(r"(?<=in record \()\d+(?=\))")
_OLDEST: Final = re.compile(r"(too old resource version: \S+ \()(\d+)(?=\))")
# The minute (since 1970) in the name of a CronJob's Job was, too.
_MINUTE: Final = re.compile(r"(?<=-)\d{8}(?=-|\Z)")
# So was the end of a pod's name in a text, if the pod itself never came to be.
_UNBORN: Final = re.compile(rf"(?<=>-)[{SUFFIX_ALPHABET}]{{{SUFFIX_LENGTH}}}\b")
# A template's hash in a text was recorded as it was.
_HASH: Final = re.compile(rf"(?<=-)[{SUFFIX_ALPHABET}]{{8,10}}\b")
# Whole values of printed objects were recorded as they were, too.
_PRINTED: Final = (
    (".pod-template-hash", re.compile(rf"[{SUFFIX_ALPHABET}]{{8,10}}")),
    ("metadata.resourceVersion", re.compile(r"\d+")),
)
_UNTYPED: Final = re.compile(
    r"(failed to create typed patch object \([^)]*\)): (?:errors:\n  )?(.*)", re.DOTALL
)
_UNKNOWN: Final = "field not declared in schema"
_CHANCES: Final = (_HASH, _MINUTE)
PLACE: Final = re.compile(r"node-[123]|zone-[ab]")
_QUOTA: Final = re.compile(r"(?<=exceeded quota: )[^ ,]+(?=,)")


def is_made_up(path: str, recorded: str, found: str) -> bool:
    """Whether both texts of an object that was printed are of a sort that no two runs share."""
    form = next((form for member, form in _PRINTED if path.endswith(member)), None)
    return form is not None and all(form.fullmatch(text) for text in (recorded, found))


def without_unborn(recorded: str) -> str:
    """A text with a placeholder where it names a pod that never came to be."""
    return _UNBORN.sub("<gen>", recorded)


def without_made_up(recorded: str, found: str) -> tuple[str, str]:
    """Both without hashes and minutes in names, where the recording has such."""
    for chance in _CHANCES:
        if chance.search(recorded):
            recorded, found = chance.sub("any", recorded), chance.sub("any", found)
    return recorded, found


def with_places_of(recorded: str, found: str) -> str:
    """`recorded` with the nodes that `found` names, one for one."""
    places = PLACE.findall(found)
    if len(places) != len(PLACE.findall(recorded)):
        return recorded
    return PLACE.sub(lambda _: places.pop(0), recorded)


def same_problems(recorded: str, found: str) -> bool:
    """Whether what is said of a configuration that is not of its type may both be said.

    Upstream stops at the first field that it does not know, and comes to fields by chance.
    """
    one, other = _UNTYPED.fullmatch(recorded), _UNTYPED.fullmatch(found)
    if one is None or other is None or one[1] != other[1]:
        return False
    sides = [set(side[2].split("\n  ")) for side in (one, other)]
    return _UNKNOWN in recorded and (sides[0] <= sides[1] or sides[1] <= sides[0])


def with_chance_of(recorded: Json, found: Json) -> Json:
    """`recorded` with the generated name and the versions that `found` has."""
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
    """`found` where both may be the same but for a generated suffix, else `recorded`."""
    prefix = recorded[:-SUFFIX_LENGTH]
    suffixes = recorded[len(prefix) :] + found[len(prefix) :]
    alike = len(recorded) == len(found) and found.startswith(prefix) and bool(prefix)
    return found if alike and set(suffixes) <= set(SUFFIX_ALPHABET) else recorded


def same_words(recorded: str, found: object) -> bool:
    """Whether both messages list the same complaints, in any order; of the same quota or another.

    Which of several quotas is found to be exceeded first is chance, too.
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
