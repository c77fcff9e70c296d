"""Validation of Ingresses, IngressClasses and NetworkPolicies."""

from __future__ import annotations

import pytest

from fairlead.apiserver.registry.strategies.networking import (
    check_ingress_class,
    check_network_policy,
    check_new_ingress,
)

SERVICE = {"name": "web", "port": {"number": 80}}


def texts(causes):
    return [str(cause) for cause in causes]


def ingress(annotations=None, **spec):
    return texts(check_new_ingress({"metadata": {"annotations": annotations}, "spec": spec}))


def routed(path="/", kind="Prefix", host="a.b", **backend):
    rule = {"path": path, "pathType": kind, "backend": backend or {"service": SERVICE}}
    return ingress(rules=[{"host": host, "http": {"paths": [rule]}}])


def policy(**spec):
    return texts(check_network_policy({"spec": {"podSelector": {}, **spec}}))


@pytest.mark.parametrize("host", ["a.b", "*.a.b", ""])
@pytest.mark.parametrize("path", ["/", "/a/b"])
def test_an_ordinary_ingress_is_accepted(host, path):
    assert routed(path, host=host) == []


def test_an_ingress_without_backend_and_rules_is_refused():
    assert ingress() == [
        "spec: Invalid value: null: either `defaultBackend` or `rules` must be specified"
    ]


def test_an_ingress_with_two_classes_is_refused():
    backend = {"service": SERVICE}
    other = {"kubernetes.io/ingress.class": "a"}
    assert ingress(other, defaultBackend=backend, ingressClassName="b") == [
        (
            'annotations.kubernetes.io/ingress.class: Invalid value: "a": '
            "must match `ingressClassName` when both are specified"
        )
    ]


@pytest.mark.parametrize(
    ("host", "why"),
    [
        ("10.0.0.1", "must be a DNS name, not an IP address"),
        ("a.*.b", "a wildcard DNS-1123 subdomain must start with '*.'"),
        ("A", "a lowercase RFC 1123 subdomain must consist of"),
    ],
)
def test_invalid_hosts_are_refused(host, why):
    (text,) = routed(host=host)
    assert text.startswith(f'spec.rules[0].host: Invalid value: "{host}": {why}')


@pytest.mark.parametrize(
    ("kind", "path", "why"),
    [
        ("Prefix", "a", ["must be an absolute path"]),
        ("Exact", "", ["must be an absolute path"]),
        ("Exact", "/a//b", ["must not contain '//'"]),
        ("Prefix", "/a/..", ["cannot end with '/..'"]),
        ("ImplementationSpecific", "", []),
        ("ImplementationSpecific", "/a//b", []),
        ("ImplementationSpecific", "a", ["must be an absolute path"]),
    ],
)
def test_paths_are_validated_by_their_type(kind, path, why):
    field = f'spec.rules[0].http.paths[0].path: Invalid value: "{path}": '
    assert routed(path, kind) == [field + reason for reason in why]


def test_a_path_without_a_valid_type_is_refused():
    assert routed(kind="") == [
        "spec.rules[0].http.paths[0].pathType: Required value: pathType must be specified"
    ]
    (text,) = routed(kind="Regex")
    assert "Unsupported value" in text


@pytest.mark.parametrize(
    ("backend", "problems"),
    [
        ({}, [': Invalid value: "": resource or service backend is required']),
        (
            {"service": SERVICE, "resource": {}},
            [': Invalid value: "": cannot set both resource and service backends'],
        ),
        ({"resource": {"kind": "K"}}, [".resource.name: Required value"]),
        (
            {"service": {}},
            [
                ".service.name: Required value",
                ": Required value: port name or number is required",
            ],
        ),
        (
            {"service": {"name": "a", "port": {"number": 70000}}},
            [".service.port.number: Invalid value: 70000: must be between 1 and 65535, inclusive"],
        ),
        (
            {"service": {"name": "a", "port": {"number": 1, "name": "a"}}},
            [': Invalid value: "": cannot set both port name & port number'],
        ),
    ],
)
def test_backends_are_validated(backend, problems):
    found = ingress(defaultBackend=backend)
    assert found == [f"spec.defaultBackend{problem}" for problem in problems]


@pytest.mark.parametrize(
    ("spec", "problems"),
    [
        ({"controller": "a.b/c"}, []),
        ({}, ["controller: Required value"]),
        (
            {"controller": "a"},
            [
                (
                    'controller: Invalid value: "a": must be a domain-prefixed path '
                    '(such as "acme.io/foo")'
                )
            ],
        ),
        (
            {
                "controller": "a.b/c",
                "parameters": {"kind": "K", "name": "n", "scope": "Namespace"},
            },
            [
                "parameters.namespace: Required value: `parameters.scope` is set to 'Namespace'",
            ],
        ),
    ],
)
def test_ingress_classes_are_validated(spec, problems):
    assert texts(check_ingress_class({"spec": spec})) == [f"spec.{text}" for text in problems]


@pytest.mark.parametrize(
    ("port", "problems"),
    [
        ({"port": 80, "endPort": 90, "protocol": "TCP"}, []),
        ({"port": "http"}, []),
        (
            {"port": 80, "endPort": 79},
            ["endPort: Invalid value: 80: must be greater than or equal to `port`"],
        ),
        (
            {"port": "http", "endPort": 79},
            ["endPort: Invalid value: 79: may not be specified when `port` is non-numeric"],
        ),
        (
            {"endPort": 79},
            ["endPort: Invalid value: 79: may not be specified when `port` is not specified"],
        ),
        (
            {"protocol": "X"},
            ['protocol: Unsupported value: "X": supported values: "SCTP", "TCP", "UDP"'],
        ),
    ],
)
def test_ports_of_network_policies_are_validated(port, problems):
    found = policy(ingress=[{"ports": [port]}])
    assert found == [f"spec.ingress[0].ports[0].{problem}" for problem in problems]


@pytest.mark.parametrize(
    ("peer", "problems"),
    [
        ({"podSelector": {}}, []),
        ({"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}}, []),
        ({}, [": Required value: must specify a peer"]),
        (
            {"podSelector": {}, "ipBlock": {"cidr": "10.0.0.0/8"}},
            [": Forbidden: may not specify both ipBlock and another peer"],
        ),
        ({"ipBlock": {}}, [".ipBlock.cidr: Required value"]),
        (
            {"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.0.0.0/8"]}},
            ['.ipBlock.except[0]: Invalid value: "10.0.0.0/8": must be a strict subset of `cidr`'],
        ),
    ],
)
def test_peers_of_network_policies_are_validated(peer, problems):
    found = policy(egress=[{"to": [peer]}])
    assert found == [f"spec.egress[0].to[0]{problem}" for problem in problems]


def test_types_of_network_policies_are_validated():
    assert policy(policyTypes=["Ingress", "Egress"]) == []
    assert policy(policyTypes=["X"]) == [
        'spec.policyTypes[0]: Unsupported value: "X": supported values: "Egress", "Ingress"'
    ]
    (text,) = policy(policyTypes=["Ingress"] * 3)
    assert text.endswith("may not specify more than two policyTypes")
