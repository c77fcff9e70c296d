"""The JavaScript client, unmodified: informers, patches, errors, server-side apply."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent / "javascript"

# The messages of npm without a network.
UNREACHABLE = ("ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ECONNRESET", "ETIMEDOUT", "ENETUNREACH")

pytestmark = pytest.mark.needs("npm")


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """The script, with the locked version of the client."""
    folder = tmp_path_factory.mktemp("javascript") / "package"
    shutil.copytree(HERE, folder, ignore=shutil.ignore_patterns("node_modules"))
    done = subprocess.run(
        ["npm", "ci", "--no-progress", "--prefer-offline"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    if any(code in done.stderr for code in UNREACHABLE):
        pytest.skip("needs npm's registry, which does not answer")
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.long
def test_a_pod_is_created_observed_patched_and_deleted(package, cluster, namespace) -> None:
    done = subprocess.run(
        ["node", "pods.mjs", str(cluster.kubeconfig), namespace],
        cwd=package,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["phases"][-1] == "Running"
    assert (seen["created"], seen["labels"], seen["refusal"]) == ("p", {"a": "b"}, 404)
    assert seen["managers"] == ["node Apply"]
