"""The ConfigMaps and the Lease in kube-system that the API server writes about itself."""

from __future__ import annotations

import pytest

from fairlead.worlds.local.controllers.apiserver_records import ApiServerRecords, server_name

AUTHENTICATION = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
TRACKING = (
    "/api/v1/namespaces/kube-system/configmaps/kube-apiserver-legacy-service-account-token-tracking"
)
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
LEASE = f"{LEASES}/{server_name('fairlead')}"


def test_the_name_of_a_server_is_derived_from_its_host():
    """The name is the one that kube-apiserver derives from the same host."""
    assert server_name("vm") == "apiserver-wlv32tlttr4jl3gtroqexyxapa"


def test_the_client_ca_is_published(cluster):
    assert cluster.ask("GET", AUTHENTICATION)["data"] == {"client-ca-file": "PEM"}
    assert cluster.ask("GET", TRACKING)["data"] == {"since": "2026-01-01"}


def test_no_client_ca_is_published_without_certificates(make_cluster):
    assert make_cluster().ask("GET", AUTHENTICATION)["code"] == 404


@pytest.mark.parametrize("path", [AUTHENTICATION, TRACKING, LEASE])
def test_deleted_records_are_created_again(cluster, path):
    before = cluster.ask("GET", path)["metadata"]
    cluster.ask("DELETE", path)
    after = cluster.ask("GET", path)["metadata"]
    assert after["uid"] != before["uid"]
    assert after["managedFields"][0]["manager"] == "kube-apiserver"


def test_the_client_ca_of_another_server_is_kept(cluster):
    """Each server adds its own CA once."""
    storage = cluster.local.store.storage
    other = ApiServerRecords(storage, lambda: "id", "other", "10.0.0.2:6443", "OTHER\n")
    for _ in range(2):
        cluster.start(other, "kube-system")
    assert cluster.ask("GET", AUTHENTICATION)["data"] == {"client-ca-file": "PEMOTHER\n"}
    assert [one["metadata"]["name"] for one in cluster.ask("GET", LEASES)["items"]] == sorted(
        (server_name("fairlead"), server_name("other"))
    )


def test_the_lease_is_renewed_at_a_restart_of_the_server(cluster):
    """The restarted server renews its existing Lease, which is not written in between."""
    before = cluster.ask("GET", LEASE)["spec"]
    assert before["leaseDurationSeconds"] == 3600
    assert before["holderIdentity"].startswith(f"{server_name('fairlead')}_")
    cluster.pass_time(7200)
    assert cluster.ask("GET", LEASE)["spec"] == before
    storage = cluster.local.store.storage
    again = ApiServerRecords(storage, lambda: "id", "fairlead", "127.0.0.1:0", "PEM")
    for _ in range(2):
        cluster.start(again, "kube-system")
    after = cluster.ask("GET", LEASE)["spec"]
    assert after == {**before, "renewTime": "2026-01-01T02:00:00.000000Z"}


def test_a_scheduler_may_read_the_client_ca(cluster):
    """The scheduler is bound to the role that reads only this ConfigMap."""
    role = "/apis/rbac.authorization.k8s.io/v1/namespaces/kube-system/rolebindings/"
    binding = cluster.ask("GET", f"{role}system::extension-apiserver-authentication-reader")
    assert {one["name"] for one in binding["subjects"]} >= {"system:kube-scheduler"}
