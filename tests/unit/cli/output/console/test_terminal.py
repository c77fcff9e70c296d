"""The width of output that does not go to a terminal, and the ends of lines."""

from __future__ import annotations

import re

import pytest

from fairlead.cli.output.console.terminal import (
    WIDTH_WITHOUT_TERMINAL,
    print_facts,
    print_item,
    print_line,
    print_table,
    stderr_console,
    stdout_console,
)


@pytest.mark.parametrize(
    ("columns", "width"),
    [
        ("", WIDTH_WITHOUT_TERMINAL),
        ("80", 80),
        ("0", WIDTH_WITHOUT_TERMINAL),
        ("99999999999999", WIDTH_WITHOUT_TERMINAL),
    ],
)
def test_the_variable_columns_is_the_width_if_it_is_valid(columns, width, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", columns)
    print_line(stdout_console(), "a " * width)
    assert [len(line.rstrip()) for line in capsys.readouterr().out.splitlines()] == [width - 1] * 2


@pytest.mark.parametrize("forced", ["", "1"], ids=["piped", "with colours"])
def test_no_line_ends_with_a_space(forced, monkeypatch, capsys):
    """Neither a title, a table, a wrapped line nor a styled line has spaces at its end."""
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("FORCE_COLOR", forced)
    monkeypatch.setenv("TERM", "xterm-256color")
    console = stdout_console()
    print_table(console, "pods", ("name", "why"), [("web-0", "no room"), ("a-longer-name", "")])
    print_line(console, "a sentence that is longer than a line of this terminal", style="bold")
    console.print("unfinished ", end="")
    lines = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out).split("\n")
    assert lines == [
        "", "pods", "name           why", "web-0          no room", "a-longer-name",
        "a sentence that is longer than a line of", "this terminal", "unfinished ",
    ]  # fmt: skip


def test_forced_colours_do_not_make_a_pipe_a_terminal(monkeypatch, capsys):
    """CI systems set FORCE_COLOR; their logs have no height, and names must not be shortened."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    console = stdout_console()
    print_line(console, "x" * 100, style="bold")
    assert (console.is_terminal, console.width) == (False, WIDTH_WITHOUT_TERMINAL)
    assert capsys.readouterr().out == f"\x1b[1m{'x' * 100}\x1b[0m\n"


def test_forced_colours_do_not_write_a_status_line_to_a_log(monkeypatch, capsys):
    """A log would contain every state of the line."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    with stderr_console().status("reading"):
        pass
    assert capsys.readouterr().err == ""


def test_the_further_lines_of_an_item_are_indented(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "20")
    print_item(stdout_console(), "shop/web: 2 → 9, between 4 and 36")
    assert capsys.readouterr().out.splitlines() == ["- shop/web: 2 → 9,", "  between 4 and 36"]


def test_facts_are_not_split_between_lines(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "32")
    print_facts(stdout_console(), ["dump.yaml", "12 nodes", "default scheduler", "seed 0"])
    assert capsys.readouterr().out.splitlines() == [
        "dump.yaml · 12 nodes",
        "· default scheduler · seed 0",
    ]


@pytest.mark.parametrize("show", [print_line, print_item])
def test_a_long_sentence_is_printed_to_its_end(show, capsys):
    show(stdout_console(), f"Note: {'a word ' * 200}the end.")
    assert capsys.readouterr().out.endswith("the end.\n")
