"""The notes of a sweep's answer about measures that results do not contain."""

from __future__ import annotations

from fairlead.whatif.report.sweep_page import render_sweep
from fairlead.whatif.sweep.answer import sweep_answer
from fairlead.whatif.sweep.case import Case
from fairlead.whatif.sweep.measure import BY_NAME


def answer(*costs):
    cases = [Case(n, {"seed": n}, {}) for n, _ in enumerate(costs, 1)]
    rows = [{**dict.fromkeys(BY_NAME, 0), "cost": cost} for cost in costs]
    return sweep_answer("s.yaml", cases, rows, "cost", {"cost>1": "cost"}).to_json()


def test_a_condition_is_not_checked_in_cases_that_lack_its_measure():
    found = answer(2, None, None)
    assert found["notes"] == [
        "--fail-on cost>1 is not checked in 2 of 3 cases, whose results lack cost.",
        "cost counts as 0 in 2 of 3 cases, whose results lack it.",
    ]
    page = render_sweep(found, "worst.html")
    assert all(note.replace(">", "&gt;") in page for note in found["notes"])


def test_no_note_if_all_results_contain_the_measure():
    assert answer(2, 0)["notes"] == []
