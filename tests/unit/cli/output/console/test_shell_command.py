"""Shell commands that are broken into lines for a shell."""

from __future__ import annotations

import shlex

import pytest

from fairlead.cli.output.console.shell_command import command_lines

PATCH = 'kubectl -n shop patch pdb web --type merge -p \'{"spec": {"maxUnavailable": 1}}\''


@pytest.mark.parametrize("width", [20, 40, 60, 100])
def test_a_shell_reads_the_lines_as_the_same_command(width):
    lines = command_lines(PATCH, width)
    assert shlex.split("".join(line.removesuffix("\\") for line in lines)) == shlex.split(PATCH)
    assert [line.endswith(" \\") for line in lines] == [True] * (len(lines) - 1) + [False]


def test_only_a_single_word_may_be_wider():
    lines = command_lines(PATCH, 24)
    assert max(map(len, lines[:-1])) <= 24
    assert lines[-1] == '\'{"spec": {"maxUnavailable": 1}}\''
    assert command_lines(PATCH, len(PATCH)) == [PATCH]
