"""Answers in Markdown are at most as long as a comment on GitHub."""

from fairlead.cli.output.markdown_limit import CHARACTERS_MAX, within_limit

HEAD = ["### No pods are displaced.", ""]


def rows(count: int):
    """Return the lines of one table with `count` rows of 300 characters."""

    def tables(rows_max: int) -> list[str]:
        return ["| NAME |", *["x" * 299] * min(count, rows_max)]

    return tables


def test_a_short_answer_is_complete():
    text = within_limit(HEAD, rows(2), ["- note"])
    assert text.splitlines() == [*HEAD, *rows(2)(2), "- note"]


def test_notes_that_alone_exceed_the_limit_are_cut_at_a_line():
    """The first notes stay, because they can concern the whole answer."""
    notes = [f"- {number} {'n' * 95}" for number in range(1_000)]
    text = within_limit(HEAD, rows(3), notes)
    shown = text.splitlines()
    assert CHARACTERS_MAX - 300 < len(text) <= CHARACTERS_MAX
    assert shown[: len(HEAD) + 4] == [*HEAD, *rows(3)(3)]
    kept = shown[len(HEAD) + 4 : -2]
    assert kept == notes[: len(kept)]
    assert shown[-1] == f"... and {1_000 - len(kept)} more notes"


def test_long_notes_take_the_room_of_table_rows():
    text = within_limit(HEAD, rows(100), ["- " + "n" * 200] * 200)
    assert text.count("x" * 299) == 30
    assert "more notes" not in text


def test_a_command_that_is_too_long_is_left_out():
    step = f"- Drain: `{'node ' * 20_000}`"
    text = within_limit([*HEAD, step], rows(3), ["- note"])
    assert text.splitlines() == [*HEAD, "", "... and 1 more lines", *rows(3)(3), "- note"]
