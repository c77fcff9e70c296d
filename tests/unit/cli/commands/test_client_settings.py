"""The client connection settings of a KubeSchedulerConfiguration."""

from __future__ import annotations

import pytest

from fairlead.cli.commands.run.client_settings import read_client_settings
from fairlead.client.leader_election import ElectionConfig
from fairlead.client.request_queue import RequestLimits
from fairlead.whatif.input.document import read_one
from fairlead.whatif.input.error import InputError


@pytest.fixture
def settings(tmp_path):
    """Reads the settings from a text."""

    def read(text):
        (tmp_path / "c.yaml").write_text(text)
        return read_client_settings(read_one(str(tmp_path / "c.yaml")))

    return read


def test_fields_that_are_absent_or_zero_have_the_default_values(settings):
    found = settings("clientConnection: {qps: 0, burst: 7}\nleaderElection: {retryPeriod: 1s}")
    assert found.limits == RequestLimits(burst=7)
    assert found.election is not None
    assert (found.election.retry_period, found.election.name) == (1_000_000_000, "kube-scheduler")


def test_empty_fields_of_leader_election_have_the_default_values(settings):
    """Templates leave them empty; a Lease without a name would never be acquired."""
    found = settings(
        'leaderElection: {resourceName: "", resourceNamespace: "", resourceLock: "", '
        "leaseDuration: 0s, renewDeadline: 0s, retryPeriod: 0s}"
    )
    assert found.election is not None
    assert found.election == ElectionConfig(identity=found.election.identity)


def test_a_negative_burst_is_refused(settings):
    """With a negative burst, no request would ever be sent."""
    with pytest.raises(InputError, match="must be non-negative"):
        settings("clientConnection: {burst: -1}")
