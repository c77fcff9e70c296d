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
            "Let a live scheduler, started with `fairlead run`, explain the pod, without a "
            "snapshot. URL is the "
            "address of that process, such as https://localhost:10259 with kubectl port-forward.",
        ),
    ] = None
    token_file: Annotated[
        str | None,
        named(
            "FILE",
            "With --process: a file with a bearer token. Its user needs the permission to GET "
            "/fairlead/explain.",
        ),
    ] = None
    certificate_authority: Annotated[
        str | None,
        named(
            "FILE",
            "With --process: a PEM file with the certificate authority of the process's "
            "certificate.",
        ),
    ] = None
    insecure_skip_tls_verify: Annotated[
        bool,
        Parameter(
            help="With --process: do not verify the process's certificate, which is self-signed by"
            " default.",
            negative=(),
        ),
    ] = False


NO_PROCESS: Final = ProcessOptions()
