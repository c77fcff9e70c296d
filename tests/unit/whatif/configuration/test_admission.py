"""kube-apiserver's AdmissionConfiguration: limited resources; all other settings are refused."""

from __future__ import annotations

import re

import pytest

from fairlead.apiserver.admission.quota.resource_quota import LimitedResource
from fairlead.whatif.configuration.admission import read_limited_resources
from fairlead.whatif.input.error import InputError

QUOTAS = """\
apiVersion: apiserver.config.k8s.io/v1
kind: ResourceQuotaConfiguration
limitedResources:
- resource: pods
  matchScopes:
  - scopeName: PriorityClass
    operator: In
    values: [urgent]
- {resource: deployments, apiGroup: apps, matchContains: [cpu]}
"""
LIMITED = (
    LimitedResource(
        resource="pods",
        scopes=({"scopeName": "PriorityClass", "operator": "In", "values": ["urgent"]},),
    ),
    LimitedResource(resource="deployments.apps", contains=("cpu",)),
)


def configuration(*lines):
    head = "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n"
    return head + "\n".join(lines)


def test_the_plugin_configuration_is_inline_or_in_another_file(write):
    inline = "\n".join(f"    {line}" for line in QUOTAS.splitlines())
    whole = write("a.yaml", configuration("- name: ResourceQuota", "  configuration:", inline))
    assert read_limited_resources(whole) == LIMITED
    write("quota.yaml", QUOTAS)
    apart = write("b.yaml", configuration("- {name: ResourceQuota, path: quota.yaml}"))
    assert read_limited_resources(apart) == LIMITED


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            configuration("- name: PodSecurity"),
            "PodSecurity: plugins[0]: cannot be configured in Fairlead",
        ),
        (configuration("- {name: ResourceQuota, paths: x}"), "plugins[0].paths: unknown field"),
        ("apiVersion: v1\nkind: Pod", "Pod of v1 is not supported; expected AdmissionConfig"),
        (
            configuration(
                "- name: ResourceQuota",
                "  configuration: {apiVersion: apiserver.config.k8s.io/v1,",
                "    kind: ResourceQuotaConfiguration, limitedResources: [{resource: pods,",
                "    matchScopes: [{scopeName: PriorityClass, operator: Is}]}]}",
            ),
            "plugins[0].configuration.limitedResources[0].matchScopes: unknown operator 'Is'",
        ),
        (configuration("- {name: ResourceQuota, path: none.yaml}"), "none.yaml: cannot be read"),
    ],
)
def test_unsupported_configurations_are_refused(write, text, problem):
    with pytest.raises(InputError, match=re.escape(problem)):
        read_limited_resources(write("a.yaml", text))
