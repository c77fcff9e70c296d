"""Checks that the namespaces of applied objects exist.

Simulated admission accepts objects in missing namespaces, because many dumps have no Namespaces. If
a dump has Namespaces, an applied object in a missing namespace is refused before the run.

upstream: apiserver/pkg/admission/plugin/namespace/lifecycle/admission.go: Admit
"""

from __future__ import annotations

from collections.abc import Sequence

from fairlead.apiserver.admission.plugins.namespace_lifecycle import SYSTEM_NAMESPACES
from fairlead.apiserver.kind import NAMESPACE
from fairlead.whatif.input.error import known_names
from fairlead.whatif.snapshot.inventory import Inventory
from fairlead.whatif.snapshot.manifest import Manifest


def refuse_absent_namespaces(new: Sequence[Manifest], inventory: Inventory) -> None:
    """Raise InputError for an object of `new` in a namespace that does not exist.

    A namespace exists if its Namespace is in `new` or `inventory`, or if it is in
    SYSTEM_NAMESPACES. A namespace also exists if it contains an object of `inventory`. If
    `inventory` has no Namespace, nothing is checked. `inventory` must not contain `new` yet.
    """
    if not (known := [one.ref.name for one in inventory.of_kind(NAMESPACE)]):
        return
    existing = {*known, *SYSTEM_NAMESPACES, *(one.ref.name for one in new if one.kind is NAMESPACE)}
    for manifest in new:
        name = manifest.ref.namespace
        if not name or name in existing or inventory.in_namespace(name):
            continue
        problem = f'namespaces "{name}" not found; {known_names(name, known)}'
        raise manifest.refuse(problem, field="metadata.namespace")
