"""pending.js explains the scheduler's messages."""

from __future__ import annotations

import re

from fairlead.engine.plugins.inter_pod_affinity import filter as inter_pod_affinity
from fairlead.engine.plugins.node_affinity import MISMATCH
from fairlead.engine.plugins.node_resources.fit import INSUFFICIENT, TOO_MANY_PODS
from fairlead.engine.plugins.node_unschedulable import UNSCHEDULABLE
from fairlead.engine.plugins.pod_topology_spread.filter import SPREAD_MISMATCH
from fairlead.engine.plugins.taint_toleration import UNTOLERATED
from fairlead.engine.plugins.volume_binding import node_volumes
from fairlead.engine.scheduling.preemption.default_preemption import NOT_HELPFUL
from fairlead.engine.scheduling.preemption.dry_run.victims import NO_VICTIMS
from fairlead.engine.scheduling.preemption.eligibility import NEVER
from fairlead.whatif.outcome.scheduling_message import NOT_TRIED
from fairlead.whatif.report.write import asset

MEANINGS = re.compile(r"^const MEANINGS = \[\n(.*?)^\];$", re.MULTILINE | re.DOTALL)
WORDS = re.compile(r'^  \["([^"]+)", ', re.MULTILINE)
REASONS = (
    UNSCHEDULABLE.message,
    MISMATCH.message,
    UNTOLERATED.message,
    inter_pod_affinity.STATUSES[inter_pod_affinity.REPELLED].message,
    inter_pod_affinity.STATUSES[inter_pod_affinity.REPELLED_BY_EXISTING].message,
    inter_pod_affinity.STATUSES[inter_pod_affinity.NOT_ATTRACTED].message,
    SPREAD_MISMATCH,
    node_volumes.STATUSES[node_volumes.NODE_CONFLICT].message,
    TOO_MANY_PODS,
    INSUFFICIENT,
    NO_VICTIMS.message,
    NOT_HELPFUL.message,
    NEVER,
)


def test_the_explained_messages_are_those_of_the_scheduler():
    """The words may be a part of the reason, because pending.js looks for them in messages."""
    [rows] = MEANINGS.findall(asset("pending.js"))
    explained = WORDS.findall(rows)
    assert len(explained) == len(rows.splitlines())
    for words, reason in zip(explained, REASONS, strict=True):
        assert words in reason


def test_the_page_has_the_words_of_the_text_for_a_pod_without_a_message():
    assert f'const NOT_TRIED = "{NOT_TRIED}";' in asset("pending.js")
