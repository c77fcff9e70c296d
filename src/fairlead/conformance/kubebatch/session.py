"""Replaying recorded sessions of kube-batch.

A case is one session: open, the actions of its configuration, close. It was recorded many times
with other random seeds and orders of objects; where all runs agree the whole outcome is compared,
elsewhere what can be said of all of them (the projections), and of the rest that ours is one of
those that were seen.

With kube-batch's defects every case must agree. With Fairlead's defaults those must that depend on
none of the corrected defects; the others are listed: what was recorded, what a corrected kube-batch
does, what we do.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fairlead.api.json import Json
from fairlead.conformance.comparison import Difference, Remark, first_difference
from fairlead.conformance.kubebatch.outcome import project, replay
from fairlead.conformance.kubebatch.scenario import jobs_of_tasks
from fairlead.engine.batch.defect import FIXED, KEPT, UPSTREAM

# A longer list may have been cut off, so that absence from it proves nothing.
_VALUES_MAX: Final = 16
_TRANSCRIPT: Final = ("count", "panic")
_KEPT: Final = frozenset(defect.value for defect in KEPT)


# --- with the defects ----------------------------------------------------------------------


def compare_with_defects(case: Json) -> Difference | None:
    """Where our session differs from the recorded one, None where it does not."""
    return _compare(case, replay(case["scenario"], UPSTREAM))


def _compare(case: Json, found: Json) -> Difference | None:
    if not case["deterministic"]:
        return _compare_projections(case["projections"], _projected(case, found))
    recorded = {k: v for k, v in case["outcomes"][0].items() if k not in _TRANSCRIPT}
    if case.get("trace"):
        recorded["trace"] = case["trace"]
    return first_difference(recorded, {name: found[name] for name in recorded})


def _projected(case: Json, found: Json) -> Json:
    return project(found, jobs_of_tasks(case["scenario"]))


def _compare_projections(recorded: Json, found: Json) -> Difference | None:
    for name, seen in recorded.items():
        values = [entry["value"] for entry in seen["values"]]
        differences = [first_difference(value, found[name], name) for value in values]
        if all(differences) and (seen["deterministic"] or len(values) < _VALUES_MAX):
            return differences[0]
    return None


# --- with the defaults ---------------------------------------------------------------------


def compare_with_defaults(case: Json) -> Difference | Remark | None:
    """The projections' difference in a case that depends on nothing that we correct; else a remark.

    What a case depends on was found out by its projections; other parts of the outcome (who holds
    room that nobody gets) may well change with a correction that changes none of them.
    """
    found = _projected(case, replay(case["scenario"], FIXED))
    corrected = [name for name in case.get("bugDependent", ()) if name not in _KEPT]
    if not corrected:
        return _compare_projections(case["projections"], found)
    return Remark(_described(case, found, corrected))


def _described(case: Json, found: Json, corrected: list[str]) -> str:
    """What differs from the recording, beside what a corrected kube-batch does."""
    names = ", ".join(corrected)
    lines = list(_changes(case, found))
    verdict = _verdict(case, found)
    return "; ".join([f"depends on {names}: {verdict}", *lines])


def _verdict(case: Json, found: Json) -> str:
    together = (case.get("correctedTogether") or {}).get("projections")
    if together and _compare_projections(together, found) is None:
        return "as with all corrections together"
    if _compare_projections(case["projections"], found) is None:
        return "as recorded"
    return "a value of its own"


def _changes(case: Json, found: Json) -> Iterator[str]:
    for name, seen in case["projections"].items():
        recorded = seen["values"][0]["value"]
        difference = first_difference(recorded, found[name], name)
        if difference is not None:
            yield f"{difference}{_corrected_values(case, name, recorded)}"


def _corrected_values(case: Json, projection: str, recorded: object) -> str:
    """What each correction alone makes of the same projection."""
    texts = []
    for defect, changed in case.get("corrected", {}).items():
        if projection in changed:
            difference = first_difference(recorded, changed[projection], projection)
            if difference is not None:
                texts.append(f"{defect}: {difference.path} {difference.shown}")
    return f" (corrected {', '.join(texts)})" if texts else ""
