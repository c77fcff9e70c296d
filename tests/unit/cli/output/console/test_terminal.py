"""The width of output that does not go to a terminal."""

from __future__ import annotations

import pytest

from fairlead.cli.output.console.terminal import WIDTH_WITHOUT_TERMINAL, print_line, stdout_console


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
