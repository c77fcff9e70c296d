"""Custom resources: generated definitions, objects of these types, and CEL expressions."""

from __future__ import annotations

import json
from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st
from tests.fuzz.strategies import json_values, scalars, texts
from tests.fuzz.test_mutations import NOTHING, mutated
from tests.fuzz.test_requests import FORMS, MANAGER, PATCHES, check
from tests.unit.apiserver.endpoints.conftest import Api

from fairlead.apiserver.apiextensions.cel.rule import RuleError, compiled
from fairlead.apiserver.request import Request
from fairlead.cel.cost.runtime_cost import CostBudget, OutOfBudgetError

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
OBJECTS = "/apis/example.com/v1/namespaces/default/widgets"
TYPES = ("object", "array", "string", "integer", "number", "boolean", "", "x")
FORMATS = ("date-time", "date", "duration", "byte", "ipv4", "int32", "int64", "uuid", "email", "x")
NAMES = ("a", "b", "items", "metadata", "in", "x-y", "__a__", "é")

PIECES = (
    "self", "oldSelf", ".a", ".b", "[0]", "['a']", ".size()", "has(self.a)", " + ", " - ", " * ",
    " / ", " % ", " == ", " != ", " < ", " && ", " || ", "!", "(", ")", " ? ", " : ", "1", "0",
    "-1",
    "9223372036854775807", "1.5", "1u", "'a'", '"b"', "r'\\d'", "b'x'", "true", "null", "[", "]",
    "{", "}", ", ", ".all(x, ", ".exists(x, ", ".map(x, ", ".filter(x, ", "x", " in ", ".matches(",
    ".contains(", ".startsWith(", "duration(", "timestamp(", "quantity(", "url(", "ip(", "cidr(",
    "int(", "string(", "double(", "type(", "dyn(", "optional.of(", ".?a", ".orValue(", ".join(",
    ".split(", ".replace(", ".find(", ".isSorted()", ".sum()", ".min()", "cel.bind(y, ", "sets.",
    ".format(", "'%s %d'", ".lowerAscii()", ".reverse()", ".charAt(", "semver(", "\n", "//",
)  # fmt: skip


def expressions():
    """Strategy for expressions of meaningful pieces."""
    sane = st.sampled_from(
        ("self.a == self.b", "self.all(x, x > 0)", "size(self) < 10", "self > 0")
    )
    return st.lists(st.sampled_from(PIECES), max_size=8).map("".join) | sane | texts()


@given(expressions(), json_values())
def test_an_expression_is_evaluated_or_refused(expression, value):
    with suppress(RuleError, OutOfBudgetError):
        compiled(expression).evaluate({"self": value, "oldSelf": None}, CostBudget())


RULES = st.lists(
    st.fixed_dictionaries(
        {"rule": expressions()},
        optional={"message": texts(), "messageExpression": expressions(), "fieldPath": texts()},
    ),
    max_size=2,
)


@st.composite
def types(draw, depth=0):
    """Strategy for the schema of a value, similar to those in definitions."""
    made = {"type": draw(st.sampled_from(TYPES[:6] if draw(st.integers(0, 9)) else TYPES))}
    more = draw(
        st.fixed_dictionaries(
            {},
            optional={
                "nullable": st.booleans(),
                "format": st.sampled_from(FORMATS),
                "pattern": texts(),
                "enum": st.lists(scalars(), max_size=3),
                "default": json_values(4),
                "minimum": st.integers() | st.floats(allow_nan=False, allow_infinity=False),
                "maxLength": st.integers(-1, 10),
                "multipleOf": st.sampled_from((0, 0.1, 3, -1)),
                "required": st.lists(st.sampled_from(NAMES), max_size=2),
                "x-kubernetes-preserve-unknown-fields": st.booleans(),
                "x-kubernetes-int-or-string": st.booleans(),
                "x-kubernetes-embedded-resource": st.booleans(),
                "x-kubernetes-list-type": st.sampled_from(("map", "set", "atomic")),
                "x-kubernetes-list-map-keys": st.lists(st.sampled_from(NAMES), max_size=2),
                "x-kubernetes-validations": RULES,
            },
        )
    )
    for name in draw(st.lists(st.sampled_from(sorted(more)), max_size=2)) if more else ():
        made[name] = more[name]
    if depth < 3 and made["type"] == "object":
        names = draw(st.lists(st.sampled_from(NAMES), max_size=3, unique=True))
        made["properties"] = {name: draw(types(depth + 1)) for name in names}
    if depth < 3 and made["type"] == "array":
        made["items"] = draw(types(depth + 1))
    changed = draw(mutated(made)) if draw(st.integers(0, 19)) == 0 else made
    return made if changed is NOTHING else changed


def definition(schema, more):
    """Return the definition of widgets with this schema of the spec."""
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    whole = {"type": "object", "properties": {"spec": schema, "status": {"type": "object"}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": whole}}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names}
    return {
        "metadata": {"name": "widgets.example.com"},
        "spec": {**spec, "versions": [{**version, **more}]},
    }


PATHS = st.sampled_from((".spec", ".spec.a", ".spec.b[0]", ".metadata.name", "x")) | texts()
COLUMNS = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from(NAMES), "type": st.sampled_from(TYPES), "jsonPath": PATHS}
    ),
    max_size=2,
)
PARTS = st.fixed_dictionaries(
    {},
    optional={
        "status": st.just({}),
        "scale": st.fixed_dictionaries(
            {"specReplicasPath": PATHS, "statusReplicasPath": PATHS},
            optional={"labelSelectorPath": PATHS},
        ),
    },
)
MORE = st.fixed_dictionaries(
    {},
    optional={
        "additionalPrinterColumns": COLUMNS,
        "subresources": PARTS,
        "selectableFields": st.lists(st.fixed_dictionaries({"jsonPath": PATHS}), max_size=2),
    },
)


@given(
    types(),
    MORE,
    st.lists(json_values(), min_size=1, max_size=3),
    st.sampled_from(PATCHES),
    st.sampled_from(("", "/status", "/scale")),
)
def test_objects_of_a_generated_type_are_accepted_or_refused(schema, more, specs, form, part):
    """The definition is accepted or refused, as are objects; accepted objects can be printed."""
    api = Api()
    check(api.post(DEFINITIONS, json.dumps(definition(schema, more))).response)
    for spec in specs:
        obj = {"apiVersion": "example.com/v1", "kind": "Widget", "spec": spec}
        body = json.dumps({**obj, "metadata": {"name": "a"}})
        check(api.post(OBJECTS, body).response)
        query, headers = MANAGER if "apply" in form else (), {"content-type": f"application/{form}"}
        operations = json.dumps([{"op": "add", "path": "/spec", "value": spec}])
        raw = (operations if form == "json-patch+json" else body).encode()
        path = f"{OBJECTS}/a{part}"
        check(api.server.handle(Request("PATCH", path, query, headers, raw), api.now))
        check(api.server.handle(Request("GET", path), api.now))
    for accept in FORMS:
        check(api.server.handle(Request("GET", OBJECTS, (), {"accept": accept}), api.now))
    check(api.get("/openapi/v3/apis/example.com/v1").response)
    check(api.delete(DEFINITIONS).response)
