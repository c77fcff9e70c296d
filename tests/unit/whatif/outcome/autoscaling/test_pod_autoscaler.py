"""Autoscalers in the runs with and without a change: ranges, lacks of replicas, and notes."""

from __future__ import annotations

from msgspec.structs import replace

from fairlead.engine.core.instant import seconds
from fairlead.engine.workloads.horizontal_pod_autoscaler.pod_group import NO_METRICS
from fairlead.whatif.outcome.autoscaling.pod_autoscaler import (
    PodAutoscalerOutcome,
    ReplicaChange,
    ReplicaShortage,
    changed_ranges,
    metric_notes,
    new_shortages,
    notes_about,
)


def autoscaler(begin: int, *numbers: int, name: str = "ns/web") -> PodAutoscalerOutcome:
    pairs = zip((begin, *numbers), numbers, strict=False)
    changes = tuple(ReplicaChange(at, *pair, "load") for at, pair in enumerate(pairs, 1))
    last = numbers[-1] if numbers else begin
    return PodAutoscalerOutcome(
        autoscaler=name, target="Deployment web", minimum=1, maximum=20, replicas=last,
        changes=changes,
    )  # fmt: skip


def ranges(without: list[PodAutoscalerOutcome], changed: list[PodAutoscalerOutcome]) -> list[str]:
    found = changed_ranges(without, changed)
    return [f"{one.workload}: {one.without} -> {one.changed}" for one in found]


def test_a_lower_peak_counts_although_both_runs_end_alike():
    assert ranges([autoscaler(6, 17, 4, 7)], [autoscaler(6, 12, 4, 7)]) == [
        "deploy/ns/web: 4 to 17 -> 4 to 12"
    ]


def test_other_steps_within_the_same_range_do_not_count():
    assert ranges([autoscaler(6, 17, 4, 7)], [autoscaler(6, 4, 10, 17, 5)]) == []


def test_a_workload_keeps_its_replicas_in_the_run_without_its_autoscaler():
    assert ranges([], [autoscaler(6, 17, 6)]) == ["deploy/ns/web: 6 -> 6 to 17"]
    assert ranges([autoscaler(6, 17, 6)], []) == ["deploy/ns/web: 6 to 17 -> 6"]
    assert ranges([], [autoscaler(6)]) == []


def test_replicas_that_the_change_sets_do_not_count():
    assert ranges([autoscaler(6)], [autoscaler(20, 12)]) == []


QUEUE = "External metric queue"
PARTIAL = replace(autoscaler(6), with_value=("cpu",), without_value=(QUEUE,))
INACTIVE = replace(PARTIAL, with_value=(), inactive_reason="FailedGetExternalMetric")
UNLOADED = replace(autoscaler(6), without_value=("cpu",), inactive_message=NO_METRICS)
ADDS_ONLY = (
    "HorizontalPodAutoscaler ns/web has no value for External metric queue here, so it adds pods "
    "by its other metrics, but removes none"
)


def test_an_autoscaler_with_a_metric_without_value_removes_no_pods():
    more = replace(PARTIAL, autoscaler="ns/other")
    assert metric_notes([PARTIAL]) == [f"{ADDS_ONLY}."]
    # At the end, a lower proposal of the other metric is a failure.
    low = replace(PARTIAL, inactive_reason="FailedGetExternalMetric")
    assert metric_notes([low, more]) == [f"{ADDS_ONLY}; the same applies to 1 more autoscaler."]


def test_an_autoscaler_without_any_value_does_nothing():
    nothing = "the number of replicas changes only if it is outside the limits"
    (note,) = metric_notes([INACTIVE])
    assert note == (
        f"HorizontalPodAutoscaler ns/web has no value for External metric queue here, so {nothing}."
    )
    (note,) = metric_notes([UNLOADED])
    assert note.startswith(f"HorizontalPodAutoscaler ns/web has no load here, so {nothing};")


def test_notes_about_metrics_concern_workloads_that_changed_or_were_scaled():
    everyone = [UNLOADED, PARTIAL]
    notes = ["first", *metric_notes(everyone), "last"]
    assert notes_about(notes, everyone, ()) == ("first", "last")
    assert notes_about(notes, everyone, {UNLOADED.workload}) == tuple(notes)
    [_, ending, *_] = notes_about(notes, everyone, {UNLOADED.workload}, remedy="")
    assert ending.endswith("changes only if it is outside the limits.")
    acted = [UNLOADED, replace(autoscaler(6, 9), with_value=("cpu",), without_value=(QUEUE,))]
    notes = ["first", *metric_notes(acted), "last"]
    assert notes_about(notes, acted, ()) == ("first", f"{ADDS_ONLY}.", "last")


def test_a_lack_of_replicas_is_an_effect_if_it_lasts_a_minute_longer():
    def lacking(lasted_s: int) -> list[PodAutoscalerOutcome]:
        short = ReplicaShortage(lasted=seconds(lasted_s), proposed=18, is_over=True)
        return [replace(autoscaler(6), shortage=short)]

    assert new_shortages([autoscaler(6)], lacking(59)) == []
    assert [short.proposed for _, short in new_shortages([autoscaler(6)], lacking(60))] == [18]
    assert new_shortages(lacking(30), lacking(89)) == []
    assert new_shortages(lacking(30), [autoscaler(6)]) == []
