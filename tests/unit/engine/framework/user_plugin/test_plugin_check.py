"""Problems of a plugin that are found before it is called."""

from __future__ import annotations

import pytest

from fairlead import plugin as framework
from fairlead.engine.framework.user_plugin.plugin_check import problem_of


class Sound:
    name = "Sound"
    events = (framework.EventKind.NODE_ADD,)
    locality = framework.Locality.ROW

    def filter(self, state, pod, node):
        return None

    def score_columns(self, *everything):
        return None

    def helper(self):
        return None


def plugin(**members):
    """An object with these members; functions become methods."""
    return type("Made", (), {"name": "Made", **members})()


def ok(self, state, pod, node):
    return None


async def later(self, state, pod, node):
    return None


def one_by_one(self, state, pod, node):
    yield None


def test_a_valid_plugin_has_no_problems() -> None:
    assert problem_of(Sound()) == ""


@pytest.mark.parametrize(
    ("made", "problem"),
    [
        pytest.param(plugin(name=""), "has no name", id="a name is empty"),
        pytest.param(plugin(name=7, filter=ok), "has no name", id="a name is no text"),
        pytest.param(plugin(), "implements no extension point", id="nothing to ask"),
        pytest.param(
            plugin(pre_score=lambda self, state, pod, rows: None),
            "implements no extension point",
            id="pre_score alone is asked by nobody",
        ),
        pytest.param(
            plugin(preFilter=ok), "has preFilter, which is never called: it is spelled pre_filter",
            id="Go's spelling",
        ),
        pytest.param(
            plugin(Score=ok), "has Score, which is never called: it is spelled score", id="capitals"
        ),
        pytest.param(plugin(filter=7), "has filter, which is not a method", id="no method"),
        pytest.param(
            plugin(filter=lambda self, pod, node: None),
            "must take filter(self, state, pod, node)",
            id="the state is forgotten",
        ),
        pytest.param(
            plugin(score=lambda self, state, pod, node, extra: None),
            "must take score(self, state, pod, node)",
            id="one argument too many",
        ),
        pytest.param(plugin(filter=later), "must return from filter directly", id="async"),
        pytest.param(plugin(filter=one_by_one), "must return from filter directly", id="generator"),
        pytest.param(
            plugin(reserve=ok), "has reserve without unreserve", id="reserve cannot be undone"
        ),
        pytest.param(
            plugin(pre_filter=lambda self, state, pod: None,
                   add_pod=lambda self, state, pod, added, node: None),
            "has add_pod without remove_pod",
            id="a dry run needs both",
        ),
        pytest.param(
            plugin(filter=ok, normalize_scores=ok),
            "has normalize_scores without score or score_columns",
            id="nothing to normalise",
        ),
        pytest.param(
            plugin(filter=ok, locality="node"),
            "has a locality that is not a Locality",
            id="locality",
        ),
        pytest.param(
            plugin(score=ok, normalization=100),
            "has a normalization that is not a Normalization",
            id="normalization",
        ),
        pytest.param(
            plugin(filter=ok, events=["NODE_ADD"]),
            "has events that are not a collection of EventKind",
            id="events by name",
        ),
    ],
)  # fmt: skip
def test_the_problems_of_invalid_plugins(made, problem) -> None:
    assert problem_of(made).startswith(problem)
