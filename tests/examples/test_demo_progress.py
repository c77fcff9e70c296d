"""The demos that run several simulations name each of them, also if the output is a pipe."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize(
    ("example", "form", "names"),
    [
        ("openb-batch", "under the policy {}", ("fairlead", "kube-batch", "single-pods")),
        ("elastic", "{}.yaml", ("fixed", "cluster-autoscaler", "karpenter")),
    ],
)
def test_a_demo_names_each_simulation_before_it_runs(example, form, names, tmp_path):
    fairlead = tmp_path / "fairlead"
    fairlead.write_text("#!/bin/sh\necho simulated >&2\n")
    fairlead.chmod(0o755)
    done = subprocess.run(
        [EXAMPLES / example / "demo", fairlead, "true"],
        env={**os.environ, "OUT": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=True,
    )
    expected = [(f"Simulating {form.format(name)} ...", "simulated") for name in names]
    assert "\n".join(line for pair in expected for line in pair) in done.stdout
