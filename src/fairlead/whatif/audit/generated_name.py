"""Finds the names of objects that were created with `generateName`, in a log of level Request.

The request that creates such an object contains only a prefix of its name. The full name comes from
a later write: the first write to an object that is not known yet and whose name begins with the
prefix. If a DaemonSet created a pod for a node, the name is taken only from a binding to this node.
If no later write matches, the object gets an unused name: the prefix and a number.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from itertools import count
from typing import Any

from msgspec.structs import replace

from fairlead.whatif.audit.audit_log import AuditedWrite
from fairlead.whatif.audit.recorded_cluster import binding_target, wanted_node

Identity = tuple[str, str, str]  # kind, namespace and name


def with_generated_names(
    writes: Sequence[AuditedWrite], known: Collection[Identity]
) -> list[AuditedWrite]:
    """Return `writes` with a name for every creation.

    `known` identifies the objects that existed before the first write.
    """
    found = list(writes)
    seen = set(known)
    unnamed: list[int] = []
    for number, write in enumerate(found):
        identity = (write.kind.kind, write.namespace, write.name)
        if write.verb == "create" and not write.subresource:
            if _prefix(write):
                unnamed.append(number)
                continue
        elif write.name and identity not in seen:
            match = next((one for one in unnamed if _is_named(found[one], write)), None)
            if match is not None:
                unnamed.remove(match)
                found[match] = _named(found[match], write.name)
        seen.add(identity)
    for number, name in zip(unnamed, _free_names(found, unnamed, seen), strict=True):
        found[number] = _named(found[number], name)
    return found


def _prefix(write: AuditedWrite) -> str:
    """Return the `generateName` of a creation whose name is not recorded; "" for other writes."""
    match write.request:
        case {"metadata": {"generateName": str(prefix), **rest}} if not rest.get("name"):
            return "" if write.name or write.response is not None else prefix
    return ""


def _is_named(creation: AuditedWrite, write: AuditedWrite) -> bool:
    """Return whether `write` may concern the object that `creation` created."""
    is_alike = creation.kind is write.kind and creation.namespace == write.namespace
    wanted = wanted_node(creation.request)
    return (
        is_alike
        and write.name.startswith(_prefix(creation))
        and wanted in ("", binding_target(write))
    )


def _named(creation: AuditedWrite, name: str) -> AuditedWrite:
    request: Any = creation.request
    meta = {**request["metadata"], "name": name}
    return replace(creation, name=name, request={**request, "metadata": meta})


def _free_names(
    writes: Sequence[AuditedWrite], unnamed: Sequence[int], seen: set[Identity]
) -> Iterator[str]:
    """Yield a new name for each creation in `writes` whose index is in `unnamed`.

    The new names are not among the objects in `seen`.
    """
    numbers: dict[str, Iterator[int]] = defaultdict(partial(count, 1))
    for one in unnamed:
        creation, prefix = writes[one], _prefix(writes[one])
        names = (f"{prefix}{number}" for number in numbers[prefix])
        yield next(
            name for name in names if (creation.kind.kind, creation.namespace, name) not in seen
        )
