"""The options that name a running `fairlead run` process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from cyclopts import Parameter

from fairlead.cli.options.parameter import named


@Parameter(name="*")
@dataclass(frozen=True)
class ProcessOptions:
    """The options for the HTTPS connection to a running `fairlead run` process."""

    process: Annotated[
        str | None,
        named(
            "URL",
            "Ask a process of `fairlead run` about the pod, instead of reading a dump. URL is the "
            "address of the process, such as https://localhost:10259 (through kubectl "
            "port-forward).",
        ),
    ] = None
    token_file: Annotated[
        str | None,
        named(
            "FILE",
            "With --process: a file with a bearer token. The token's user needs the RBAC permission"
            " to GET /fairlead/explain.",
        ),
    ] = None
    certificate_authority: Annotated[
        str | None,
        named(
            "FILE",
            "With --process: a PEM file with the certificate of the authority that signed the "
            "process's certificate.",
        ),
    ] = None
    insecure_skip_tls_verify: Annotated[
        bool,
        Parameter(
            help="With --process: do not verify the certificate of the process. The default "
            "certificate of fairlead run is self-signed, so its verification fails.",
            negative=(),
        ),
    ] = False


NO_PROCESS: Final = ProcessOptions()
