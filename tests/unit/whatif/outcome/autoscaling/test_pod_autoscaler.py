"""The ranges of replicas that differ between the runs with and without a change."""

from __future__ import annotations

from fairlead.whatif.outcome.autoscaling.pod_autoscaler import (
    PodAutoscalerOutcome,
    ReplicaChange,
    changed_ranges,
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
