"""Finds the deleted namespaces that stay Terminating, because pods in them never stop."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from fairlead.api.text.count import counted
from fairlead.apiserver.kind import NAMESPACE, POD
from fairlead.apiserver.registry.store import Store
from fairlead.engine.core.command import DeleteObject
from fairlead.whatif.change.step import ScriptedStep


def held_namespaces(
    steps: Iterable[ScriptedStep], store: Store, is_serving: Callable[[str], bool]
) -> Iterator[str]:
    """Yield a note for each namespace that `steps` delete and that `store` has at the end.

    Only namespaces with pods on nodes without a working kubelet are noted.
    """
    # upstream: namespaced_resources_deleter.go:deleteAllContent deletes the pods first
    for command in (one for step in steps for one in step.commands):
        if not isinstance(command, DeleteObject) or command.target.kind != NAMESPACE.kind:
            continue
        name = command.target.name
        if store.find(NAMESPACE, "", name) is None:
            continue
        nodes = [pod["spec"].get("nodeName", "") for pod in store.list(POD, name)]
        held = [node for node in nodes if not is_serving(node)]
        if held:
            pods = counted(len(held), "pod")
            first, *others = sorted(set(held))
            where = f"{first} and {len(others):,} more" if others else first
            yield (
                f"Namespace {name} stays Terminating and keeps its other objects, because {pods} "
                f"on {where} cannot stop: the kubelet does not answer. Delete such a node if its "
                "machine is gone."
            )
