"""The body of an HTTP call to an extender.

A command contains only the names of pods and nodes. The world stores the objects as JSON and
inserts them into the body. An extender with `nodeCacheCapable` receives names instead of Node
objects. Such an extender also receives uids instead of the victims' Pod objects. If an object was
deleted after the command was issued, the body contains only its name, namespace and uid.
"""

from __future__ import annotations

from collections.abc import Callable

from fairlead.api.extender import (
    ExtenderBindingArgs,
    ExtenderPreemptionArgs,
    FilterOrPrioritize,
    MetaPod,
    MetaVictims,
    NodeList,
    Victims,
    encode,
)
from fairlead.api.json import Json
from fairlead.apiserver.kind import find_kind
from fairlead.apiserver.registry.store import Store
from fairlead.engine.core.command import CallExtender, ExtenderVerb, NodeVictims, ObjectRef

Find = Callable[[ObjectRef], Json | None]


def held_by(store: Store, ref: ObjectRef) -> Json | None:
    """Return the stored object that `ref` refers to.

    Returns None if the object was deleted, or if its name now belongs to another object.
    """
    kind = find_kind(ref.kind)
    found: Json | None = None if kind is None else store.find(kind, ref.namespace, ref.name)
    is_same = found is not None and ref.uid in ("", found["metadata"].get("uid"))
    return found if is_same else None


def request_body(call: CallExtender, find: Find) -> bytes:
    """Return the JSON body of the HTTP request for `call`.

    `find` returns an object as a JSON value, or None if the object was deleted.
    """
    match call.verb:
        case ExtenderVerb.FILTER | ExtenderVerb.PRIORITIZE:
            return encode(_about_nodes(call, find))
        case ExtenderVerb.PREEMPT:
            return encode(_about_victims(call, find))
        case ExtenderVerb.BIND:
            pod = call.pod
            return encode(ExtenderBindingArgs(pod.name, pod.namespace, pod.uid, call.nodes[0]))


def _about_nodes(call: CallExtender, find: Find) -> FilterOrPrioritize:
    pod = _whole(call.pod, find)
    if call.by_name:
        return FilterOrPrioritize(pod, node_names=call.nodes)
    refs = (ObjectRef("Node", "", name) for name in call.nodes)
    return FilterOrPrioritize(pod, NodeList(tuple(_whole(ref, find) for ref in refs)))


def _about_victims(call: CallExtender, find: Find) -> ExtenderPreemptionArgs:
    pod = _whole(call.pod, find)
    if call.by_name:
        return ExtenderPreemptionArgs(
            pod, node_name_to_meta_victims={v.node: _named(v) for v in call.victims}
        )
    by_node = {
        victims.node: Victims(
            tuple(_whole(ref, find) for ref in victims.pods), victims.pdb_violations
        )
        for victims in call.victims
    }
    return ExtenderPreemptionArgs(pod, node_name_to_victims=by_node)


def _named(victims: NodeVictims) -> MetaVictims:
    return MetaVictims(tuple(MetaPod(ref.uid) for ref in victims.pods), victims.pdb_violations)


def _whole(ref: ObjectRef, find: Find) -> Json:
    found = find(ref)
    if found is not None:
        return found
    identity = {"name": ref.name, "namespace": ref.namespace, "uid": ref.uid}
    return {"metadata": {key: value for key, value in identity.items() if value}}
