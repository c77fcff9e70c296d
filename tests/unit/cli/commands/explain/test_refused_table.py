"""Infeasible nodes: a row each if they are few, else an item for nodes with equal reasons."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from fairlead.cli.commands.explain.refused_table import RefusedNode, print_refused

COLUMNS = ("because", "would fit after")


@pytest.fixture
def printed():
    def print_rows(rows, rows_max, columns=COLUMNS):
        screen = io.StringIO()
        console = Console(file=screen, width=100, highlight=False, emoji=False)
        print_refused(console, "refused", columns, rows, rows_max)
        return [line.split() for line in screen.getvalue().splitlines()[2:]]

    return print_rows


def full(name, remedy="wait"):
    return RefusedNode(name, ("full",), remedy)


@pytest.mark.parametrize("rows_max", [None, 2])
def test_few_nodes_have_a_row_each(printed, rows_max):
    assert printed([full("a"), full("b", "grow")], rows_max) == [
        ["node", "because", "would", "fit", "after"],
        ["a", "full", "wait"],
        ["b", "full", "grow"],
    ]


def test_many_nodes_with_equal_reasons_share_an_item(printed):
    """The largest groups are listed first, with the names of their first nodes."""
    rows = [RefusedNode("z", ("tainted",), ""), *(full(name) for name in "abcde")]
    assert printed(rows, 2) == [
        ["5", "nodes:", "a,", "b,", "c", "and", "2", "more"],
        ["because:", "full"],
        ["would", "fit", "after:", "wait"],
        ["z"],
        ["because:", "tainted"],
    ]


def test_few_nodes_with_the_same_reason_and_remedy_share_an_item(printed):
    assert printed([full("a"), full("b")], 2)[0] == ["2", "nodes:", "a,", "b"]


def test_of_different_remedies_the_first_is_shown_with_its_node(printed):
    rows = [full("a", ""), full("b", "wait"), full("c", "grow")]
    assert printed(rows, 2)[2] == ["would", "fit", "after:", "b:", "wait"]


def test_without_remedies_an_item_has_none(printed):
    rows = [RefusedNode(name, ("full",)) for name in "abc"]
    assert printed(rows, 2, ("because",)) == [
        ["3", "nodes:", "a,", "b,", "c"],
        ["because:", "full"],
    ]
