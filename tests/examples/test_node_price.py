"""NodePrice: cheaper nodes get higher scores."""

from __future__ import annotations

import pytest

from fairlead.testing import PluginScene, make_node, make_pod

LABEL = "example.com/price-per-hour"


@pytest.fixture
def priced(example):
    """Makes scenes of nodes `a`, `b`, … with the given prices; None means no price label."""

    def priced(*prices, **args):
        nodes = [
            make_node(name, labels={} if price is None else {LABEL: price})
            for name, price in zip("abcdef", prices, strict=False)
        ]
        plugin = example("node_price.py:NodePrice")
        return PluginScene(plugin, nodes=nodes, args={"NodePrice": args})

    return priced


def scores(scene):
    """Return the scores of NodePrice by node."""
    return scene.evaluate(make_pod("p")).scores["NodePrice"]


@pytest.mark.parametrize(
    ("prices", "expected"),
    [
        pytest.param(
            ("0.5", "1.0"),
            {"a": 50, "b": 0},
            id="a node at half the price has half the maximum score",
        ),
        pytest.param(("0", "2"), {"a": 100, "b": 0}, id="a free node has the highest score"),
        pytest.param((None, "0.1"), {"a": 0, "b": 90}, id="an unknown price counts as 1"),
        pytest.param(("cheap", "4"), {"a": 75, "b": 0}, id="an unreadable price counts as 1"),
        pytest.param(("0.0312", "0.0936"), {"a": 67, "b": 0}, id="small prices keep their ratio"),
    ],
)
def test_cheaper_nodes_have_higher_scores(priced, prices, expected) -> None:
    assert scores(priced(*prices)) == expected


def test_the_label_and_the_default_can_be_set(priced) -> None:
    assert scores(priced("5", "5", label="price", defaultPrice=3)) == {"a": 0, "b": 0}


def test_a_pod_is_placed_on_the_cheaper_node(priced) -> None:
    assert priced("3", "1", "2").schedule(make_pod("p")) == "b"
