"""The page of a shadow scheduler: its verdict, its counts, and its examples."""

from __future__ import annotations

from fairlead.cli.commands.run.shadow_page import render_shadow
from fairlead.worlds.cluster.shadow import ShadowAgreement, ShadowDecision
from fairlead.worlds.cluster.shadow_record import ShadowRecord

PERIOD = ("2030-01-01T00:00:00Z", "2030-01-01T01:00:00Z")


def page(*decisions):
    record = ShadowRecord(["present"])
    for one in decisions:
        record.record(one)
    return render_shadow("context prod", PERIOD, record.summary())


def decision(agreement, **more):
    return ShadowDecision(0, "present", agreement, "shop/web-0", "default-scheduler", "n1", **more)


def test_a_page_without_placements_has_a_message():
    assert "present: no placement was observed." in page()


def test_placements_are_counted_by_class():
    text = page(*[decision(ShadowAgreement.EQUAL)] * 3, decision(ShadowAgreement.INFEASIBLE))
    assert "present: 75.0% of 4 placements agree" in text
    row = text[text.index("<td>infeasible</td>") :].split("</tr>")[0]
    assert '<td class="number">1</td><td class="number">25.0%</td>' in row


def test_examples_have_reasons():
    scores = {"score": 90, "best_score": 120, "choices": ("n2", "n3"), "equals": 5}
    lower = page(decision(ShadowAgreement.LOWER, **scores))
    assert "n2, n3 and 3 more" in lower
    assert "score 90, best 120" in lower
    assert "Lower scores were 30.0 below the best score" in lower
    refused = {"reason": "node(s) had a <taint>", "victims": ("shop/a", "shop/b")}
    text = page(decision(ShadowAgreement.UNSCHEDULABLE, **refused))
    assert "node(s) had a &lt;taint&gt;; would preempt shop/a, shop/b" in text


def test_a_page_runs_no_script():
    assert "<script" not in page(decision(ShadowAgreement.EQUAL))


def test_differences_have_a_note_about_the_order_of_bindings():
    note = "Fairlead may observe bindings in another order"
    assert note in page(decision(ShadowAgreement.INFEASIBLE))
    assert note not in page(decision(ShadowAgreement.EQUAL), decision(ShadowAgreement.SAMPLED))
