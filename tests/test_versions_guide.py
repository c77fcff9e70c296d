"""The tables of docs/versions.md list the effects of --behave-like and --feature-gates."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from fairlead.engine.configuration.feature_gate import FEATURE_GATES
from fairlead.engine.configuration.release import SELECTABLE, release_of

GUIDE: Final = (Path(__file__).parent.parent / "docs" / "versions.md").read_text()


def rows(first: str) -> list[list[str]]:
    """Return the cells of the table whose heading begins with `first`."""
    table = GUIDE[GUIDE.index(f"| {first} |") :].partition("\n\n")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]


def test_the_table_of_parts_lists_each_part_by_version() -> None:
    """The rows are parts, and the columns are versions."""
    heading, _, *body = rows("part")
    assert tuple(heading[1:]) == SELECTABLE
    assert {part: tuple(versions) for part, *versions in body} == {
        part: tuple(release_of(version).parts[part] for version in SELECTABLE)
        for part in release_of().parts
    }


def test_every_gate_that_can_be_set_is_described() -> None:
    """The table has each version in which the gate has two values, and its default."""
    described = {}
    for name, versions, _ in rows("gate")[2:]:
        found = re.findall(r"((?:1\.\d+(?: and |, )?)+) \((on|off)\)", versions)
        described[name.strip("`")] = {
            version: default == "on"
            for these, default in found
            for version in re.findall(r"1\.\d+", these)
        }
    known: dict[str, dict[str, bool]] = {}
    for version, gates in FEATURE_GATES.items():
        for name, gate in gates.items():
            if not gate.is_locked:
                known.setdefault(name, {})[version] = gate.default
    assert described == known
