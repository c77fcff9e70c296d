"""The table of a sweep's cases as CSV or Parquet: columns for parameters, then for measures."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

from fairlead.whatif.input.error import InputError
from fairlead.whatif.sweep.case import Case, value_text
from fairlead.whatif.sweep.measure import MEASURES, Number

Measured = Mapping[str, Number | None]


def csv_table(cases: Sequence[Case], rows: Sequence[Measured]) -> bytes:
    """Return the table as CSV with a header row; the cell of a missing value is empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["case", *cases[0].parameters, *(one.name for one in MEASURES)])
    for case, row in zip(cases, rows, strict=True):
        parameters = map(value_text, case.parameters.values())
        writer.writerow([case.number, *parameters, *(row[one.name] for one in MEASURES)])
    return text.getvalue().encode()


def require_parquet() -> None:
    """Raise InputError if pyarrow, which writes Parquet files, is not installed."""
    try:
        import pyarrow  # noqa: F401, ICN001
    except ImportError:
        problem = "needs the library pyarrow; install Fairlead with the extra `sweep`"
        raise InputError("--parquet", problem) from None


def parquet_table(cases: Sequence[Case], rows: Sequence[Measured]) -> bytes:
    """Return the table as a Parquet file.

    If a parameter has values of several types, all values in its column are written as texts.
    """
    import pyarrow as pa
    from pyarrow import parquet

    columns: dict[str, Any] = {"case": pa.array([case.number for case in cases], pa.int64())}
    for name in cases[0].parameters:
        columns[name] = _parameter([case.parameters[name] for case in cases], pa)
    for measure in MEASURES:
        columns[measure.name] = pa.array([row[measure.name] for row in rows], pa.float64())
    sink = pa.BufferOutputStream()
    parquet.write_table(pa.table(columns), sink)
    found: bytes = sink.getvalue().to_pybytes()
    return found


def _parameter(values: Sequence[Any], pa: Any) -> Any:
    known = {type(value) for value in values if value is not None}
    for kind, column in ((bool, pa.bool_()), (int, pa.int64()), (float, pa.float64())):
        if known == {kind}:
            return pa.array(values, column)
    texts = [None if value is None else value_text(value) for value in values]
    return pa.array(texts, pa.string())
