"""The modules that a small what-if imports, because imports take most of its time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

STORE = Path(__file__).parent.parent / "examples" / "store" / "store-nodes-pods.json"
# The number of modules now, third-party ones included. The limit finds an import that pulls many
# modules into every command and is not in NEEDLESS. Raise it for modules that a drain needs.
MODULES_MAX = 887
# The number of modules of the standard library on Python 3.13; the other versions have fewer.
STANDARD_MODULES_MAX = 135
# Loaded at every start: by `setuptools` in the environments of Python 3.11, by Debian's Python.
LOADED_BY_THE_ENVIRONMENT = ("_distutils_hack", "sitecustomize")
# Packages and modules that a drain of nodes and pods must not load, and what they are for.
NEEDLESS = (
    "calendar",
    "cryptography",  # certificates
    "cyclopts.help",
    "fairlead.api.text.yaml_listing",  # files that are not JSON
    "fairlead.apiserver.admission.chain",  # the admission of a server
    "fairlead.apiserver.admission.policy",
    "fairlead.apiserver.admission.webhooks",
    "fairlead.apiserver.apiextensions.definition.validation",
    "fairlead.apiserver.registry.strategies.core.group",  # kinds that no scheduler reads
    "fairlead.apiserver.registry.strategies.core.service",
    "fairlead.apiserver.schema.decoder",  # objects that users write
    "fairlead.apiserver.validation.batch",
    "fairlead.cel",  # policies, definitions, devices
    "fairlead.client",  # running clusters
    "fairlead.engine.autoscaling",
    "fairlead.engine.batch.plugins",
    "fairlead.engine.batch.session",
    "fairlead.engine.configuration.v1",  # configuration files of the scheduler
    "fairlead.engine.plugins.dynamic_resources.allocator",
    "fairlead.engine.scheduling.preemption.dry_run.dry_run",
    "fairlead.engine.workloads.endpoints",  # clients of a served cluster
    "fairlead.whatif.report",  # other forms of output
    "rich",
    "yaml",
)
RUN = """
import sys
from fairlead.cli.main import run
run(sys.argv[1:])
print(*sys.modules, sep="\\n", file=sys.stderr)
"""


@pytest.fixture(scope="module")
def loaded():
    """The modules that `whatif --drain -o json` has loaded at its end."""
    options = ["whatif", str(STORE), "--drain", "worker-11", "--output", "json"]
    # A forced terminal gets a progress bar.
    env = {k: v for k, v in os.environ.items() if k not in ("FORCE_COLOR", "TTY_COMPATIBLE")}
    done = subprocess.run(
        [sys.executable, "-c", RUN, *options], capture_output=True, text=True, check=True, env=env
    )
    return [name for name in done.stderr.split() if name not in LOADED_BY_THE_ENVIRONMENT]


def test_a_small_what_if_imports_few_modules(loaded):
    """Each further module takes half a millisecond of every command."""
    standard = {one for one in loaded if one.partition(".")[0] in sys.stdlib_module_names}
    assert len(loaded) - len(standard) <= MODULES_MAX
    assert len(standard) <= STANDARD_MODULES_MAX


@pytest.mark.parametrize("package", NEEDLESS)
def test_a_drain_does_not_import_modules_that_it_does_not_need(loaded, package):
    """Import such modules at the composition of a run, or inside a function."""
    assert [name for name in loaded if f"{name}.".startswith(f"{package}.")] == []
