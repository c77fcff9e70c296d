"""The data of a comparison's page, in addition to the reports of its alternatives."""

from __future__ import annotations

from collections.abc import Sequence

from fairlead.api.json import Json
from fairlead.whatif.comparison import Alternative, compare


def comparison_data(alternatives: Sequence[Alternative], *, is_choice: bool) -> Json:
    """Return the comparison of `alternatives` as JSON.

    The field `workloads` of the result lists the effects on each workload.

    If `is_choice` is set, the best alternatives are marked, unless all are equally good.
    """
    answer = compare(alternatives, is_choice=is_choice)
    tables = {table.name: table.rows for table in answer.tables}
    ranks = [one.rank for one in alternatives]
    best = [is_choice and rank == min(ranks) != max(ranks) for rank in ranks]
    severities = [str(row["severity"]) for row in tables["alternatives"]]
    shown = severities[ranks.index(min(ranks))] if is_choice else "warning"
    effects: dict[str, list[Json]] = {}
    for row in tables["workloads"]:
        effects.setdefault(str(row["workload"]), []).append(
            {key: row[key] for key in ("wanted", "lowest", "at_end", "what")}
        )
    return {
        "source": answer.source,
        "verdict": answer.verdict,
        "findings": list(answer.findings),
        "severity": shown if is_choice or len(set(severities)) > 1 else severities[0],
        "alternatives": [
            {**row, "best": is_best}
            for row, is_best in zip(tables["alternatives"], best, strict=True)
        ],
        "workloads": [
            {"workload": workload, "effects": rows} for workload, rows in effects.items()
        ],
        "notes": list(answer.notes),
    }
