"""Checks that the namespace of each applied object exists, and that it is the one in --namespace.

Simulated admission accepts objects in missing namespaces, because many dumps have no Namespaces. If
a dump has Namespaces, an applied object in a missing namespace is refused before the run.

upstream: apiserver/pkg/admission/plugin/namespace/lifecycle/admission.go: Admit
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fairlead.apiserver.admission.plugins.namespace_lifecycle import SYSTEM_NAMESPACES
from fairlead.apiserver.kind import NAMESPACE
from fairlead.whatif.input.error import known_names
from fairlead.whatif.snapshot.inventory import Inventory
from fairlead.whatif.snapshot.manifest import Manifest


def refuse_other_namespaces(written: Iterable[Manifest], namespace: str) -> None:
    """Raise InputError if an object of `written` is in another namespace than `namespace`.

    `namespace` is the value of --namespace; if it is "", nothing is checked.
    """
    # upstream: cli-runtime/pkg/resource/visitor.go: RequireNamespace
    for manifest in written if namespace else ():
        if manifest.ref.namespace not in {"", namespace}:
            raise manifest.refuse(
                f"{manifest.ref.namespace} is not the namespace of --namespace ({namespace}); "
                "kubectl apply refuses this",
                field="metadata.namespace",
            )


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
