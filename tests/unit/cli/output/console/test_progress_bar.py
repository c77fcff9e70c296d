"""The progress bar: on terminals only, and erased at the end."""

from __future__ import annotations

import io

from rich.console import Console

from fairlead.cli.output.console.progress_bar import ProgressBar


def shown(*, terminal, kind="xterm"):
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=terminal, width=80, _environ={"TERM": kind})
    with ProgressBar(console) as progress:
        progress.begin("with the change", 10)
        progress.reach(5, 90.0)
        progress.begin("without the change", 0)
        progress.reach(0, 5.0)
    return screen.getvalue()


def test_a_terminal_shows_phase_and_virtual_time():
    text = shown(terminal=True)
    assert "without the change" in text
    assert "of virtual time" in text


def test_without_a_terminal_nothing_is_written():
    assert shown(terminal=False) == ""


def test_a_dumb_terminal_shows_nothing():
    assert shown(terminal=True, kind="dumb") == ""


def test_text_is_printed_without_the_bar():
    """The bar is erased before the text, and drawn again below the text."""
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=80, _environ={"TERM": "xterm"})
    erase = "\x1b[2K"
    with ProgressBar(console) as progress:
        progress.begin("with the change", 0)
        with progress.hidden():
            screen.write("the verdict\n")
        progress.begin("with a possible next step", 0)
    before, after = screen.getvalue().split("the verdict\n")
    assert before.rindex(erase) > before.rindex("with the change")
    assert "with the change" not in after
    assert "with a possible next step" in after
    assert after.rindex(erase) > after.rindex("with a possible next step")


def test_hiding_a_disabled_bar_writes_nothing():
    screen = io.StringIO()
    with ProgressBar(Console(file=screen, force_terminal=False)) as progress, progress.hidden():
        pass
    assert screen.getvalue() == ""
