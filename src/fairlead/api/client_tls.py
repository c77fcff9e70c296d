"""TLS contexts that verify the certificates of servers as Go's clients do.

The checks of `ssl.create_default_context` depend on the version of Python. Since Python 3.13,
Python's default context refuses a certificate that violates RFC 5280, for example a certificate
that does not identify the key of its authority. Go accepts such certificates, and the API servers
of some clusters have them. Before Python 3.13, Python's default context did not trust an
intermediate authority whose root authority is missing in the CA file. Go trusts each authority in
the CA file, including an intermediate authority.

upstream: go/src/crypto/x509/verify.go: Certificate.Verify
"""

from __future__ import annotations

import ssl


def client_tls_context(
    *, authority_file: str | None = None, authority: str | None = None
) -> ssl.SSLContext:
    """Return a TLS context that trusts the certificates in a file or in a PEM text.

    `authority_file` is the path of the file, and `authority` is the text. If both are None, the
    context trusts the authorities of the system. Raises OSError (for example SSLError) or
    ValueError if the certificates cannot be read.
    """
    if authority is not None:  # `ssl` refuses other characters, even in comments of bundles
        authority = authority.encode("ascii", "replace").decode("ascii")
    context = ssl.create_default_context(cafile=authority_file, cadata=authority)
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context
