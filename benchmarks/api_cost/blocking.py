"""Measures how long a small request waits while the server handles a very large request."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from time import perf_counter
from typing import Any, Final

from api_cost.clients import Address, ask_all
from api_cost.figure import Figure, Figures
from api_cost.process import Server

PAUSE_S: Final = 0.002
CORE: Final = "/api/v1/namespaces/default"
DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
POLICIES: Final = "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies"
WAIT_TARGET_MS: Final = 100
APPLY: Final = "application/apply-patch+yaml"


def over_https(server: Server) -> Figures:
    """Yield, for each large request, the longest wait of a small request while it is handled."""
    address = server.address
    for what, request in _requests(address):
        wait_ms, status = asyncio.run(_longest_wait_ms(address, request))
        yield Figure(
            what=f"another request beside {what}: longest wait",
            value=wait_ms,
            unit="ms",
            target=WAIT_TARGET_MS,
            note=f"status {status}",
        )


def _requests(address: Address) -> Iterator[tuple[str, bytes]]:
    def request(method: str, path: str, body: Any, content_type: str = "") -> bytes:
        text = body if isinstance(body, bytes) else json.dumps(body).encode()
        return address.request(method, path, text, content_type)

    maps = f"{CORE}/configmaps"
    lines = "".join(f"  k{number}: a\n" for number in range(250_000))
    yaml = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: y}}\ndata:\n{lines}"
    yield "3 MB of YAML", request("POST", maps, yaml.encode(), "application/yaml")
    yield "a ConfigMap of 14,900 keys", request("POST", maps, _config_map("d", 14_900))
    for manager in ("a", "b"):
        path = f"{maps}/c?fieldManager={manager}"
        what = "an apply of 4,900 fields" if manager == "a" else "one that conflicts in all"
        yield what, request("PATCH", path, _config_map("c", 4_900, manager), APPLY)
    inserts = [{"op": "add", "path": "/data/k0", "value": "v"} for _ in range(9_999)]
    patch = request("PATCH", f"{maps}/d", inserts, "application/json-patch+json")
    yield "9,999 operations of a JSON patch", patch
    volumes = [{"name": f"v{number}", "emptyDir": {}} for number in range(3_700)]
    spec = {"containers": [{"name": "c", "image": "i"}], "volumes": volumes}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}
    yield "a pod with 3,700 volumes", request("POST", f"{CORE}/pods", pod)
    yield "a NetworkPolicy with 4,900 addresses", request("POST", POLICIES, _policy(4_900))
    for count in (2_000, 20_000):
        body = _definition(f"widgets{count}", count)
        what = f"a CustomResourceDefinition of {count:,} properties"
        yield what, request("POST", DEFINITIONS, body)


def _config_map(name: str, count: int, value: str = "a") -> dict[str, Any]:
    data = {f"k{number}": value for number in range(count)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def _policy(count: int) -> dict[str, Any]:
    peers = [{"ipBlock": {"cidr": f"10.{n >> 8}.{n & 255}.0/24"}} for n in range(count)]
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": "n"},
        "spec": {"podSelector": {}, "ingress": [{"from": peers}]},
    }


def _definition(plural: str, count: int) -> dict[str, Any]:
    properties = {f"p{number}": {"type": "string"} for number in range(count)}
    schema = {"openAPIV3Schema": {"type": "object", "properties": properties}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": plural.capitalize()},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }


async def _longest_wait_ms(address: Address, large: bytes) -> tuple[float, str]:
    """Return (longest wait of a small request in ms, status of the answer to `large`).

    Small requests are sent one after another until `large` is answered.
    """
    small, waits_ms = address.request("GET", CORE), [0.0]
    task = asyncio.create_task(ask_all(address, [large], 1))
    while not task.done():
        began = perf_counter()
        await ask_all(address, [small], 1)
        waits_ms.append((perf_counter() - began) * 1_000)
        await asyncio.sleep(PAUSE_S)
    (status,) = task.result()
    return max(waits_ms), status.decode() if isinstance(status, bytes) else str(status)
