"""What clients are warned of although their object was taken."""

from __future__ import annotations

import pytest

from fairlead.apiserver.kind import DEPLOYMENT, POD, SERVICE
from fairlead.apiserver.served.warning import warnings_of

CONTAINER = {"name": "c", "image": "i"}


def pod(name="a", **spec):
    return {"metadata": {"name": name}, "spec": {"containers": [CONTAINER], **spec}}


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({}, []),
        (
            {"nodeSelector": {"beta.kubernetes.io/arch": "amd64"}},
            [
                (
                    "spec.nodeSelector[beta.kubernetes.io/arch]: deprecated since v1.14; "
                    'use "kubernetes.io/arch" instead'
                )
            ],
        ),
        (
            {"containers": [{**CONTAINER, "env": [{"name": "A"}, {"name": "A"}]}]},
            [
                (
                    'spec.containers[0].env[1]: hides previous definition of "A", '
                    "which may be dropped when using apply"
                )
            ],
        ),
        (
            {"containers": [{**CONTAINER, "resources": {"requests": {"memory": "100m"}}}]},
            [
                (
                    "spec.containers[0].resources.requests[memory]: "
                    'fractional byte value "100m" is invalid, must be an integer'
                )
            ],
        ),
        (
            {"containers": [{**CONTAINER, "ports": [{"containerPort": 1}] * 2}]},
            [
                (
                    "spec.containers[0].ports[1]: duplicate port definition with "
                    "spec.containers[0].ports[0]"
                )
            ],
        ),
        (
            {"hostAliases": [{"ip": "1.1.1.1"}] * 2},
            ['spec.hostAliases[1].ip: duplicate ip "1.1.1.1"'],
        ),
        (
            {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone"}]},
            [
                (
                    "spec.topologySpreadConstraints[0].labelSelector: "
                    "a null labelSelector results in matching no pod"
                )
            ],
        ),
    ],
)
def test_pods(spec, said):
    """A pod that will surprise is told so."""
    assert list(warnings_of(POD, None, pod(**spec))) == said


def test_names_of_pods_become_names_of_hosts():
    (said,) = warnings_of(POD, None, pod("a.b"))
    assert said.endswith("a DNS label is recommended: [must not contain dots]")


def test_templates_are_looked_at_where_they_stand():
    template = {"spec": {"containers": [CONTAINER], "imagePullSecrets": [{"name": ""}]}}
    obj = {"metadata": {"name": "a"}, "spec": {"template": template}}
    said = 'spec.template.spec.imagePullSecrets[0].name: invalid empty name ""'
    assert list(warnings_of(DEPLOYMENT, None, obj)) == [said]


def test_nothing_is_said_again_of_what_has_not_changed():
    obj = pod(hostAliases=[{"ip": "1.1.1.1"}] * 2)
    assert list(warnings_of(POD, obj, obj)) == []


def test_services():
    obj = {"metadata": {"name": "s"}, "spec": {"trafficDistribution": "PreferClose"}}
    said = 'spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"'
    assert list(warnings_of(SERVICE, None, obj)) == [said]
