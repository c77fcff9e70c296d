"""Replays recorded sessions of kube-batch.

A case is one session: open, the actions of its configuration, close. The session was recorded many
times with different random seeds and object orders. If all runs agree, the whole outcome is
compared. Otherwise projections of the outcome are compared. A projection is a part of an outcome,
such as the number of bound pods of each job. A projection that is equal in all runs must match. Any
other projection must have one of its recorded values. The recorder keeps a limited number of
values; if it has reached the limit, every value is accepted.

Each case is replayed in two modes. In the mode that reproduces kube-batch's defects, every case
must match its recording. In the mode of Fairlead's defaults, a case need not match if it depends on
a defect that Fairlead corrects. Such a case is listed with the recorded value, the value of a
corrected kube-batch, and Fairlead's value.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fairlead.api.json import Json
from fairlead.conformance.comparison import Mismatch, Remark, first_mismatch
from fairlead.conformance.kubebatch.outcome import project, replay
from fairlead.conformance.kubebatch.scenario import jobs_of_tasks
from fairlead.engine.batch.defect import FIXED, KEPT, UPSTREAM

# The recorder keeps at most this many values of a projection. If a list is full, the recorder may
# have seen a value that the list does not contain.
_VALUES_MAX: Final = 16
# Members of a recorded outcome that are about its recording, not about the session. They are not
# compared.
_TRANSCRIPT: Final = ("count", "panic")
# Defects of kube-batch that Fairlead's defaults do not correct.
_KEPT: Final = frozenset(defect.value for defect in KEPT)


# --- with the defects ----------------------------------------------------------------------


def compare_with_defects(case: Json) -> Mismatch | None:
    """Replay `case` with upstream's defects; return the first mismatch with the recording.

    Returns None if there is no mismatch.
    """
    found = replay(case["scenario"], UPSTREAM)
    if not case["deterministic"]:
        return _compare_projections(case["projections"], _projected(case, found))
    recorded = {k: v for k, v in case["outcomes"][0].items() if k not in _TRANSCRIPT}
    if case.get("trace"):
        recorded["trace"] = case["trace"]
    return first_mismatch(recorded, {name: found[name] for name in recorded})


def _projected(case: Json, found: Json) -> Json:
    return project(found, jobs_of_tasks(case["scenario"]))


def _compare_projections(recorded: Json, found: Json) -> Mismatch | None:
    for name, seen in recorded.items():
        values = [entry["value"] for entry in seen["values"]]
        differences = [first_mismatch(value, found[name], name) for value in values]
        if all(differences) and (seen["deterministic"] or len(values) < _VALUES_MAX):
            return differences[0]
    return None


# --- with the defaults ---------------------------------------------------------------------


def compare_with_defaults(case: Json) -> Mismatch | Remark | None:
    """Compare the recording with a session that uses Fairlead's defaults.

    Only projections are compared: parts of the outcome such as the number of bound pods of each
    job. A case depends on a defect if the correction of the defect in kube-batch changed a
    projection. If the case depends on a defect that Fairlead corrects, the result is a remark, even
    if the projections agree. Otherwise, the result is the first mismatch, or None if the
    projections agree. The rest of the outcome is not compared. The correction of a defect may
    change the rest even if the case does not depend on the defect.
    """
    found = _projected(case, replay(case["scenario"], FIXED))
    corrected = [name for name in case.get("bugDependent", ()) if name not in _KEPT]
    if not corrected:
        return _compare_projections(case["projections"], found)
    return Remark(_described(case, found, corrected))


def _described(case: Json, found: Json, corrected: list[str]) -> str:
    """Return a text about a case that depends on defects of kube-batch.

    `corrected` contains the names of the defects that affect the case and that Fairlead corrects by
    default. The text states how Fairlead's result differs from the recording. For each difference,
    the text also states how each single correction in kube-batch changes kube-batch's result.
    """
    names = ", ".join(corrected)
    lines = list(_changes(case, found))
    verdict = _verdict(case, found)
    return "; ".join([f"depends on {names}: {verdict}", *lines])


def _verdict(case: Json, found: Json) -> str:
    together = (case.get("correctedTogether") or {}).get("projections")
    if together and _compare_projections(together, found) is None:
        return "as with all corrections"
    if _compare_projections(case["projections"], found) is None:
        return "as recorded"
    return "a different value"


def _changes(case: Json, found: Json) -> Iterator[str]:
    for name, seen in case["projections"].items():
        recorded = seen["values"][0]["value"]
        difference = first_mismatch(recorded, found[name], name)
        if difference is not None:
            yield f"{difference}{_corrected_values(case, name, recorded)}"


def _corrected_values(case: Json, projection: str, recorded: object) -> str:
    """Return a text that shows how the correction of each single defect changes a result.

    `projection` is the name of the result, and `recorded` is its recorded value. Defects whose
    correction does not change the result are left out. If no correction changes the result, the
    text is "".
    """
    texts = []
    for defect, changed in case.get("corrected", {}).items():
        if projection in changed:
            difference = first_mismatch(recorded, changed[projection], projection)
            if difference is not None:
                texts.append(f"{defect}: {difference.path} {difference.shown}")
    return f" (corrected {', '.join(texts)})" if texts else ""
