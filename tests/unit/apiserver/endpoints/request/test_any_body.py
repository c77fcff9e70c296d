"""Random bodies never cause an internal error, except where upstream has one too."""

from __future__ import annotations

import json
from typing import Any
from zlib import crc32

import pytest

from fairlead.apiserver.registry.served_kinds import ServedKinds
from fairlead.apiserver.schema.model import Type, schema_of
from fairlead.engine.core.tie_break import TieBreak

NONSENSE: tuple[Any, ...] = (
    "",
    "a",
    "A_b",
    "-1",
    "x y",
    "100%",
    "$patch",
    0,
    -1,
    2**40,
    1.5,
    True,
    None,
    [],
    {},
)
SENSE = {
    Type.STRING: ("", "a", "a/b", "Always", "None", "10.0.0.1"),
    Type.INT32: (0, 1, -1, 70000),
    Type.INT64: (0, 1, 2**40),
    Type.BOOLEAN: (False, True),
    Type.QUANTITY: ("1", "1Gi", "-1", 1),
    Type.INT_OR_STRING: (0, "10%", "http"),
    Type.TIME: ("2026-01-01T00:00:00Z",),
    Type.MICRO_TIME: ("2026-01-01T00:00:00.000000Z",),
    Type.BYTES: ("dg==",),
    Type.NUMBER: (1.5,),
    Type.ANY: ({"a": 1},),
}
PATCHES = ("strategic-merge-patch+json", "merge-patch+json", "apply-patch+yaml")
BROKEN = (
    "failed to create typed patch object",
    "failed to convert new object",
    "target.name",
    "expected a []interface {}",
    "map: map[",
)
KINDS = [kind for kind in ServedKinds().all_kinds() if "patch" in kind.verbs]


class Dice:
    """A seeded source of random values."""

    def __init__(self, seed):
        self.chance = TieBreak(seed)

    def falls(self, percent):
        return self.chance.pick(100) < percent

    def one_of(self, choices):
        return choices[self.chance.pick(len(choices))]

    def anything(self, schema, depth=0):
        """Return a random value, mostly of the type in `schema`, rarely of another."""
        if self.falls(4):
            return self.one_of(NONSENSE)
        match schema.type:
            case Type.OBJECT:
                share = 0 if depth > 7 else 50 if depth < 4 else 15
                return {
                    name: self.anything(field.schema, depth + 1)
                    for name, field in schema.fields.items()
                    if self.falls(share)
                }
            case Type.LIST:
                return [self.anything(schema.items, depth + 1) for _ in range(self.chance.pick(3))]
            case Type.MAP:
                keys = [key for key in ("a", "cpu", "a/b", "x y") if self.falls(25)]
                return {key: self.anything(schema.items, depth + 1) for key in keys}
        return self.one_of(SENSE[schema.type])

    def named(self, kind):
        """Return a random object of `kind` with the name a."""
        made = self.anything(schema_of(kind.api_version, kind.kind))
        made = made if isinstance(made, dict) else {}
        meta = made.get("metadata")
        meta = meta if isinstance(meta, dict) and self.falls(30) else {}
        for key in ("namespace", "uid", "resourceVersion"):
            meta.pop(key, None)
        named = {"apiVersion": kind.api_version, "kind": kind.kind}
        return {**made, **named, "metadata": {**meta, "name": "a"}}


def check(answer):
    """Check that the response is not an internal error, except where upstream has one."""
    assert answer.status < 500 or answer.message.startswith(BROKEN), answer.message


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.resource)
def test_random_bodies_of_every_kind_get_a_response(api, kind):
    dice = Dice(crc32(kind.resource.encode()))
    within = "namespaces/default/" if kind.namespaced else ""
    root = f"apis/{kind.group}" if kind.group else "api"
    path = f"/{root}/{kind.version}/{within}{kind.plural}"
    for _ in range(3):
        check(api.post(path, dice.named(kind)))
        for form in PATCHES:
            query = "?fieldManager=m&force=true" if "apply" in form else ""
            body = json.dumps(dice.named(kind))
            check(api.patch(f"{path}/a{query}", body, f"application/{form}"))
        check(api.put(f"{path}/a", dice.named(kind)))
