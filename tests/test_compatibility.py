"""COMPATIBILITY.md lists exactly what the code supports."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Final

import api_table
import pytest

from fairlead.api.codec import VIEWS
from fairlead.apiserver.registry.served_kinds import WITH_METRICS, ServedKinds
from fairlead.cli import main
from fairlead.engine import compose
from fairlead.engine.framework import interface
from fairlead.engine.framework.profile import DEFAULT_PLUGINS
from fairlead.engine.plugins.registry import GATED, IN_TREE

PAGE: Final = Path(__file__).parent.parent / "COMPATIBILITY.md"
STATES: Final = {"supported", "differs", "absent"}
HEAD_ROWS: Final = 2

# It calls the framework itself, and is therefore composed by `scheduling`.
COMPOSED: Final = "DefaultPreemption"


@cache
def sections() -> dict[str, list[list[str]]]:
    """Return the table rows of each section, as cells."""
    parts = re.split(r"^## (.+)$", PAGE.read_text(), flags=re.MULTILINE)
    return {
        title: [
            [cell.strip() for cell in line.strip("|").split("|")]
            for line in text.splitlines()
            if line.startswith("|")
        ][HEAD_ROWS:]
        for title, text in zip(parts[1::2], parts[2::2], strict=True)
    }


def states(section: str) -> dict[str, str]:
    """Return the state by feature of one section."""
    return {feature: state for feature, state, _ in sections()[section]}


def present(section: str) -> set[str]:
    """Return the features of one section that are supported completely or partly."""
    return {feature for feature, state in states(section).items() if state != "absent"}


def test_every_row_has_a_state_and_each_difference_has_a_reason() -> None:
    """The reason states the difference."""
    rows = [row for table in sections().values() for row in table]
    assert [row for row in rows if row[1] not in STATES] == []
    assert [row for row in rows if row[1] == "differs" and not row[2]] == []


def test_plugins_are_those_of_the_registry_and_the_default_profile() -> None:
    """The page names every plugin."""
    named = set(states("Scheduler plugins"))
    assert named == {*IN_TREE, *GATED, COMPOSED}
    assert {name for name, _ in DEFAULT_PLUGINS} <= named


@pytest.mark.parametrize("name", [*IN_TREE, *GATED])
def test_no_plugin_is_a_placeholder(name: str) -> None:
    """Every plugin of the registry decides; none refuses the pods that need it."""
    assert states("Scheduler plugins")[name] != "absent"


def test_extension_points_are_the_protocols_of_the_framework() -> None:
    """`Filter` is `FilterPlugin`; the forms over columns belong to their extension point."""
    protocols = {
        name.removesuffix("Plugin")
        for name in vars(interface)
        if name.endswith("Plugin") and name != "Plugin" and not name.startswith("Column")
    }
    assert present("Extension points") == protocols


def test_commands_are_those_of_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    """The page names every command that `fairlead --help` lists."""
    main.run(["--help"])
    listed = capsys.readouterr().out.partition("╭")[2]
    assert present("Commands") == set(re.findall(r"^│ ([a-z][a-z-]*) ", listed, re.MULTILINE))


def test_served_kinds_are_those_of_api_discovery() -> None:
    """Each kind has its verbs, subresources and patches; `tools/api_table.py` writes the rows."""
    assert [tuple(row) for row in sections()["Served kinds"]] == list(
        api_table.rows(ServedKinds(WITH_METRICS))
    )


def test_kinds_are_those_with_a_typed_view() -> None:
    """Only kinds with a typed view are validated."""
    assert set(states("Objects")) == {kind for _, kind in VIEWS}


@pytest.mark.parametrize(
    ("section", "package"), [("Node lifecycle", "nodelifecycle"), ("Batch", "batch")]
)
def test_controllers_are_listed_if_the_engine_runs_them(section: str, package: str) -> None:
    """The engine's composition names every controller."""
    composition = Path(compose.__file__).read_text()
    assert bool(present(section)) is (f"from fairlead.engine.{package}." in composition)


@pytest.mark.parametrize(
    ("feature", "option"),
    [
        ("other versions (`--behave-like`)", "--behave-like"),
        ("upstream's defects by name (`--defects upstream`)", "--defects"),
    ],
)
def test_options_are_listed_if_the_command_line_accepts_them(
    feature: str, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The page lists no option that the command line refuses."""
    main.run(["whatif", "cluster.yaml", option, "x"])
    unknown = f"whatif: {option} is not an option" in capsys.readouterr().err
    assert unknown is (states("Versions and defects")[feature] == "absent")
