"""Expressions about requests, as upstream 1.36.4 compiled or refused them."""

from __future__ import annotations

import pytest

from fairlead.apiserver.validation.admissionregistration.expression import (
    BOOLEAN,
    CHARACTERS_MAX,
    OBJECT,
    PATCH,
    TEXT,
    TEXT_OR_NULL,
    ExpressionVariables,
    check_expression,
    check_variable,
)


def said(expression, wanted=BOOLEAN, known=None):
    """Return the messages about an expression, without the expression and its position."""
    known = known or ExpressionVariables(has_params=True, variables={})
    for name, text in (("sum", "object.x + 1"), ("list", "[1, 2]"), ("text", "'a'")):
        list(check_variable("v", name, text, known))
    found = [cause.message for cause in check_expression("f", expression, wanted, known)]
    return [one.partition('": ')[2].partition("\n")[0] for one in found]


def compiled(why):
    return [f"compilation failed: ERROR: <input>:{why}"]


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        ("request.userInfo.groups.exists(g, g == 'x') && request.dryRun", BOOLEAN),
        ("request.namespace == 'a' && request.options.x == 1", BOOLEAN),
        ("namespaceObject.metadata.labels['x'] == 'y' && params.a.b == 1", BOOLEAN),
        ("authorizer.group('').resource('pods').check('get').allowed()", BOOLEAN),
        ("authorizer.requestResource.check('get').reason() == ''", BOOLEAN),
        ("variables.list.exists(x, x == 1) && variables.sum == 2", BOOLEAN),
        ("'a' + variables.text", TEXT),
        ("null", TEXT_OR_NULL),
    ],
)
def test_valid_expressions_compile(expression, wanted):
    assert said(expression, wanted) == []


@pytest.mark.parametrize(
    ("expression", "wanted", "why"),
    [
        ("request.foo == 1", BOOLEAN, compiled("1:8: undefined field 'foo'")),
        ("namespaceObject.metadata.uid == 'a'", BOOLEAN, compiled("1:25: undefined field 'uid'")),
        ("variables.zz", BOOLEAN, compiled("1:10: undefined field 'zz'")),
        (
            "variables.text > 1",
            BOOLEAN,
            compiled("1:16: found no matching overload for '_>_' applied to '(string, int)'"),
        ),
        (
            "authorizer.path('/x').group('x')",
            BOOLEAN,
            compiled(
                "1:28: found no matching overload for 'group' applied to "
                "'kubernetes.authorization.PathCheck.(string)'"
            ),
        ),
        (
            "cel.bind(x, 1, x == 1)",
            BOOLEAN,
            compiled("1:1: undeclared reference to 'cel' (in container '')"),
        ),
        ("object.x", BOOLEAN, ["must evaluate to bool but got dyn"]),
        ("duration('1h')", BOOLEAN, ["must evaluate to bool but got google.protobuf.Duration"]),
        ("[1]", TEXT, ["must evaluate to string but got list(int)"]),
        ("1", TEXT_OR_NULL, ["must evaluate to one of [string null_type] but got int"]),
    ],
)
def test_invalid_expressions_are_refused(expression, wanted, why):
    assert said(expression, wanted) == why


@pytest.mark.parametrize(
    ("expression", "wanted", "why"),
    [
        ("Object{spec: Object.spec{replicas: 3, ?a: object.?b}}", OBJECT, []),
        ("has(object.x) ? Object{} : Object{spec: Object.spec{a: 1}}", OBJECT, []),
        ('[JSONPatch{op: "add", path: "/" + jsonpatch.escapeKey("a/b"), value: 1}]', PATCH, []),
        ('object.c.map(c, JSONPatch{op: "add", path: "/x", value: c.name})', PATCH, []),
        ("object", OBJECT, ["must evaluate to Object but got dyn"]),
        ("Object.spec{replicas: 3}", OBJECT, ["must evaluate to Object but got Object.spec"]),
        ('JSONPatch{op: "add"}', PATCH, ["must evaluate to list(JSONPatch) but got JSONPatch"]),
        (
            "Foo{a: 1}",
            OBJECT,
            compiled("1:4: undeclared reference to 'Foo' (in container '')"),
        ),
        (
            '[JSONPatch{op: 1, path: "/a"}]',
            PATCH,
            compiled("1:14: expected type of field 'op' is 'string' but provided type is 'int'"),
        ),
    ],
)
def test_mutation_expressions_have_their_result_types(expression, wanted, why):
    found = said(expression, wanted, ExpressionVariables(variables={}).of_mutations())
    assert found == why


def test_params_and_authorizer_are_declared_only_if_available():
    undeclared = compiled("1:1: undeclared reference to 'params' (in container '')")
    assert said("params.a == 1", known=ExpressionVariables()) == undeclared
    (why,) = said(
        "authorizer.path('/').check('get').allowed()", known=ExpressionVariables(has_rights=False)
    )
    assert "undeclared reference to 'authorizer'" in why


def test_the_total_length_of_the_expressions_of_an_object_is_limited():
    known = ExpressionVariables(left=[10_000])
    long = f"object.x == '{'a' * 400}'"
    assert said(long, known=known) == []
    assert known.left[0] < 10_000
    for _ in range(20):
        found = said(long, known=known)
    assert found == [
        f"compilation failed: all expressions may have {CHARACTERS_MAX} characters altogether"
    ]
