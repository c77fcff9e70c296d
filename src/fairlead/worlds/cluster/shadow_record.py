"""ShadowRecord: writes a Shadow's decisions as JSON lines, and counts them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct, field
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from fairlead.api.timestamp import format_timestamp
from fairlead.worlds.cluster.shadow import PLACEMENTS, ShadowAgreement, ShadowDecision

EXAMPLES_MAX: Final = 5
_AGREEING: Final = (ShadowAgreement.EQUAL, ShadowAgreement.SAMPLED)
_encode: Final = msgspec.json.Encoder().encode


class _Counts(Struct):
    """Counts the decisions of one configuration, and keeps examples of each kind of difference.

    `lost_score` is the sum of `best_score - score` over the decisions that have both scores.
    """

    by_agreement: Counter[ShadowAgreement] = field(default_factory=Counter)
    lost_score: int = 0
    examples: dict[ShadowAgreement, list[ShadowDecision]] = field(
        default_factory=lambda: defaultdict(list)
    )

    @property
    def placements(self) -> int:
        """The number of placements that were compared."""
        return sum(self.by_agreement[one] for one in PLACEMENTS)

    def ratio(self, agreeing: Iterable[ShadowAgreement]) -> float | None:
        """Return the share of placements whose agreement is in `agreeing`.

        The share is rounded to four decimal places. Returns None if there are no placements.
        """
        if not self.placements:
            return None
        return round(sum(self.by_agreement[one] for one in agreeing) / self.placements, 4)


class ShadowRecord(Collector):
    """Counts the decisions of a Shadow."""

    def __init__(
        self, configurations: Iterable[str], write: Callable[[bytes], object] | None = None
    ) -> None:
        """`write` is called once for each decision, and receives the decision as a line of JSON."""
        self._counts = {name: _Counts() for name in configurations}
        self._write = write

    def record(self, decision: ShadowDecision) -> None:
        """Count `decision` and write it."""
        counts = self._counts[decision.configuration]
        counts.by_agreement[decision.agreement] += 1
        if decision.score is not None and decision.best_score is not None:
            counts.lost_score += decision.best_score - decision.score
        examples = counts.examples[decision.agreement]
        if decision.agreement is not ShadowAgreement.EQUAL and len(examples) < EXAMPLES_MAX:
            examples.append(decision)
        if self._write is not None:
            self._write(_encode(decision_json(decision)) + b"\n")

    def collect(self) -> Iterable[Metric]:
        """Yield the metrics fairlead_shadow_decisions and fairlead_shadow_agreement_ratio."""
        decisions = CounterMetricFamily(
            "fairlead_shadow_decisions",
            "Placements and nominations by other schedulers, by agreement with Fairlead.",
            labels=["configuration", "agreement"],
        )
        ratio = GaugeMetricFamily(
            "fairlead_shadow_agreement_ratio",
            "Share of placements on one of the best nodes, or explained by node sampling.",
            labels=["configuration"],
        )
        for name, counts in self._counts.items():
            for agreement in ShadowAgreement:
                decisions.add_metric([name, agreement.value], counts.by_agreement[agreement])
            share = counts.ratio(_AGREEING)
            if share is not None:
                ratio.add_metric([name], share)
        yield decisions
        yield ratio

    def summary(self) -> dict[str, Any]:
        """Return the counts of each configuration as JSON."""
        return {name: _summary(counts) for name, counts in self._counts.items()}


def _summary(counts: _Counts) -> dict[str, Any]:
    differing = (
        counts.by_agreement[ShadowAgreement.LOWER] + counts.by_agreement[ShadowAgreement.SAMPLED]
    )
    return {
        "placements": counts.placements,
        "equalRatio": counts.ratio((ShadowAgreement.EQUAL,)),
        "agreementRatio": counts.ratio(_AGREEING),
        "decisions": {one.value: counts.by_agreement[one] for one in ShadowAgreement},
        "averageScoreLost": round(counts.lost_score / differing, 2) if differing else 0,
        "examples": {
            agreement.value: [decision_json(one) for one in examples]
            for agreement, examples in sorted(counts.examples.items())
            if examples
        },
    }


def decision_json(decision: ShadowDecision) -> Mapping[str, Any]:
    """Return a decision as JSON, without empty fields."""
    fields: dict[str, Any] = {
        "time": format_timestamp(decision.at),
        "configuration": decision.configuration,
        "agreement": decision.agreement.value,
        "pod": decision.pod,
        "scheduler": decision.scheduler,
        "node": decision.node,
        "choices": decision.choices,
        "equals": decision.equals,
        "feasible": decision.feasible,
        "score": decision.score,
        "bestScore": decision.best_score,
        "reason": decision.reason,
        "victims": decision.victims,
    }
    return {key: value for key, value in fields.items() if value not in (None, "", ())}
