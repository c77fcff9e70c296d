"""Whose the number of replicas is, told of an object and of its Scale.

A Scale shows one field of an object; whoever owns the field owns spec.replicas of the Scale, and
what is written through the Scale is theirs in the object. Updaters are known by the version in
which they wrote, appliers are not: an updater that still owns the number once somebody applied
through the Scale is noted anew.

upstream: apimachinery/pkg/util/managedfields/scalehandler.go
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from fairlead.apiserver.patch.managedfields.field_set import (
    FieldSet,
    difference,
    intersection,
    of_path,
)
from fairlead.apiserver.patch.managedfields.managed_fields import APPLY, Entry, Managed, Writer

_SCALE: Final = "autoscaling/v1"
_IN_SCALE: Final = of_path("spec", "replicas")


def owners_in_scale(managed: Managed, replicas: FieldSet) -> Managed:
    """The owners of a Scale, of those of its object; `replicas` is the field of the object."""
    return {
        replace(writer, api_version=_SCALE): Entry(_IN_SCALE, entry.time)
        for writer, entry in managed.items()
        if intersection(entry.fields, replicas)
    }


def owners_in_object(
    managed: Managed, scaled: Managed, api_version: str, replicas: FieldSet
) -> Managed:
    """The owners of an object that were `managed`, once `scaled` are those of its Scale.

    Who is new is noted in `api_version`, the one in which the Scale was asked for.
    """
    left = {_identity(writer): writer for writer in scaled}
    made: Managed = {}
    for writer, entry in managed.items():
        fields = entry.fields
        if intersection(fields, replicas) and left.pop(_identity(writer), None) is None:
            fields = difference(fields, replicas)  # somebody took it
        if fields:
            made[writer] = replace(entry, fields=fields)
    for writer in left.values():
        if intersection(scaled[writer].fields, _IN_SCALE):
            made[replace(writer, api_version=api_version)] = Entry(replicas)
    return made


def _identity(writer: Writer) -> Writer:
    """By what a writer is known."""
    return replace(writer, api_version="") if writer.operation == APPLY else writer
