"""What budgets allowed before the change, and whether they held."""

from __future__ import annotations

from msgspec.structs import replace

from fairlead.whatif.outcome.budget import budget_outcomes
from fairlead.whatif.outcome.run_outcome import BudgetHistory, RunOutcome

TODAY = BudgetHistory(
    pdb="ns/web", rule="maxUnavailable 2", allowed=2, allowed_at_end=2, needed=3,
    lowest_healthy=5, displaced=(), refused=(),
)  # fmt: skip
DRAINED = replace(TODAY, allowed=0, lowest_healthy=3, displaced=("ns/web-0", "ns/web-1"))


def run(**fields):
    facts = {
        "started_at": 0, "ended_at": 60, "settled": True, "pods": {}, "nodes": (),
        "preempted": (), "evicted": (), "pdb_breaches": (), "undrained": (), "skipped": (),
        "complaints": (), "recurrences": (), "allocations": (), "priority_names": {},
        "samples": (), "choices_among_equals": 0,
    }  # fmt: skip
    return RunOutcome(**{**facts, **fields})


def outcome(history):
    """The only budget, with `TODAY` in the run without the change."""
    [found] = budget_outcomes(run(budgets=(TODAY,)), run(budgets=(history,)), ())
    return found


def test_evictions_at_the_instant_of_the_change_are_not_subtracted_from_what_was_allowed():
    assert outcome(DRAINED).allowed == 2


def test_a_new_rule_allows_what_it_allows():
    found = outcome(replace(DRAINED, rule="maxUnavailable 0", allowed_at_end=0))
    assert (found.allowed, found.allowed_without) == (0, 2)
