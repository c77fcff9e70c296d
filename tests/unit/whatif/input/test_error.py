"""Errors name the file, and the field of the file that names it."""

from __future__ import annotations

import difflib

import pytest

from fairlead.whatif.input.error import LINE_CHARACTERS_MAX, InputError, named_by, nearest_names
from fairlead.whatif.scenario.scenario import experiment_of, read_scenario

NODES = "cluster: {generated: {nodes: 1, allocatable: {cpu: 2}}}\n"


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ("load: loads.csv\n", "load: {folder}/loads.csv: "),
        ("settings: {scheduler: broken.yaml}\n", "settings.scheduler: {folder}/broken.yaml: "),
        ("settings: {batch: absent.conf}\n", "settings.batch: {folder}/absent.conf: "),
    ],
)
def test_an_error_in_a_file_of_a_scenario_names_the_scenarios_field(tmp_path, fields, named):
    path = tmp_path / "day.yaml"
    path.write_text(NODES + fields)
    (tmp_path / "loads.csv").write_text("workload,at\n")
    (tmp_path / "broken.yaml").write_text("kind: KubeSchedulerConfiguration\nprofiles: 3\n")
    with pytest.raises(InputError) as refused:
        experiment_of(str(path), read_scenario(str(path)))
    assert str(refused.value).startswith(f"{path}: {named.format(folder=tmp_path)}")


@pytest.mark.parametrize("source", ["day.yaml", "--plugin"])
def test_an_error_in_the_scenario_itself_or_an_option_is_unchanged(source):
    with pytest.raises(InputError) as refused, named_by("day.yaml", "load"):
        raise InputError(source, "is wrong")
    assert str(refused.value) == f"{source}: is wrong"


def test_a_long_error_keeps_its_beginning_and_its_end():
    """The API server shows the invalid value before the reason; it can be a whole template."""
    line = str(InputError("a.yaml", f"Invalid value: {'x' * 9000}: field is immutable"))
    assert line.startswith("a.yaml: Invalid value: xxx")
    assert line.endswith("xxx: field is immutable")
    assert len(line) == LINE_CHARACTERS_MAX


@pytest.mark.parametrize("wrong_at", [0, 4, 7, 10])
def test_the_nearest_of_many_similar_names_is_found_with_few_comparisons(wrong_at, monkeypatch):
    """Comparing a name with 100,000 similar names takes seconds."""
    names = [f"web-{number % 97:02}-{number * 7919 % 100_003:05}" for number in range(20_000)]
    compare, numbers = difflib.get_close_matches, []

    def counted(given, known, **settings):
        numbers.append(len(known))
        return compare(given, known, **settings)

    monkeypatch.setattr(difflib, "get_close_matches", counted)
    wanted = names[12_345]
    given = f"{wanted[:wrong_at]}x{wanted[wrong_at + 1 :]}"
    assert nearest_names(given, names, 3)[0] == wanted
    assert numbers[0] <= 1000
