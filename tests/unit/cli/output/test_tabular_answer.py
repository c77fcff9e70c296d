"""Answers that consist of tables, printed on one screen."""

from __future__ import annotations

from fairlead.cli.output.tabular_answer import print_tabular
from fairlead.whatif.result.tabular_answer import TabularAnswer


def test_more_notes_than_lines_are_counted(capsys):
    """The first notes name kinds that could not be read; an answer must not omit them."""
    notes = tuple(f"no resource {number} could be read" for number in range(60))
    answer = TabularAnswer("DrainPlan", "dump.json", "A drain is safe.", notes=notes)
    print_tabular(answer, "text")
    text = capsys.readouterr().out
    assert "Note: no resource 0 could be read\n" in text
    assert "more notes\n-o details prints all rows.\n" in text
    assert text.count("\n") <= 40
    print_tabular(answer, "details")
    assert capsys.readouterr().out.count("Note: ") == 60


def test_a_long_note_is_printed_to_its_end(capsys):
    notes = (f"{'a word ' * 200}the end.",)
    answer = TabularAnswer("DrainPlan", "dump.json", "A drain is safe.", notes=notes)
    for form in ("text", "markdown"):
        print_tabular(answer, form)
        assert capsys.readouterr().out.rstrip().endswith("the end.")
