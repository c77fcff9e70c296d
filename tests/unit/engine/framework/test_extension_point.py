"""The table of plugin methods is complete, so that every method is checked and measured."""

from __future__ import annotations

import inspect

import pytest

from fairlead.engine.framework import cluster_event, interface
from fairlead.engine.framework.extension_point import ATTRIBUTES, METHOD_NAMES, METHODS
from fairlead.engine.framework.plugin_order import POINTS
from fairlead.engine.framework.preemption import policy
from fairlead.engine.framework.user_plugin.answer_check import CHECKS

# Protocols that the runtime looks for on a plugin.
PROTOCOLS = [
    protocol
    for module in (interface, policy, cluster_event)
    for protocol in vars(module).values()
    if inspect.isclass(protocol) and getattr(protocol, "_is_runtime_protocol", False)
    if protocol.__module__ == module.__name__
]


def own(protocol, kind):
    return [n for n, member in vars(protocol).items() if isinstance(member, kind) and n[0] != "_"]


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda protocol: protocol.__name__)
def test_every_method_and_attribute_of_a_protocol_is_known(protocol) -> None:
    functions = own(protocol, type(lambda: None))
    assert set(functions) <= set(METHOD_NAMES)
    assert set(own(protocol, property)) <= {"name", *ATTRIBUTES}


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_every_method_is_in_its_protocol(method) -> None:
    assert callable(getattr(method.protocol, method.name))


def test_every_result_is_checked() -> None:
    assert sorted(CHECKS) == sorted(METHOD_NAMES)


def test_every_point_of_a_profile_has_methods() -> None:
    assert set(POINTS) <= {method.point for method in METHODS}
