"""kubernetes_asyncio, unmodified: watches that are ended by the client, errors, and patches."""

from __future__ import annotations

import asyncio

import pytest
from kubernetes_asyncio import client, config, watch
from kubernetes_asyncio.client.exceptions import ApiException
from tests.live.event_loop import run_until_closed


@pytest.fixture
def run(cluster):
    """Runs a coroutine function with a connected CoreV1Api."""

    async def connected(act):
        settings = client.Configuration()
        await config.load_kube_config(str(cluster.kubeconfig), client_configuration=settings)
        async with client.ApiClient(settings) as api:
            return await act(client.CoreV1Api(api))

    # aiohttp closes connections with TLS in the background
    return lambda act: run_until_closed(connected(act))


def test_a_watch_receives_the_start_of_a_pod(run, namespace, pod) -> None:
    async def act(core):
        await core.create_namespaced_pod(namespace, pod("p"))
        async with watch.Watch().stream(
            core.list_namespaced_pod, namespace, timeout_seconds=60
        ) as events:
            async for event in events:
                if event["object"].status.phase == "Running":
                    return event["object"].spec.node_name
        return ""

    assert run(act).startswith("node-")


def test_a_watch_resumes_from_a_resource_version(run, namespace) -> None:
    async def act(core):
        made = await core.create_namespaced_config_map(namespace, {"metadata": {"name": "a"}})
        await core.create_namespaced_config_map(namespace, {"metadata": {"name": "b"}})
        await core.delete_namespaced_config_map("a", namespace)
        stream = watch.Watch().stream(
            core.list_namespaced_config_map,
            namespace,
            resource_version=made.metadata.resource_version,
            timeout_seconds=1,
        )
        async with stream as events:
            return [(e["type"], e["object"].metadata.name) async for e in events]

    assert run(act) == [("ADDED", "b"), ("DELETED", "a")]


def test_an_error_is_a_status_object(run, namespace) -> None:
    async def act(core):
        with pytest.raises(ApiException) as refusal:
            await core.create_namespaced_pod(namespace, {"metadata": {"name": "P_1"}, "spec": {}})
        return refusal.value

    refusal = run(act)
    assert refusal.status == 422
    assert "spec.containers" in refusal.body


def test_many_concurrent_requests_succeed(run, namespace) -> None:
    async def act(core):
        made = (
            core.create_namespaced_config_map(namespace, {"metadata": {"generateName": "c-"}})
            for _ in range(50)
        )
        return {one.metadata.name for one in await asyncio.gather(*made)}

    assert len(run(act)) == 50
