"""Sets of fields that were written when a type was another one, as they mean it today.

What has become a single field is owned as one, whatever of it was owned before. A type nobody
described stays what its values show.

upstream: sigs.k8s.io/structured-merge-diff/typed/reconcile_schema.go
"""

from __future__ import annotations

from fairlead.apiserver.patch.managedfields.field_set import LEAF, SELF, FieldSet
from fairlead.apiserver.patch.managedfields.path_element import is_composite
from fairlead.apiserver.schema.model import ANYTHING, Schema, Topology, Type


def reconciled(schema: Schema, fields: FieldSet) -> FieldSet:
    """`fields` of a value of that type; the same ones where there is nothing to reconcile."""
    made = fields
    for step, node in fields.items():
        inner = _inner(schema, step)
        if inner is None or node.keys() <= {SELF} or not is_composite(inner):
            continue
        below = LEAF if inner.topology is Topology.ATOMIC else reconciled(inner, node)
        if below is not node:
            made = dict(fields) if made is fields else made
            made[step] = below
    return made


def _inner(schema: Schema, step: str) -> Schema | None:
    """The type of what `step` leads to; None where it does not say."""
    if step == SELF or (schema.type is Type.ANY and not schema.fields):
        return None
    if schema.type is Type.LIST:
        return schema.items or ANYTHING
    known = schema.fields.get(step[2:]) if step[:2] == "f:" else None
    return known.schema if known else schema.items
