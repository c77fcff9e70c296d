"""Requests to a cluster of `fairlead up`, for commands that control it."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

import msgspec
from cyclopts import Parameter
from msgspec.structs import replace

from fairlead.cli.options.connection import ConnectionOptions, connection_of
from fairlead.cli.options.parameter import CLUSTER, named
from fairlead.whatif.input.error import InputError

if TYPE_CHECKING:
    from fairlead.client.connection import ConnectionConfig
    from fairlead.client.error import RequestError

# Advancing the clock may take long. The response is sent when everything in the simulated time has
# happened.
TIMEOUT_S: Final = 600
VARIABLE: Final = "KUBECONFIG"
_NOT_FOUND: Final = 404
_ABSENT: Final = {
    "/fairlead/dashboard": "the cluster has no dashboard; start it with fairlead up --dashboard",
}
Answer = TypeVar("Answer")


@Parameter(name="*", group=CLUSTER)
@dataclass(frozen=True)
class LocalConnection:
    """The options that name a cluster of `fairlead up`."""

    kubeconfig: Annotated[
        Path | None,
        named("FILE", "The kubeconfig of the cluster (default: the files in KUBECONFIG)."),
    ] = None
    context: Annotated[
        str | None,
        named("NAME", "The context of the cluster in the kubeconfig (default: the current one)."),
    ] = None


CURRENT_CLUSTER: Final = LocalConnection()


def request_local_cluster(
    connection: LocalConnection, path: str, body: dict[str, Any] | None, answer: type[Answer]
) -> Answer:
    """Return the cluster's response to a request for `path`, decoded as `answer`.

    The request is a POST with `body`, or a GET if `body` is None. If `connection` names no
    kubeconfig, the files in KUBECONFIG are used. Raises InputError if the kubeconfig is missing or
    invalid, or if the request fails.
    """
    file, context = connection.kubeconfig, connection.context
    # Without a context, ~/.kube/config is never a default. Its current context usually is a real
    # cluster, which does not answer requests for Fairlead's own paths.
    source = os.environ.get(VARIABLE, "") if file is None else str(file)
    if not source and context is None:
        raise InputError("--kubeconfig", f"is missing, and {VARIABLE} is not set")
    options = ConnectionOptions(kubeconfig=None if file is None else source, context=context)
    config = connection_of(options)
    if context is None:
        config = replace(config, name=source)
    return asyncio.run(_request(config.name, config, path, body, answer))


async def _request(
    source: str,
    config: ConnectionConfig,
    path: str,
    body: dict[str, Any] | None,
    answer: type[Answer],
) -> Answer:
    from fairlead.client.error import ConnectionConfigError, RequestError
    from fairlead.client.rest_client import RestClient

    try:
        async with RestClient(config, read_seconds_max=TIMEOUT_S) as client:
            if body is None:
                received = await client.get(path)
            else:
                received = await client.post(path, msgspec.json.encode(body))
        return msgspec.json.decode(received, type=answer)
    except ConnectionConfigError as cause:
        raise InputError(cause.source, cause.problem, field=cause.field) from None
    except RequestError as cause:
        raise InputError(source, _problem(cause, path)) from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        what = path.rpartition("/")[2]
        problem = f"{config.server} does not answer with a {what}; is it a cluster of fairlead up?"
        raise InputError(source, problem) from None


def _problem(cause: RequestError, path: str) -> str:
    if not cause.code:
        return f"{cause.server} does not answer: {cause.message}"
    if cause.code == _NOT_FOUND:
        return _ABSENT.get(path, f"{cause.server} is not a cluster of fairlead up: {cause.message}")
    return cause.message
