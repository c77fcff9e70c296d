"""Object literals of mutations evaluate to maps."""

from __future__ import annotations

import pytest

from fairlead.apiserver.admission.cel.environment import ExpressionContext


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("Object{spec: Object.spec{replicas: 3}}", {"spec": {"replicas": 3}}),
        ("Object { }", {}),
        (
            "Object{metadata: Object.metadata{labels: {'a': 'Object{b: c}', \"x, y: z\": 'd'}}}",
            {"metadata": {"labels": {"a": "Object{b: c}", "x, y: z": "d"}}},
        ),
        (
            "Object{spec: Object.spec{items: [1, 2].map(i, Object.spec.items{n: i, m: [i, i]})}}",
            {"spec": {"items": [{"n": 1, "m": [1, 1]}, {"n": 2, "m": [2, 2]}]}},
        ),
        (
            "Object{a: true ? 'yes' : 'no', b: object.x == 'Object' ? 1 : 2}",
            {"a": "yes", "b": 2},
        ),
        (
            "Object{__namespace__: 'n', a__dash__b: 1, c__underscores__d: 2}",
            {"namespace": "n", "a-b": 1, "c__d": 2},
        ),
        ("Object{?a: optional.of(1), ?b: optional.none()}", {"a": 1}),
        (
            "[JSONPatch{op: 'add', path: '/a/' + jsonpatch.escapeKey('x/y~z'), value: object.x}]",
            [{"op": "add", "path": "/a/x~1y~0z", "value": "v"}],
        ),
        ("object.x", "v"),
    ],
)
def test_an_object_literal_evaluates_to_a_map(expression, value):
    found = ExpressionContext({"object": {"x": "v"}}).evaluate(expression)
    assert (found.problem, found.value) == ("", value)


@pytest.mark.parametrize("begun", ['"""', "'''", '"', "'", 'r"""'])
def test_unterminated_strings_are_refused_quickly(begun):
    """Many backslashes do not cause backtracking."""
    found = ExpressionContext({}).evaluate(begun + "\\" * 5_001)
    assert "Syntax error: token recognition error" in found.problem


def test_long_object_literals_are_evaluated_quickly():
    expression = "Object{" + ",".join(f"a{number}: {number}" for number in range(5_000)) + "}"
    assert len(ExpressionContext({}).evaluate(expression).value) == 5_000
