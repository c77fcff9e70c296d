"""Explains a pod through the HTTP endpoint of a running `fairlead run` process."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import msgspec

from fairlead.cli import exit_code
from fairlead.cli.options.output import AnswerFormat
from fairlead.cli.options.process import ProcessOptions
from fairlead.cli.output.console.terminal import stdout_console
from fairlead.cli.output.result_file import print_bytes
from fairlead.client.connection import ConnectionConfig, read_text
from fairlead.client.error import ConnectionConfigError
from fairlead.client.rest_client import ApiAnswer, ApiRequest, RestClient
from fairlead.whatif.input.error import InputError

_PATH: Final = "/fairlead/explain"
_SECONDS_MAX: Final = 30.0
_BYTES_MAX: Final = 64 << 20  # An explanation has about 300 bytes for each node.
_WORDS: Final = {
    0: "",
    401: "the token is missing or not valid; --token-file names one",
    403: "the token's user has no permission to GET /fairlead/explain",
}


def explain_by_process(
    options: ProcessOptions,
    target: str,
    namespace: str,
    incompatible: Sequence[str],
    *,
    output: AnswerFormat,
    all_nodes: bool,
) -> int:
    """Ask a `fairlead run` process to explain the pod `target`, and print the explanation.

    `namespace` is the value of --namespace, or "". Returns the exit code.

    `incompatible` contains the options that the user gave but that do not work with --process.
    Raises InputError if `incompatible` is not empty, if another option cannot be used, or if the
    process does not explain the pod.
    """
    if options.process is None:
        others = "--token-file, --certificate-authority and --insecure-skip-tls-verify"
        raise InputError("--process", f"is required with {others}")
    if incompatible:
        raise InputError("--process", f"cannot be combined with {incompatible[0]}")
    if output not in ("text", "json", "details"):
        raise InputError("--output", "must be text, details or json with --process")
    query = {
        "pod": _pod_key(target, namespace),
        "output": "json" if output == "json" else "text",
        "width": str(stdout_console().width),
        "all-nodes": "true" if all_nodes else "false",
    }
    if options.insecure_skip_tls_verify and options.certificate_authority is not None:
        # upstream: client-go/transport/transport.go: TLSConfigFor
        problem = "cannot be combined with --insecure-skip-tls-verify"
        raise InputError("--certificate-authority", problem)
    config = _connection(options)
    request = ApiRequest("GET", f"{_PATH}?{urlencode(query)}")
    try:
        answer = asyncio.run(_ask(config, request))
    except ConnectionConfigError as cause:
        raise InputError(cause.source, cause.problem, field=cause.field) from None
    text = answer.body.decode(errors="replace")
    if not answer.is_success:
        problem = _WORDS.get(answer.status, text.strip()) or answer.message
        raise InputError("--process", problem, object_name=config.server)
    if output == "json":
        _print_json(config, answer.body)
        return exit_code.SUCCESS
    for line in text.splitlines():
        # Another server might send control characters, which a terminal interprets.
        print("".join(one if one.isprintable() else " " for one in line).rstrip())
    return exit_code.SUCCESS


def _print_json(config: ConnectionConfig, body: bytes) -> None:
    try:
        value = msgspec.json.decode(body, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError):
        problem = "the response does not come from fairlead run"
        raise InputError("--process", problem, object_name=config.server) from None
    print_bytes(msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n")


async def _ask(config: ConnectionConfig, request: ApiRequest) -> ApiAnswer:
    async with RestClient(config, connections_max=1, bytes_max=_BYTES_MAX) as client:
        return await client.exchange(request, _SECONDS_MAX)


def _pod_key(target: str, namespace: str) -> str:
    """Return NAMESPACE/NAME for `pod/NAMESPACE/NAME` and `pod/NAME`.

    For `pod/NAME`, NAMESPACE is `namespace`, or "default" if `namespace` is "".
    """
    kind, *parts = target.split("/")
    if kind not in ("pod", "pods", "po") or not 1 <= len(parts) <= 2 or not all(parts):
        problem = "is not pod/NAMESPACE/NAME; --process explains only pods"
        raise InputError("arguments", problem, object_name=target)
    if namespace and len(parts) > 1 and parts[0] != namespace:
        problem = f"{parts[0]} is not the namespace of --namespace ({namespace})"
        raise InputError("arguments", problem, object_name=target)
    return "/".join([namespace or "default", *parts][-2:])


def _connection(options: ProcessOptions) -> ConnectionConfig:
    assert options.process is not None
    url = options.process.rstrip("/")
    try:
        parts = urlsplit(url)
        url = parts.geturl()  # with the scheme in lower case
        is_url = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_url = False
    if not is_url:
        raise InputError("--process", f"{url!r} is not a URL such as https://localhost:10259")
    try:
        token = _read("--token-file", options.token_file).strip()
        authority = _read("--certificate-authority", options.certificate_authority)
    except ConnectionConfigError as cause:
        raise InputError(cause.source, cause.problem) from None
    if token and parts.scheme == "http":
        # The token would be readable on the network.
        # upstream: client-go/rest/config.go: IsConfigTransportTLS
        raise InputError("--token-file", "needs an https:// URL in --process")
    return ConnectionConfig(
        name="--certificate-authority",
        server=url,
        authority=authority,
        is_insecure=options.insecure_skip_tls_verify,
        token=token,
    )


def _read(option: str, path: str | None) -> str:
    return "" if path is None else read_text(option, "", path)
