"""The table of docs/feature-gates.md lists the Kubernetes 1.36 gates that --feature-gates knows."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from fairlead.engine.configuration.feature_gate import FEATURE_GATES

GUIDE: Final = (Path(__file__).parent.parent / "docs" / "feature-gates.md").read_text()
GATES: Final = FEATURE_GATES["1.36"]


def table(heading: str) -> list[list[str]]:
    """Return the cells of the rows under `heading`."""
    text = GUIDE[GUIDE.index(heading) :].partition("\n\n")[0]
    lines = text.splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


ROWS: Final = table("| gate | default | here | notes |")
MEANINGS: Final = {meaning for meaning, _ in table("| here | meaning |")}


def test_every_gate_has_one_row_with_its_default() -> None:
    """The rows are in alphabetical order, and each belongs to a gate."""
    named = {name.strip("`"): default for name, default, _, _ in ROWS}
    assert list(named) == sorted(GATES)
    assert len(named) == len(ROWS)
    assert named == {name: "on" if gate.default else "off" for name, gate in GATES.items()}


def test_the_gates_that_can_be_set_are_those_that_are_not_locked() -> None:
    """Locked gates are refused with any value but their default."""
    settable = {name.strip("`") for name, _, here, _ in ROWS if here == "both values"}
    assert settable == {name for name, gate in GATES.items() if not gate.is_locked}


def test_every_row_states_the_effect_of_its_gate_in_fairlead() -> None:
    """A difference from upstream has a reason."""
    assert {here for _, _, here, _ in ROWS} == MEANINGS
    assert [row for row in ROWS if row[2] in ("differs", "no difference") and not row[3]] == []
