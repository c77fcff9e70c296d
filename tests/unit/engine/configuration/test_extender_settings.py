"""Configured extenders: their order, their defaults, and invalid settings."""

from __future__ import annotations

import msgspec
import pytest

from fairlead.engine.configuration.error import ConfigurationError
from fairlead.engine.configuration.extender import extenders_of, ignored_resources
from fairlead.engine.configuration.v1 import ExtenderForm
from fairlead.engine.core.instant import seconds
from fairlead.engine.scheduling.extender.extender import Extender, ExtenderTls

URL = "http://127.0.0.1:8888/scheduler/"


def forms(*extenders):
    return tuple(msgspec.convert({"urlPrefix": URL, **one}, ExtenderForm) for one in extenders)


def test_all_fields_of_an_extender_are_read():
    [found] = extenders_of(
        forms(
            {
                "urlPrefix": "https://e/",
                "filterVerb": "f",
                "prioritizeVerb": "p",
                "preemptVerb": "e",
                "bindVerb": "b",
                "weight": 5,
                "enableHTTPS": True,
                "tlsConfig": {"serverName": "s", "caData": "Q0E="},
                "httpTimeout": "1.5s",
                "nodeCacheCapable": True,
                "managedResources": [{"name": "example.com/gpu", "ignoredByScheduler": True}],
                "ignorable": True,
            }
        )
    )
    assert found == Extender(
        url_prefix="https://e/",
        filter_verb="f",
        prioritize_verb="p",
        preempt_verb="e",
        bind_verb="b",
        weight=5,
        enable_https=True,
        tls=ExtenderTls(server_name="s", ca_data=b"CA"),
        timeout=seconds(1.5),
        node_cache_capable=True,
        managed_resources=("example.com/gpu",),
        ignorable=True,
    )


def test_ignorable_extenders_are_called_last():
    """upstream: scheduler.go: buildExtenders."""
    found = extenders_of(forms({"ignorable": True, "filterVerb": "1"}, {"filterVerb": "2"}, {}))
    assert [extender.filter_verb for extender in found] == ["2", "", "1"]


@pytest.mark.parametrize(("given", "expected"), [(None, 5), ("0s", 5), ("30s", 30)])
def test_the_http_timeout_is_five_seconds_by_default(given, expected):
    [found] = extenders_of(forms({} if given is None else {"httpTimeout": given}))
    assert found.timeout == seconds(expected)


def test_resources_ignored_by_the_scheduler_are_collected():
    resources = [
        {"name": "a.com/x", "ignoredByScheduler": True},
        {"name": "a.com/y"},
    ]
    assert ignored_resources(forms({"managedResources": resources}, {})) == ("a.com/x",)


def test_a_verb_is_appended_to_the_url_prefix_after_one_slash():
    [found] = extenders_of(forms({}))
    assert found.address("filter") == "http://127.0.0.1:8888/scheduler/filter"


@pytest.mark.parametrize(
    ("extender", "field", "problem"),
    [
        ({"urlPrefix": "e:1"}, "urlPrefix", 'Invalid value: "e:1": must be an http or https URL'),
        ({"urlPrefix": "http://e?q"}, "urlPrefix", "must be an http or https URL"),
        ({"enableHTTPS": True}, "urlPrefix", "must begin with https:// where enableHTTPS is true"),
        ({"prioritizeVerb": "p"}, "weight",
         "Invalid value: 0: must have a positive weight applied to it"),
        ({"httpTimeout": "soon"}, "httpTimeout", "'soon' is not a duration"),
        ({"httpTimeout": "-1s"}, "httpTimeout", "must not be negative"),
        ({"managedResources": [{"name": "cpu"}]}, "managedResources[0].name",
         "is an invalid extended resource name"),
        ({"managedResources": [{"name": "a b/c"}]}, "managedResources[0].name", "Invalid value"),
        ({"managedResources": [{"name": "a.com/b"}, {"name": "a.com/b"}]},
         "managedResources[1].name", "duplicate extender managed resource name"),
        ({"tlsConfig": {"insecure": True, "caFile": "f"}}, "tlsConfig.insecure",
         "specifying a root certificates file with the insecure flag is not allowed"),
        ({"tlsConfig": {"certFile": "f"}}, "tlsConfig.keyFile", "is required beside a cert"),
        ({"tlsConfig": {"keyFile": "f"}}, "tlsConfig.certFile", "is required beside a key"),
    ],
)  # fmt: skip
def test_invalid_extenders_are_refused_with_the_field(extender, field, problem):
    with pytest.raises(ConfigurationError) as refused:
        extenders_of(forms(extender))
    assert refused.value.field == f"extenders[0].{field}"
    assert problem in refused.value.problem


def test_only_one_extender_may_bind():
    with pytest.raises(ConfigurationError, match="only one extender can implement bind"):
        extenders_of(forms({"bindVerb": "b"}, {"bindVerb": "c"}))
