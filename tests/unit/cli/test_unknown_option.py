"""Hints about an option that a command does not have."""

from __future__ import annotations

import pytest

from fairlead.cli.unknown_option import option_hint

OWN = (
    "--drain",
    "--fail-fraction",
    "--fail-node",
    "--fail-on",
    "--fail-zone",
    "--format",
    "--seed",
)
OTHERS = {"--for": ["whatif"], "--seeds": ["whatif"], "--fail": []}
MANY = [f"c{number}" for number in range(6)]


@pytest.mark.parametrize(
    ("option", "hint"),
    [
        ("--drian", "did you mean --drain?"),
        ("--seeds", "did you mean --seed?"),  # nearly the same spelling comes first
        ("--for", "it is an option of fairlead whatif"),  # also the beginning of --format
        ("--fail", "did you mean --fail-fraction, --fail-node, --fail-on or --fail-zone?"),
        ("--fail-z", "did you mean --fail-zone?"),
        ("--fail-nods", "did you mean --fail-node?"),
        ("--f", ""),  # too short for the beginning of an option
        ("--timeout", ""),
    ],
)
def test_the_hint_names_what_the_user_probably_meant(option: str, hint: str) -> None:
    assert option_hint("explain", option, OWN, lambda one: OTHERS.get(one, [])) == hint


def test_only_a_few_options_and_commands_are_named() -> None:
    own = [f"--with-{number}" for number in range(6)]
    four = "--with-0, --with-1, --with-2, --with-3"
    assert option_hint("explain", "--with", own, lambda _: []) == f"did you mean {four} and 2 more?"
    expected = "it is an option of fairlead c0, c1, c2, c3 and 2 more"
    assert option_hint("explain", "--all", own, lambda _: MANY) == expected


@pytest.mark.parametrize(
    ("option", "field"),
    [("--config", "settings.scheduler"), ("--drain", "events")],
)
def test_a_scenario_has_a_field_instead_of_the_option(option, field) -> None:
    hint = option_hint("simulate", option, OWN, lambda _: ["whatif"])
    assert hint == f"use the scenario's field {field}"


def test_a_plan_reads_new_objects_from_the_folder_of_the_dump() -> None:
    """--apply also changes objects, but a folder with two versions of an object is refused."""
    hint = option_hint("consolidate", "--apply", OWN, lambda _: ["whatif", "explain"])
    way = "to add new objects, put the dump and their file into one folder, and name it as SNAPSHOT"
    assert hint == f"it is an option of fairlead whatif, explain; {way}"
    other = option_hint("top", "--apply", OWN, lambda _: ["whatif"])
    assert other == "it is an option of fairlead whatif"


@pytest.mark.parametrize(
    ("command", "own", "hint"),
    [
        ("drain-plan", OWN, "it is an option of fairlead whatif"),
        ("top", (*OWN, "--namespace"), "did you mean --namespace?"),
    ],
)
def test_a_command_without_the_short_option_for_namespaces(command, own, hint) -> None:
    assert option_hint(command, "-n", own, lambda _: ["whatif"]).startswith(hint)
