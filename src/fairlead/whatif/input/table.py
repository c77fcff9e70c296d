"""Reads users' CSV files."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fairlead.whatif.input.error import InputError

Row = tuple[int, Mapping[str | Any, Any]]  # (number of the row's last line, {column: cell})


def read_table(source: str, text: str) -> tuple[Sequence[str], Iterator[Row]]:
    """Return (header, rows) of `text`, the content of the CSV file `source`.

    If a row has more cells than the header, the further cells have the key None. Raises InputError
    for invalid CSV, also during the iteration over the rows.
    """
    reader = csv.DictReader(io.StringIO(text, newline=None))
    try:
        header = tuple(reader.fieldnames or ())
    except csv.Error as cause:
        raise _refusal(source, reader, cause) from None
    for name in header:
        if header.count(name) > 1:
            raise InputError(source, f"line 1: the column {name!r} is given twice")
    return header, _rows(source, reader)


def _rows(source: str, reader: csv.DictReader[str]) -> Iterator[Row]:
    try:
        for row in reader:
            yield reader.line_num, row
    except csv.Error as cause:
        raise _refusal(source, reader, cause) from None


def _refusal(source: str, reader: csv.DictReader[str], cause: csv.Error) -> InputError:
    return InputError(source, f"line {reader.reader.line_num}: is not CSV: {cause}")
