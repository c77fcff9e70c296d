"""Warnings about the pods that a workload would create.

upstream: WarningsOnCreate and WarningsOnUpdate of pkg/registry/{apps,batch,core}/*/strategy.go
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from fairlead.api.json import Json
from fairlead.apiserver.registry.warning.pod import template_warnings
from fairlead.apiserver.validation.meta.format import dns_label_problems

Warnings = Iterator[str]

IN_HOSTNAME: Final = "this is used in the Pod's hostname"
IN_POD_NAMES: Final = "this is used in Pod names and hostnames"
_SURPRISING: Final = "which can result in surprising behavior; a DNS label is recommended"


def workload_warnings(template: str, old: Json | None, new: Json) -> Warnings:
    """Yield warnings about the pod template at the path `template` in `new`.

    An update that leaves the workload's spec unchanged causes no warnings.
    """
    if old is not None and old.get("spec") == new.get("spec"):
        return
    value: Any = new
    for name in template.split("."):
        value = (value or {}).get(name)
    if value:
        yield from template_warnings(f"{template}.", value)


def naming_workload_warnings(template: str, old: Json | None, new: Json) -> Warnings:
    """Yield warnings about the pod template, and about the name of a new workload.

    The name matters because the names of the workload's pods begin with it.
    """
    if old is None:
        yield from name_warnings(new["metadata"]["name"], IN_POD_NAMES)
    yield from workload_warnings(template, old, new)


def name_warnings(name: str, used: str) -> Warnings:
    """Yield a warning if `name` is not a DNS label.

    `used` is the part of the warning that says what the name is used for.
    """
    problems = dns_label_problems(name)
    if problems:
        yield f"metadata.name: {used}, {_SURPRISING}: [{' '.join(problems)}]"
