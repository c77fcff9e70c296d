"""Answers extender requests with Fairlead's plugins: JSON in, JSON out.

A request contains either whole nodes or names of nodes, depending on the caller's
`nodeCacheCapable`. A whole node replaces the stored version of that node. The response has the same
form as the request.

upstream: pkg/scheduler/testing/framework/fake_extender.go; extender.go: Filter, ProcessPreemption
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from fairlead.api.codec import DecodeError, decode_as
from fairlead.api.extender import (
    PRIORITY_MAX,
    ExtenderPreemptionArgs,
    FilterOrPrioritize,
    FilterResult,
    HostPriority,
    MetaPod,
    MetaVictims,
    NodeList,
    PreemptResult,
    ProtocolError,
    Victims,
    encode,
)
from fairlead.api.extender import decode as decode_message
from fairlead.api.json import Json
from fairlead.api.objects import Node, Pod
from fairlead.apiserver.error import ApiError
from fairlead.apiserver.registry.dump.snapshot_load import as_stored, with_uid
from fairlead.apiserver.registry.simulation import SIMULATION
from fairlead.engine.core.status import Code, Status
from fairlead.engine.extender_backend import ExtenderBackend, ExtenderBackendError
from fairlead.worlds.seeded_ids import SeededIds

VerbFunction = Callable[[bytes], bytes]
View = TypeVar("View", Pod, Node)


class ExtenderVerbs:
    """The verbs of an extender; `by_verb` maps the name of each verb to its function.

    A function takes the body of a request, and returns the body of the response. The function
    raises ProtocolError for a malformed request, and ExtenderBackendError if a plugin fails and the
    protocol has no field for the failure.
    """

    def __init__(self, backend: ExtenderBackend) -> None:
        self._backend = backend
        self._versions: dict[str, object] = {}
        self._ids = SeededIds(0)
        self.by_verb: Mapping[str, VerbFunction] = {
            "filter": self.filter,
            "prioritize": self.prioritize,
            "preempt": self.preempt,
        }

    def filter(self, body: bytes) -> bytes:
        """Handle the verb `filter`: return the nodes that fit (ExtenderFilterResult)."""
        question = decode_message(body, FilterOrPrioritize)
        pod, names = self._pod(question.pod), self._names(question)
        try:
            verdicts = self._backend.verdicts(pod, names)
        except ExtenderBackendError as cause:
            return encode(FilterResult(error=str(cause)))
        failed = {name: why for name, why in verdicts.items() if why is not None}
        left = tuple(name for name in names if name not in failed)
        by_name = question.node_names is not None
        return encode(
            FilterResult(
                nodes=None if by_name else _only(left, question.nodes),
                node_names=left if by_name else None,
                failed_nodes=_messages(failed, for_good=False),
                failed_and_unresolvable_nodes=_messages(failed, for_good=True),
            )
        )

    def prioritize(self, body: bytes) -> bytes:
        """Handle the verb `prioritize`: return the score of each node (HostPriorityList)."""
        question = decode_message(body, FilterOrPrioritize)
        pod, names = self._pod(question.pod), self._names(question)
        scores = self._backend.scores(pod, names, PRIORITY_MAX)
        return encode([HostPriority(name, score) for name, score in scores.items()])

    def preempt(self, body: bytes) -> bytes:
        """Handle the verb `preempt`: return the candidate nodes on which preemption makes room.

        The result contains the victims that the request names for these nodes.
        """
        question = decode_message(body, ExtenderPreemptionArgs)
        pod, candidates = self._pod(question.pod), _candidates(question)
        uids = {
            name: [victim.uid for victim in victims.pods] for name, victims in candidates.items()
        }
        left = self._backend.with_room(pod, uids)
        return encode(PreemptResult({name: candidates[name] for name in left}))

    def _pod(self, value: Json | None) -> Pod:
        if value is None:
            raise ProtocolError("Pod: is required")
        return self._object(Pod, value)

    def _names(self, question: FilterOrPrioritize) -> list[str]:
        """Return the names of the request's nodes, without duplicates.

        If the request contains Node objects, also pass these to the backend.
        """
        whole = () if question.nodes is None else question.nodes.items
        names = [self._know(value) for value in whole]
        if question.node_names is not None:
            names = list(question.node_names)
        elif question.nodes is None:
            raise ProtocolError("one of Nodes and NodeNames is required")
        return list(dict.fromkeys(names))

    def _know(self, value: Json) -> str:
        """Return the name of the Node `value`.

        Passes the Node to the backend, unless the backend already has this version of the Node.
        """
        name = _name(value)
        version = _version(value)
        if self._versions.get(name) != version:
            self._backend.put_node(self._object(Node, value))
            self._versions[name] = version
        return name

    def _object(self, view: type[View], value: Json) -> View:
        """Decode `value` as `view`, adding the apiVersion and kind that Go omits.

        Raises ProtocolError.
        """
        whole = {**value, "apiVersion": "v1", "kind": view.__name__}
        try:
            kind, stored = as_stored(whole, 0, SIMULATION)
            return decode_as(view, with_uid(kind, stored, self._ids))
        except (ApiError, DecodeError) as cause:
            raise ProtocolError(str(cause)) from None


def _name(value: Json) -> str:
    metadata = value.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if not isinstance(name, str):
        raise ProtocolError("Nodes.items: metadata.name: must be a string")
    return name


def _version(value: Json) -> object:
    """Return (uid, resourceVersion) of a node, or the whole node if it does not contain both."""
    metadata = value["metadata"]
    uid, version = metadata.get("uid"), metadata.get("resourceVersion")
    return (uid, version) if uid and version else value


def _only(names: Sequence[str], nodes: NodeList | None) -> NodeList:
    whole = {} if nodes is None else {_name(value): value for value in nodes.items}
    return NodeList(tuple(whole[name] for name in names))


def _messages(failed: Mapping[str, Status], *, for_good: bool) -> dict[str, str]:
    """Return the reason why each node does not fit, by node name.

    If `for_good` is True, the result contains only nodes on which preemption cannot help.
    Otherwise, it contains only nodes on which preemption may help.
    """
    unresolvable = Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    return {
        name: why.message for name, why in failed.items() if (why.code is unresolvable) is for_good
    }


def _candidates(question: ExtenderPreemptionArgs) -> Mapping[str, MetaVictims]:
    """Return the proposed victims by node name.

    Raises ProtocolError if the request has neither NodeNameToMetaVictims nor NodeNameToVictims.
    """
    if question.node_name_to_meta_victims is not None:
        return question.node_name_to_meta_victims
    if question.node_name_to_victims is None:
        raise ProtocolError("one of NodeNameToVictims and NodeNameToMetaVictims is required")
    return {name: _named(victims) for name, victims in question.node_name_to_victims.items()}


def _named(victims: Victims) -> MetaVictims:
    return MetaVictims(tuple(map(_uid, victims.pods)), victims.num_pdb_violations)


def _uid(pod: Json) -> MetaPod:
    metadata = pod.get("metadata")
    uid = metadata.get("uid") if isinstance(metadata, dict) else None
    if not isinstance(uid, str):
        raise ProtocolError("NodeNameToVictims: metadata.uid: must be a string")
    return MetaPod(uid)
