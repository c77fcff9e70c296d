"""The variations of a sweep, and the resulting cases."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead.whatif.input.error import InputError
from fairlead.whatif.sweep.case import CASES_MAX, cases_of
from fairlead.whatif.sweep.variation import FieldVariation, LossVariation, parse_variation

SCENARIO: dict[str, Any] = {
    "seed": 1,
    "events": [{"at": "1m", "drain": "a"}],
    "cluster": {"generated": {}},
}


@pytest.mark.parametrize(
    ("text", "name", "values"),
    [
        ("seed=0..3", "seed", (0, 1, 2, 3)),
        ("seed=-1..0", "seed", (-1, 0)),
        ("cluster.generated.nodes=80, 90", "cluster.generated.nodes", (80, 90)),
        ("settings.scheduler=old.yaml,new.yaml", "settings.scheduler", ("old.yaml", "new.yaml")),
        ("events[0].for=5m,20m", "events[0].for", ("5m", "20m")),
        ("settings.autoscale=off,karpenter", "settings.autoscale", ("off", "karpenter")),
        ("duration=null,1h", "duration", (None, "1h")),
    ],
)
def test_variations_are_parsed(text, name, values) -> None:
    assert parse_variation(text) == FieldVariation(name, values)


@pytest.mark.parametrize(
    "text",
    ["", "seed", "seed=", "=1", "a..b=1", "a[x]=1", "seed=5..1", "seed=0..999999", "seed=1,1",
     "seed=[", "seed=1,{", "a.=2"],
)  # fmt: skip
def test_a_wrong_variation_is_refused_in_one_line(text) -> None:
    with pytest.raises(InputError, match="--vary") as refusal:
        parse_variation(text)
    assert "\n" not in str(refusal.value)


def test_a_field_is_set_without_changing_the_scenario() -> None:
    changed = FieldVariation("events[0].for", ("5m",)).apply(SCENARIO, "5m")
    assert changed["events"] == [{"at": "1m", "drain": "a", "for": "5m"}]
    assert "for" not in SCENARIO["events"][0]


def test_missing_parent_maps_are_added() -> None:
    changed = FieldVariation("settings.kubelet.start-delay", ()).apply(SCENARIO, "2s")
    assert changed["settings"] == {"kubelet": {"start-delay": "2s"}}


@pytest.mark.parametrize(("path", "problem"), [("events[1].for", "item"), ("seed.x", "below")])
def test_a_path_that_does_not_exist_is_refused(path, problem) -> None:
    with pytest.raises(InputError, match=problem):
        FieldVariation(path, ()).apply(SCENARIO, 1)


def test_a_loss_adds_an_event_and_no_loss_adds_none() -> None:
    losses = LossVariation("lost-zone", "fail-zone", (None, "a"), "10m", lambda _: ["a"])
    assert losses.apply(SCENARIO, None) is SCENARIO
    changed = losses.apply(SCENARIO, "a")
    assert changed is not None
    assert changed["events"][-1] == {"at": "10m", "fail-zone": "a"}


def test_combinations_with_the_loss_of_a_node_that_does_not_exist_are_left_out() -> None:
    nodes = FieldVariation("nodes", (["a"], ["b", "c"]))
    losses = LossVariation("lost", "fail-node", (None, "a", "b"), "1m", lambda one: one["nodes"])
    cases = cases_of({}, [nodes, losses])
    found = [(one.number, one.parameters["nodes"], one.parameters["lost"]) for one in cases]
    assert found == [
        (1, ["a"], None), (2, ["a"], "a"), (3, ["b", "c"], None), (4, ["b", "c"], "b")
    ]  # fmt: skip


def test_all_combinations_in_order() -> None:
    cases = cases_of(SCENARIO, [parse_variation("seed=0..1"), parse_variation("title=a,b,c")])
    assert [one.title for one in cases] == [
        "seed=0, title=a", "seed=0, title=b", "seed=0, title=c",
        "seed=1, title=a", "seed=1, title=b", "seed=1, title=c",
    ]  # fmt: skip
    assert [one.number for one in cases] == [1, 2, 3, 4, 5, 6]
    assert cases[4].scenario == {**SCENARIO, "seed": 1, "title": "b"}


def test_the_result_of_another_version_has_another_digest() -> None:
    (case,) = cases_of(SCENARIO, [])
    assert case.digest("", "1.0.0") != case.digest("", "1.1.0")


def test_a_sample_is_a_subset_of_the_combinations_determined_by_the_seed() -> None:
    variations = [parse_variation("seed=0..999"), parse_variation("a=0..999")]
    one, same, other = (cases_of({}, variations, 50, seed) for seed in (1, 1, 2))
    assert one == same != other
    found = [(case.parameters["seed"], case.parameters["a"]) for case in one]
    assert len(set(found)) == 50
    assert found == sorted(found)
    assert all(case.scenario == case.parameters for case in one)


def test_a_sample_of_full_size_has_all_combinations() -> None:
    variations = [parse_variation("seed=0..9")]
    assert cases_of({}, variations, 10) == cases_of({}, variations, 99) == cases_of({}, variations)


def test_too_many_cases_are_refused_with_the_remedy() -> None:
    variations = [parse_variation("a=0..999"), parse_variation("b=0..999")]
    assert CASES_MAX < 1_000_000
    with pytest.raises(InputError, match=r"1,000,000 cases; --random"):
        cases_of({}, variations)


def test_only_true_and_false_are_booleans() -> None:
    """In YAML 1.1, the words y, n, yes, no, on and off are booleans too."""
    assert parse_variation("x=y,n,yes,No,on,off").values == ("y", "n", "yes", "No", "on", "off")
    assert parse_variation("x=true,False").values == (True, False)
    assert parse_variation("x='y',y1,3,[no, y]").values == ("y", "y1", 3, ["no", "y"])
