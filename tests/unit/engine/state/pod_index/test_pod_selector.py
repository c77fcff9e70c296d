"""Which pods a selector matches, and which selectors are candidates for a pod."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.api.objects import LabelSelector, LabelSelectorRequirement
from fairlead.api.selector import selector_matches
from fairlead.engine.state.pod_class import PodClass
from fairlead.engine.state.pod_index.pod_selector import AnchorIndex, PodSelector, anchor_of

WEB = LabelSelector(match_labels={"app": "web"})
FRONT = LabelSelector(match_labels={"tier": "fe"})
HERE = frozenset({"here"})


def pods(labels, namespace="here", *, terminating=False):
    """Pods with those labels."""
    return PodClass(namespace, labels, terminating=terminating)


@pytest.mark.parametrize(
    ("case", "demands", "expected"),
    [
        ("nothing is demanded", [], False),
        ("the namespace fits", [(HERE, WEB)], True),
        ("all namespaces", [(None, WEB)], True),
        ("another namespace", [(frozenset({"there"}), WEB)], False),
        ("an absent selector", [(None, None)], False),
        ("an empty selector", [(None, LabelSelector())], True),
        ("all of several demands", [(HERE, WEB), (None, FRONT)], True),
        ("one of them fails", [(HERE, WEB), (frozenset(), FRONT)], False),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_pod_must_match_all_requirements(case, demands, expected):
    """Each consists of namespaces and a label selector."""
    selector = PodSelector(demands, counts_terminating=True)
    assert selector.matches(pods({"app": "web", "tier": "fe"})) is expected


@pytest.mark.parametrize("counts_terminating", [True, False])
def test_a_selector_states_whether_terminating_pods_match(counts_terminating):
    """They match for affinity, but not for topology spread."""
    selector = PodSelector([(None, WEB)], counts_terminating=counts_terminating)
    assert selector.matches(pods({"app": "web"}, terminating=True)) is counts_terminating


labels = st.dictionaries(st.sampled_from("abc"), st.sampled_from("xy"), max_size=3)
requirements = st.builds(
    LabelSelectorRequirement,
    key=st.sampled_from("abc"),
    operator=st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist"]),
    values=st.lists(st.sampled_from("xy"), max_size=2, unique=True).map(tuple),
)
selectors = st.builds(
    LabelSelector,
    match_labels=labels,
    match_expressions=st.lists(requirements, max_size=2).map(tuple),
)


@given(filed=st.lists(selectors, max_size=5), wanted=labels)
def test_every_selector_that_matches_is_a_candidate(filed, wanted):
    """An anchor is a label without which there is no match."""
    index = AnchorIndex()
    entries = [(number, selector) for number, selector in enumerate(filed)]
    for entry in entries:
        index.add(anchor_of(entry[1]), entry[0])
    found = index.candidates(wanted)
    assert len(found) == len(set(found))
    assert {n for n, selector in entries if selector_matches(selector, wanted)} <= set(found)
    for number, selector in entries:
        index.remove(anchor_of(selector), number)
    assert index.candidates(wanted) == []
