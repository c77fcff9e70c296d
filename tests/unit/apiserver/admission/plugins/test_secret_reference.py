"""The secrets that a pod may reference."""

from __future__ import annotations

import pytest

from fairlead.apiserver.admission.plugins.service_account import ENFORCED, MIRROR, ServiceAccount

SECRET_VOLUME = {"name": "v", "secret": {"secretName": "s"}}
TOKEN_VOLUME = {"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}
PROJECTED = {"name": "v", "projected": {"sources": [{"secret": {"name": "s"}}]}}
FROM_SECRET = {"valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}


def container(**fields):
    return [{"name": "c", "image": "i", **fields}]


@pytest.fixture
def limited(gate, obj):
    """A gate with a ServiceAccount that enforces its secrets: `own`, and `pull` for images."""
    meta = {"annotations": {ENFORCED: "true"}}
    account = obj(
        "ServiceAccount", "default", metadata=meta, secrets=[{"name": "own"}],
        imagePullSecrets=[{"name": "pull"}], automountServiceAccountToken=False,
    )  # fmt: skip
    return gate(ServiceAccount(lambda: "xxxxx")).has(account)


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"volumes": [SECRET_VOLUME]}, 'volume with secret.secretName="s" is not allowed because '),
        (
            {"containers": container(env=[{"name": "E", **FROM_SECRET}])},
            'container c with envVar E referencing secret.secretName="s" is not allowed because ',
        ),
        (
            {"initContainers": container(envFrom=[{"secretRef": {"name": "s"}}])},
            'init container c with envFrom referencing secret.secretName="s" is not allowed ',
        ),
        (
            {"imagePullSecrets": [{"name": "pull"}, {"name": "s"}]},
            'imagePullSecrets[1].name="s" is not allowed because service account default does',
        ),
    ],
    ids=["volume", "variable", "variables", "images"],
)
def test_a_service_account_can_limit_its_pods_to_its_mountable_secrets(limited, pod, spec, why):
    assert why in limited.refusal(pod(**spec))


def test_a_pod_may_mount_the_secrets_of_its_service_account(limited, pod):
    own = {"name": "v", "secret": {"secretName": "own"}}
    assert limited.admits(pod(volumes=[own]))["spec"]["imagePullSecrets"] == [{"name": "pull"}]


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"serviceAccountName": "a"}, "a mirror pod may not reference service accounts"),
        ({"volumes": [PROJECTED]}, "a mirror pod may not reference secrets"),
        ({"imagePullSecrets": [{"name": "s"}]}, "a mirror pod may not reference secrets"),
        (
            {"volumes": [{"name": "v", "csi": {"nodePublishSecretRef": {"name": "s"}}}]},
            "a mirror pod may not reference secrets",
        ),
        (
            {"volumes": [TOKEN_VOLUME]},
            "a mirror pod may not use ServiceAccountToken volume projections",
        ),
    ],
)
def test_a_mirror_pod_must_not_reference_accounts_or_secrets(gate, pod, spec, why):
    mirror = pod(**spec)
    mirror = {**mirror, "metadata": {**mirror["metadata"], "annotations": {MIRROR: "x"}}}
    assert gate(ServiceAccount(lambda: "xxxxx")).refusal(mirror).endswith(why)
