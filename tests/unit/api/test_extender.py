"""Messages of the extender protocol, encoded and decoded as by Go."""

from __future__ import annotations

import json
import re

import pytest

from fairlead.api.extender import (
    ExtenderBindingArgs,
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
    decode,
    encode,
)

MESSAGES = [
    (
        FilterOrPrioritize({"a": 1}, NodeList(({"b": 2},))),
        {"Pod": {"a": 1}, "Nodes": {"items": [{"b": 2}]}, "NodeNames": None},
    ),
    (
        FilterResult(None, ("n",), {"x": "y"}, {"z": "w"}, "e"),
        {"Nodes": None, "NodeNames": ["n"], "FailedNodes": {"x": "y"},
         "FailedAndUnresolvableNodes": {"z": "w"}, "Error": "e"},
    ),
    (HostPriority("n", 7), {"Host": "n", "Score": 7}),
    (
        ExtenderPreemptionArgs({}, {"n": Victims(({"a": 1},), 2)}),
        {"Pod": {}, "NodeNameToVictims": {"n": {"Pods": [{"a": 1}], "NumPDBViolations": 2}},
         "NodeNameToMetaVictims": None},
    ),
    (
        PreemptResult({"n": MetaVictims((MetaPod("u"),), 1)}),
        {"NodeNameToMetaVictims": {"n": {"Pods": [{"UID": "u"}], "NumPDBViolations": 1}}},
    ),
    (
        ExtenderBindingArgs("p", "ns", "u", "n"),
        {"PodName": "p", "PodNamespace": "ns", "PodUID": "u", "Node": "n"},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("message", "value"), MESSAGES)
def test_messages_have_the_field_names_of_go(message, value):
    """upstream: kube-scheduler/extender/v1/types.go."""
    assert json.loads(encode(message)) == value
    assert decode(encode(message), type(message)) == message


def test_field_names_are_case_insensitive_and_unknown_fields_are_ignored():
    body = b'{"nodenames": ["n"], "FAILEDNODES": {"Pod": "kept"}, "more": {"x": [1]}}'
    assert decode(body, FilterResult) == FilterResult(None, ("n",), {"Pod": "kept"})


def test_a_null_is_decoded_as_an_absent_field():
    body = b'{"Nodes": null, "FailedNodes": null, "Error": null, "NodeNames": [null]}'
    assert decode(body, FilterResult) == FilterResult(node_names=("",))
    assert decode(b"null", FilterResult) == FilterResult()
    assert decode(b"null", list[HostPriority]) == []
    victims = b'{"nodeNameToMetaVictims": {"n": null}}'
    assert decode(victims, PreemptResult) == PreemptResult({"n": MetaVictims()})


def test_invalid_utf_8_is_replaced():
    assert decode(b'{"Error": "a\xffb"}', FilterResult).error == "a\ufffdb"


def test_kubernetes_objects_in_messages_are_not_changed():
    """Kubernetes objects use their own field names."""
    pod = {"Metadata": {"Name": None}, "pod": [None]}
    body = json.dumps({"pod": pod}).encode()
    assert decode(body, FilterOrPrioritize).pod == pod


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"", "EOF"),
        (b"  \n", "EOF"),
        (b"<html>", "invalid character '<' looking for beginning of value"),
        (b'{"Error": "', "unexpected EOF"),
        (b'{"Error": "x"} and more', "json: "),
        (b'{"Error": 1}', "json: Expected str, got int - at $.Error"),
        (b'{"NodeNames": "n"}', "json: Expected array"),
        (b"[]", "json: Expected object, got array"),
        (b"[" * 100_000, "nested too deeply"),
    ],
)
def test_an_invalid_message_is_refused_with_one_line(body, problem):
    with pytest.raises(ProtocolError, match=re.escape(problem)) as refusal:
        decode(body, FilterResult)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("score", ["9223372036854775808", "1.5", '"1"', "1e400"])
def test_scores_are_whole_numbers_of_64_bits(score):
    with pytest.raises(ProtocolError):
        decode(f'[{{"Host": "n", "Score": {score}}}]'.encode(), list[HostPriority])
