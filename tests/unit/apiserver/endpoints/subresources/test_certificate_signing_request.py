"""Which parts of a CertificateSigningRequest each subresource may change."""

from __future__ import annotations

import base64

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
WHERE = f"{REQUESTS}/x"
APPROVED = {"type": "Approved", "status": "True"}


def signing_request():
    """A valid request in PEM, as base64."""
    made = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([]))
    signed = made.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
    return base64.b64encode(signed.public_bytes(serialization.Encoding.PEM)).decode()


@pytest.fixture
def request_body():
    spec = {"request": signing_request(), "signerName": "a.b/c", "usages": ["client auth"]}
    return {"metadata": {"name": "x"}, "spec": spec}


@pytest.fixture
def write(api, request_body):
    """Creates a request; returns a function that patches its status through a subresource."""
    assert api.post(REQUESTS, request_body).status == 201
    return lambda part, **status: api.patch(f"{WHERE}/{part}", {"status": status})


def test_an_approval_gets_its_times_and_keeps_them(write):
    """The transition time is kept if the same approval is sent again."""
    (first,) = write("approval", conditions=[APPROVED]).json["status"]["conditions"]
    assert first["lastUpdateTime"] == first["lastTransitionTime"]
    (again,) = write("approval", conditions=[APPROVED]).json["status"]["conditions"]
    assert again["lastTransitionTime"] == first["lastTransitionTime"] < again["lastUpdateTime"]


def test_the_approval_subresource_cannot_set_the_certificate(write):
    answer = write("approval", conditions=[APPROVED], certificate="eA==")
    assert answer.status == 200
    assert "certificate" not in answer.json["status"]


@pytest.mark.parametrize(
    ("part", "before", "after", "why"),
    [
        ("status", [], [APPROVED], 'updates may not add a condition of type "Approved"'),
        ("approval", [APPROVED], [], 'updates may not remove a condition of type "Approved"'),
    ],
)
def test_an_approval_is_added_once_and_only_by_the_approval_subresource(
    write, part, before, after, why
):
    write("approval", conditions=before)
    refused = write(part, conditions=after)
    assert refused.status == 422
    assert refused.json["details"]["causes"] == [
        {"reason": "FieldValueForbidden", "message": f"Forbidden: {why}",
         "field": "status.conditions"}
    ]  # fmt: skip


def test_a_status_write_keeps_the_approval(write):
    (verdict,) = write("approval", conditions=[APPROVED]).json["status"]["conditions"]
    other = {**APPROVED, "reason": "Other"}
    assert write("status", conditions=[other]).json["status"]["conditions"] == [verdict]


def test_contradicting_and_invalid_conditions_are_refused(write):
    denied, unsure = {"type": "Denied", "status": "True"}, {"type": "Failed", "status": "Unknown"}
    refused = write("approval", conditions=[APPROVED, denied, unsure, {"status": "x"}])
    assert [(one["field"], one["message"]) for one in refused.json["details"]["causes"]] == [
        (
            "status.conditions",
            'Invalid value: "Denied": Approved and Denied conditions are mutually exclusive',
        ),
        (
            "status.conditions[2].status",
            'Unsupported value: "Unknown": supported values: "True"',
        ),
        ("status.conditions[3].type", "Required value"),
        (
            "status.conditions[3].status",
            'Unsupported value: "x": supported values: "False", "True", "Unknown"',
        ),
    ]


def test_a_certificate_must_be_a_certificate_pem_block(write):
    refused = write("status", certificate="eA==")
    assert refused.json["details"]["causes"][0]["message"] == (
        'Invalid value: "<certificate data>": must contain at least one CERTIFICATE PEM block'
    )


def test_a_request_must_be_a_certificate_request_pem_block(api, request_body):
    request_body["spec"]["request"] = "eA=="
    refused = api.post(REQUESTS, request_body)
    assert refused.json["details"]["causes"][0]["message"] == (
        'Invalid value: "eA==": PEM block type must be CERTIFICATE REQUEST'
    )
