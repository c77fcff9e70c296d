"""Answers that consist of tables, printed on one screen."""

from __future__ import annotations

from fairlead.cli.output.tabular_answer import print_tabular
from fairlead.whatif.outcome.assessment.next_step import NextStep
from fairlead.whatif.result.tabular_answer import ResultColumn, ResultTable, TabularAnswer


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


def test_the_commands_for_many_nodes_are_printed_only_in_full(capsys):
    """A shell must be able to run the lines of a long command, also with a pipe."""
    names = " ".join(f"node-{number}" for number in range(200))
    short = NextStep("drain", command="kubectl drain node-0 --pod-selector 'a in (b)'")
    long = NextStep("drain", command=f"echo {names} | xargs -n 1 kubectl drain")
    print_tabular(TabularAnswer("DrainPlan", "d", "Yes.", steps=(short,)), "text")
    assert f"\nNext: drain: {short.command}\n" in capsys.readouterr().out
    answer = TabularAnswer("DrainPlan", "d", "Yes.", steps=(long,))
    print_tabular(answer, "text")
    printed = capsys.readouterr().out
    assert "\nNext: drain. -o details prints the command.\n" in printed
    assert "kubectl" not in printed
    print_tabular(answer, "details")
    lines = capsys.readouterr().out.partition("Next: drain:\n")[2].replace("\\\n", "")
    assert " ".join(lines.split()) == long.command


def test_the_line_about_long_commands_names_the_steps_once(capsys):
    """A reader learns what to do and in which order, although the commands need many lines."""
    names = " ".join(f"node-{number}" for number in range(200))
    words = ("cordon", "drain", "drain", "check", "delete", "report")
    steps = tuple(NextStep(one, command=f"kubectl {one} {names}") for one in words)
    print_tabular(TabularAnswer("Consolidation", "d", "Yes.", steps=steps), "text")
    printed = capsys.readouterr().out
    assert (
        "Next: cordon; drain; check; delete; and 1 more. -o details prints the 6 commands.\n"
        in printed
    )


def test_no_command_is_left_out_for_a_row_of_a_table(capsys):
    """A user who follows only some of the commands leaves a drained node in the cluster."""
    column = ResultColumn("name", "name")
    tables = tuple(
        ResultTable(f"t{number}", f"table {number}", (column,), [{"name": "row"}] * 6)
        for number in range(8)
    )
    notes = tuple(f"a note {number}" for number in range(3))
    steps = tuple(NextStep(f"Step {at}", command=f"kubectl drain {at}") for at in range(6))
    print_tabular(
        TabularAnswer("DrainPlan", "d", "Yes.", (), tables, {}, notes, steps=steps), "text"
    )
    text = capsys.readouterr().out
    assert [line for line in text.splitlines() if line.startswith("Next: ")] == [
        f"Next: {one.clause}: {one.code}" for one in steps
    ]


def test_changes_that_would_help_get_lines_before_notes_and_other_tables(capsys):
    column = (ResultColumn("text", "text"),)
    others = tuple(
        ResultTable(f"t{number}", f"table {number}", column, [{"text": "row"}] * 6)
        for number in range(8)
    )
    edits = ResultTable(
        "edits", "what would help", column, [{"text": "edit"}] * 6, has_remedies=True
    )
    print_tabular(TabularAnswer("K", "s", "Yes.", (), (*others, edits), {}, ("a note",)), "text")
    lines = capsys.readouterr().out.splitlines()
    assert [line.strip() for line in lines].count("edit") == 4
