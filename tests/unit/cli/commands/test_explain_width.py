"""The explanation of a pod on terminals of different widths."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairlead.cli.main import run

STORE = str(Path(__file__).parents[4] / "examples" / "store" / "store.yaml")
SEARCH, REPORTS = "pod/store/search-58f855c4f4-kvqhp", "pod/analytics/reports-54df9554fd-24mtj"


@pytest.fixture
def explained(monkeypatch, capsys):
    """Returns the lines of the explanation of a pod at a width."""

    def explain(pod, width):
        monkeypatch.setenv("COLUMNS", str(width))
        assert run(["explain", STORE, pod]) == 0
        return capsys.readouterr().out.splitlines()

    return explain


@pytest.mark.parametrize("width", [80, 100, 120])
@pytest.mark.parametrize("pod", [SEARCH, REPORTS])
def test_no_word_is_broken(explained, pod, width):
    lines = explained(pod, width)
    assert max(map(len, lines)) <= width
    words = set(" ".join(lines).replace(",", " ").split())
    assert {"feasible", "Allocation", "NodeResourcesBalancedAllocation"} & words
    assert not {"Resource", "Allocatio", "Tolerati", "Localit"} & words


def test_scores_that_are_the_same_on_all_nodes_are_told_once_if_columns_do_not_fit(explained):
    lines = explained(SEARCH, 80)
    assert ["worker-01", "635", "100", "65", "70"] in [line.split() for line in lines]
    told = next(at for at, line in enumerate(lines) if line.startswith("Scores that are the same"))
    assert " ".join(lines[told : told + 2]).endswith(
        "DynamicResources 0 x2, ImageLocality 0 x1, TaintToleration 100 x3"
    )
    assert not any(line.startswith("Scores that are the same") for line in explained(SEARCH, 120))


def test_a_wide_heading_leaves_its_space_to_the_cells_of_other_columns(explained):
    """`preemption may help` has only the cell `no`; each reason then stays on one line."""
    lines = explained(REPORTS, 80)
    row = "worker-00  NodeResourcesFit  Insufficient cpu  no"
    assert any(line.startswith(row) for line in lines)
    assert sum("Insufficient cpu" in line for line in lines) == 11
