"""A screen: the sections of an answer share its lines by rank."""

from __future__ import annotations

import io
from dataclasses import replace

from rich.console import Console

from fairlead.cli.output.console.fitted_table import FittedTable, TableColumn
from fairlead.cli.output.console.screen import LINES_MAX, Rank, Section, print_screen, table_section

HEAD = Section("", 1, lambda console, _: console.print("the verdict"), Rank.HEAD)


def section(title, rows, rank, **bounds):
    cells = [(f"{title}-{at}",) for at in range(rows)]
    return table_section(title, (TableColumn(title.upper(), is_name=True),), cells, rank, **bounds)


def printed(*sections, has_details=False, **console):
    stream = io.StringIO()
    print_screen(Console(file=stream, width=80, **console), sections, has_details=has_details)
    return stream.getvalue()


def test_sections_that_fit_are_printed_in_the_order_of_the_answer():
    text = printed(HEAD, section("late", 2, Rank.MOVES), section("early", 2, Rank.VERDICTS))
    assert text.split() == ["the", "verdict", "LATE", "late-0", "late-1",
                            "EARLY", "early-0", "early-1"]  # fmt: skip


def test_sections_of_lower_rank_get_lines_first():
    text = printed(
        HEAD, section("late", 60, Rank.MOVES, most=60), section("early", 60, Rank.VERDICTS, most=60)
    )
    assert "early-30" in text
    assert "late-0" not in text
    assert text.endswith("Not shown: late. -o details prints everything.\n")
    assert text.count("\n") <= LINES_MAX


def test_essential_sections_get_their_fewest_rows_before_others_grow():
    text = printed(
        HEAD, section("many", 60, Rank.VERDICTS, most=60), section("cause", 9, Rank.ADVICE, least=2)
    )
    assert "cause-1" in text
    assert "... and 7 more\n" in text
    assert text.endswith("-o details prints all rows.\n")
    assert text.count("\n") <= LINES_MAX


def test_each_essential_section_gets_a_row_before_others_get_their_fewest_rows():
    """On a narrow terminal, each row of the first table can take several lines."""
    others = [section(f"table-{at}", 9, Rank.VERDICTS, least=9) for at in range(5)]
    text = printed(HEAD, *others, section("cause", 9, Rank.PROBLEMS))
    assert all(f"table-{at}-0" in text for at in range(5))
    assert "table-0-8" in text
    assert "cause-0" in text


def test_an_urgent_section_gets_its_fewest_rows_first():
    """Without it, the other sections would take all lines."""
    others = [section(f"table-{at}", 9, Rank.VERDICTS, least=9) for at in range(9)]
    note = section("note", 3, Rank.PROBLEMS)
    assert "note-0" not in printed(HEAD, *others, note)
    assert "note-0" in printed(HEAD, *others, replace(note, is_urgent=True))


def test_the_first_next_step_gets_one_line_before_urgent_rows_and_the_others_after_them():
    steps = section("step", 3, Rank.NEXT_STEPS, least=3)
    urgent = section("row", 60, Rank.VERDICTS, least=60, most=60, is_urgent=True)
    assert "step-0\n... and 2 more" in printed(HEAD, urgent, steps)
    assert "step-2" in printed(HEAD, replace(urgent, least=20), steps)


def test_a_long_line_takes_several_lines_on_a_terminal():
    terminal = {"height": 24, "force_terminal": True, "no_color": True}

    def show(console, count):
        console.print("x" * 800, soft_wrap=True)

    long = Section("long", 1, show, Rank.VERDICTS, least=1)
    last = section("last", 9, Rank.PROBLEMS, least=9, most=9)
    text = printed(HEAD, long, last, **terminal)
    assert "... and 3 more" in text  # 1 + 10 + 9 lines
    assert "last-8" in printed(HEAD, long, last)


def test_an_essential_section_prints_fewer_rows_rather_than_none():
    terminal = {"height": 24, "force_terminal": True, "no_color": True}
    first = section("first", 12, Rank.VERDICTS, least=12, most=12)
    text = printed(HEAD, first, section("second", 9, Rank.PROBLEMS, least=9), **terminal)
    assert "first-11" in text
    assert "second-0" in text
    assert "... and 7 more" in text


def test_the_last_lines_name_the_most_important_sections_that_are_left_out():
    """They take two lines at most."""
    many = [section(f"{'long ' * 6}{at}", 9, Rank.MOVES, least=9) for at in range(9)]
    first = section("first", 60, Rank.VERDICTS, most=60)
    text = printed(HEAD, *many, section("late", 9, Rank.CAUSES, least=60), first)
    last = text[text.index("Not shown: ") :]
    assert last.count("\n") == 2
    assert last.startswith(f"Not shown: {'long ' * 6}0, ")
    assert last.endswith(" other sections. -o details prints everything.\n")


def test_a_single_omitted_row_is_printed_instead_of_a_line_that_counts_it():
    text = printed(HEAD, section("row", 7, Rank.VERDICTS, most=6))
    assert "row-6" in text
    assert "more" not in text
    assert "-o details" not in text


def test_with_details_all_rows_of_all_sections_are_printed():
    text = printed(
        HEAD, section("late", 60, Rank.MOVES), section("early", 60, Rank.VERDICTS), has_details=True
    )
    assert "late-59" in text
    assert "early-59" in text
    assert "-o details" not in text


def test_the_height_of_the_terminal_limits_the_lines():
    rows = section("row", 200, Rank.VERDICTS, most=200)
    assert 50 < printed(HEAD, rows, height=60, force_terminal=True).count("\n") <= 60


def test_text_for_a_pipe_does_not_depend_on_the_environment(monkeypatch):
    rows = section("row", 200, Rank.VERDICTS, most=200)
    expected = printed(HEAD, rows)
    monkeypatch.setenv("LINES", "24")
    assert printed(HEAD, rows) == expected


def test_a_heading_is_wrapped_rather_than_elided():
    columns = (TableColumn("NOT BACK AFTER THE OUTAGE", is_name=True), TableColumn("WHY"))
    stream = io.StringIO()
    FittedTable(columns, [("team/app-0", "no room")]).print(Console(file=stream, width=40))
    lines = [line.rstrip() for line in stream.getvalue().splitlines()]
    assert "…" not in "".join(lines)
    assert lines[-1].split() == ["team/app-0", "no", "room"]
    assert " ".join(lines[1:-1]).split() == ["NOT", "BACK", "AFTER", "THE", "OUTAGE", "WHY"]


def test_text_is_wrapped_and_not_cut_off_on_a_narrow_terminal():
    columns = (TableColumn("WORKLOAD", is_name=True), TableColumn("READY"), TableColumn("WHAT"))
    words = "1 pending, 1 preempted by deploy/shop/api, 6 evicted"
    for width in (40, 20):
        stream = io.StringIO()
        row = ("deploy/shop/web", "3 for 12s", words)
        FittedTable(columns, [row]).print(Console(file=stream, width=width))
        shown = stream.getvalue()
        assert all(word in shown for word in words.replace("/", "/ ").split())
    assert max(map(len, shown.splitlines())) < 40


def test_long_text_beside_wide_names_is_printed_below_its_row():
    """Beside the names there is room for 24 characters, which would make a column of many lines."""
    columns = (
        TableColumn("NODES", is_name=True),
        TableColumn("BLOCKED BY", is_name=True),
        TableColumn("WHY"),
    )
    spread = "node(s) didn't match pod topology spread constraints"
    why = f"Insufficient cpu, {spread}, node(s) were unschedulable"
    rows = [("node-0, node-1, node-2", "deploy/team-03/app-003-canary", why), ("node-7", "a", "x")]
    stream = io.StringIO()
    FittedTable(columns, rows).print(Console(file=stream, width=80))
    assert stream.getvalue().splitlines()[1:] == [
        "NODES                   BLOCKED BY",
        "    WHY",
        "node-0, node-1, node-2  deploy/team-03/app-003-canary",
        "    Insufficient cpu, node(s) didn't match pod topology spread constraints,",
        "    node(s) were unschedulable",
        "node-7                  a",
        "    x",
    ]
    wide = io.StringIO()
    FittedTable(columns, rows).print(Console(file=wide, width=120))
    assert wide.getvalue().splitlines()[1].split() == ["NODES", "BLOCKED", "BY", "WHY"]


def test_the_last_line_names_columns_that_do_not_fit():
    """They are those of printed sections; a wider terminal has room for all columns."""

    def last_line(name, count, *, has_details=False):
        columns = TableColumn("POD", is_name=True), TableColumn("AFTER", rank=1), TableColumn("WHY")
        rows = [(name, "5m", "drain")] * count
        section = table_section("pods", columns, rows, Rank.VERDICTS, most=count)
        return printed(section, has_details=has_details).splitlines()[-1]

    narrow = "No room for column AFTER."
    assert last_line("a" * 72, 1) == last_line("a" * 72, 1, has_details=True) == narrow
    assert last_line("a" * 72, 90) == f"-o details prints all rows. {narrow}"
    assert last_line("a", 1).split() == ["a", "5m", "drain"]
