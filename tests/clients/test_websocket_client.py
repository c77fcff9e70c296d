"""The program in docs/api-server.md that watches pods over a WebSocket."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

UP = Path(__file__).parents[2] / "docs/api-server.md"


def test_the_program_of_the_documentation_prints_the_pods(cluster, namespace, pod) -> None:
    cluster.apply({**pod("web"), "metadata": {"name": "web", "namespace": namespace}})
    [program] = re.findall(r"```python\n(import base64.*?)```", UP.read_text(), re.DOTALL)
    program = program.replace("namespaces/default", f"namespaces/{namespace}")
    program = program.replace("watch=true", "watch=true&timeoutSeconds=1")
    environment = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig)}
    command = [sys.executable, "-c", program]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.startswith("ADDED web\n")
