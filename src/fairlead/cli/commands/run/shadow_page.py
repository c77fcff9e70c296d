"""The HTML report of `fairlead run --shadow`, about the placements of other schedulers."""

from __future__ import annotations

import html
from typing import Final

from fairlead.api.json import Json
from fairlead.whatif.report.write import render_static_page
from fairlead.worlds.cluster.shadow import PLACEMENTS, ShadowAgreement

_MEANINGS: Final = {
    ShadowAgreement.EQUAL: "on one of the nodes with the highest score",
    ShadowAgreement.SAMPLED: "on a feasible node with a lower score; node sampling explains it",
    ShadowAgreement.LOWER: "on a feasible node with a lower score",
    ShadowAgreement.INFEASIBLE: "on a node on which the pod does not fit",
    ShadowAgreement.UNSCHEDULABLE: "placed, but fits no node",
    ShadowAgreement.NEEDLESS: "preempted other pods, but fits a node",
    ShadowAgreement.PREEMPTED: "preempted other pods, and fits no node",
    ShadowAgreement.ERROR: "a plugin failed",
}
_STYLE: Final = """
h2, h3 { margin: 18px 0 10px; }
td { vertical-align: top; }
.note { margin-top: 8px; }
.examples td { min-width: 180px; overflow-wrap: anywhere; }
.examples td:first-child { min-width: 0; white-space: nowrap; }
"""
# Results that a comparison can have only because Fairlead observed bindings in another order. See
# fairlead.worlds.cluster.shadow.
_OF_ORDER: Final = (
    ShadowAgreement.LOWER,
    ShadowAgreement.INFEASIBLE,
    ShadowAgreement.UNSCHEDULABLE,
    ShadowAgreement.NEEDLESS,
)
_ORDER_NOTE: Final = (
    "Fairlead may observe bindings in another order than the one in which the other scheduler "
    "decided them. Some differences, especially in a burst of pods, may have only this cause."
)


def render_shadow(cluster: str, period: tuple[str, str], summary: Json) -> str:
    """Return the page for `summary`, the result of ShadowRecord.summary.

    `period` is (start, end) of the comparison, as texts.
    """
    sections = "\n".join(_configuration(name, one) for name, one in summary.items())
    return render_static_page(
        f"Shadow of {cluster}",
        _STYLE,
        (
            *(f'<p class="lead">{_verdict(name, one)}</p>' for name, one in summary.items()),
            f'<p class="facts">{html.escape(" to ".join(period))}</p>',
            sections,
        ),
    )


def _verdict(name: str, one: Json) -> str:
    if not one["placements"]:
        return html.escape(f"{name}: no placement was observed.")
    text = (
        f"{name}: {one['agreementRatio']:.1%} of {one['placements']:,} placements agree with this "
        f"configuration; {one['equalRatio']:.1%} are on one of its best nodes."
    )
    return html.escape(text)


def _configuration(name: str, one: Json) -> str:
    rows = []
    for agreement in ShadowAgreement:
        count = one["decisions"][agreement.value]
        is_placement = agreement in PLACEMENTS and one["placements"]
        share = f"{count / one['placements']:.1%}" if is_placement else ""
        cells = (agreement.value, _MEANINGS[agreement])
        numbers = (f"{count:,}", share)
        rows.append(
            "<tr>"
            + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells)
            + "".join(f'<td class="number">{number}</td>' for number in numbers)
            + "</tr>"
        )
    head = (
        '<tr><th>class</th><th>pods</th><th class="number">count</th>'
        '<th class="number">share</th></tr>'
    )
    lost = f"<p>Lower scores were {one['averageScoreLost']} below the best score on average.</p>"
    parts = [
        f"<section><h2>{html.escape(name)}</h2>",
        f"<table>\n{head}\n{chr(10).join(rows)}\n</table>",
        f'<p class="note">{_ORDER_NOTE}</p>' if _may_be_of_order(one) else "",
        lost if one["averageScoreLost"] else "",
        *(_examples(agreement, found) for agreement, found in one["examples"].items()),
        "</section>",
    ]
    return "\n".join(part for part in parts if part)


def _may_be_of_order(one: Json) -> bool:
    return any(one["decisions"][agreement.value] for agreement in _OF_ORDER)


def _examples(agreement: str, found: list[Json]) -> str:
    names = ("time", "pod", "its node", "best nodes", "why")
    head = "".join(f"<th>{name}</th>" for name in names)
    rows = "\n".join(f"<tr>{_cells(one)}</tr>" for one in found)
    return (
        f"<h3>Examples: {html.escape(agreement)}</h3>\n"
        f'<table class="examples">\n<tr>{head}</tr>\n{rows}\n</table>'
    )


def _cells(one: Json) -> str:
    choices = ", ".join(one.get("choices", ()))
    more = one.get("equals", 0) - len(one.get("choices", ()))
    if more > 0:
        choices += f" and {more} more"
    cells = (one["time"], one["pod"], one["node"], choices, _why(one))
    return "".join(f"<td>{html.escape(cell)}</td>" for cell in cells)


def _why(one: Json) -> str:
    """Return the known reasons of a difference; "" if none is known.

    Reasons are a message of the scheduler, the victims of a preemption, and the scores.
    """
    reasons = [one["reason"]] if one.get("reason") else []
    if one.get("victims"):
        reasons.append(f"would preempt {', '.join(one['victims'])}")
    if "score" in one and "bestScore" in one:
        reasons.append(f"score {one['score']:,}, best {one['bestScore']:,}")
    return "; ".join(reasons)
