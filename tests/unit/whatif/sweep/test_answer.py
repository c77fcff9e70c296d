"""A sweep's answer and its page, if some results lack a measure."""

from __future__ import annotations

import pytest

from fairlead.whatif.sweep.answer import CheckedCondition, sweep_answer
from fairlead.whatif.sweep.case import Case
from fairlead.whatif.sweep.measure import BY_NAME
from fairlead.whatif.sweep.sweep_page import render_sweep


def answer(*costs):
    cases = [Case(n, {"seed": n}, {}) for n, _ in enumerate(costs, 1)]
    rows = [{**dict.fromkeys(BY_NAME, 0), "cost": cost} for cost in costs]
    above = tuple(n for n, cost in enumerate(costs, 1) if cost is not None and cost > 1)
    checked = [CheckedCondition("cost>1", "cost", above)]
    return sweep_answer("s.yaml", cases, rows, "cost", checked).to_json()


def test_a_condition_is_not_checked_in_cases_that_lack_its_measure():
    found = answer(2, None, None)
    assert found["notes"] == [
        "--fail-on cost>1 is not checked in 2 of 3 cases, whose results lack cost.",
        "cost counts as 0 in 2 of 3 cases, whose results lack it.",
    ]
    page = render_sweep(found, "worst.html")
    assert all(note.replace(">", "&gt;") in page for note in found["notes"])


@pytest.mark.parametrize(
    ("costs", "cases", "says"),
    [
        ((0, 2), [2], ["--fail-on cost>1 holds in 1 of 2 cases (case 2)."]),
        ((2, 2, 0, 3, 4), [1, 2, 4, 5],
         ["--fail-on cost>1 holds in 4 of 5 cases (cases 1, 2, 4 and 1 more)."]),
        ((0, None), [], []),
    ],
    ids=["one case", "several cases", "no case"],
)  # fmt: skip
def test_the_answer_names_the_cases_in_which_a_condition_holds(costs, cases, says):
    found = answer(*costs)
    assert found["findings"] == says
    assert found["fail_on"] == [{"condition": "cost>1", "holds": bool(cases), "cases": cases}]
    page = render_sweep(found, "worst.html")
    assert all(one.replace(">", "&gt;") in page for one in says)


def test_no_note_if_all_results_contain_the_measure():
    assert answer(2, 0)["notes"] == []


@pytest.mark.parametrize(
    ("costs", "says"),
    [
        ((0, 0), "Cost of nodes by the autoscaler: 0 in each of 2 cases."),
        ((1, 2), "Cost of nodes by the autoscaler: 1 to 2; worst with seed=2 (case 2)."),
        ((0, 2), "Cost of nodes by the autoscaler: 0 to 2, above 0 in 1 of 2 cases; worst with"),
    ],
    ids=["all are 0", "all are above 0", "some are above 0"],
)
def test_the_verdict_states_the_range_of_the_measure(costs, says):
    assert answer(*costs)["verdict"].startswith(says)


def test_the_page_says_how_many_cases_have_a_measure():
    """A measure that some results lack is a column of the cases, as in the text."""
    page = render_sweep(answer(2, 2, None), "worst.html")
    assert "<td>the same in 2 of 3 cases</td>" in page
    assert '<th class="number">cost</th>' in page
    assert "<td>the same in all cases</td>" in render_sweep(answer(2, 2), "worst.html")


def test_the_page_names_a_worst_case_only_if_cases_differ():
    page = render_sweep(answer(1, 2), "worst.html")
    assert "report of the worst case (2)</a>" in page
    assert '<tr class="worst">' in page
    page = render_sweep(answer(2, 2), "worst.html")
    assert "seed: 2 values" in page
    assert "report of case 1</a>" in page
    assert '<tr class="worst">' not in page
    assert "All measures have the same values in all cases." in page


def test_the_page_of_a_single_case_does_not_compare_it():
    page = render_sweep(answer(2), "worst.html")
    assert "seed: 1 value ·" in page
    assert "report of case 1</a>" in page
    assert "the same values" not in page


def test_the_page_has_the_measures_of_the_text():
    """No pod is lost in the one case with a failure, and the other case lacks the measure."""
    cases = [Case(n, {"seed": n}, {}) for n in (1, 2)]
    rows = [{**dict.fromkeys(BY_NAME, 0), "lost": lost} for lost in (None, 0)]
    found = sweep_answer("s.yaml", cases, rows, "pending")
    [shown] = [one for one in found.tables if one.name == "cases"]
    assert "lost" in [one.key for one in shown.columns]
    assert '<th class="number">lost</th>' in render_sweep(found.to_json(), "worst.html")


@pytest.mark.parametrize(("number", "rest"), [(4, "1 more note"), (5, "2 more notes")])
def test_each_note_of_the_cases_is_stated_once(number, rest):
    cases = [Case(n, {"seed": n}, {}) for n in (1, 2)]
    rows = [dict.fromkeys(BY_NAME, 0)] * 2
    noted = [["same", "first"], ["same", *(f"note {n}" for n in range(number))]]
    found = sweep_answer("s.yaml", cases, rows, "pending", noted=noted).notes
    assert found[:3] == ("same", "In 1 of 2 cases: first", "In 1 of 2 cases: note 0")
    assert found[-1] == f"The results of the cases have {rest}."


def test_a_verdict_without_pending_pods_states_the_next_damage():
    """The measures are in the order that defines the worst case; the time is no damage."""
    cases = [Case(n, {"seed": n}, {}) for n in (1, 2)]
    rows = [
        {**dict.fromkeys(BY_NAME, 0), "lost": lost, "evicted": evicted, "virtual_s": lost}
        for lost, evicted in ((3, 9), (5, 7))
    ]
    assert sweep_answer("s.yaml", cases, rows, "pending").verdict == (
        "Pods pending at the end: 0 in each of 2 cases. "
        "Pods of failed nodes not back: 3 to 5; worst with seed=2 (case 2)."
    )
    rows = [{**dict.fromkeys(BY_NAME, 0), "virtual_s": lasted} for lasted in (3, 5)]
    found = sweep_answer("s.yaml", cases, rows, "pending")
    assert found.verdict == "Pods pending at the end: 0 in each of 2 cases."
