"""--otlp-endpoint: an invalid value is refused in one line, before anything runs."""

from __future__ import annotations

import json
import sys

import pytest

from fairlead.cli import exit_code
from fairlead.cli.commands.run.otlp_exporter import traces_url
from fairlead.cli.main import run


@pytest.fixture
def refused(tmp_path, capsys):
    """Runs `fairlead run` with options that are refused; returns what it printed."""
    kubeconfig = tmp_path / "kubeconfig"
    config = {
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": ""}}],
        "current-context": "c",
    }
    kubeconfig.write_text(json.dumps(config))

    def start(*options):
        command = ["run", "--kubeconfig", str(kubeconfig), "--listen", "none", *options]
        assert run(command) == exit_code.BAD_INPUT
        return capsys.readouterr().err

    return start


def test_without_the_extra_the_command_that_installs_it_is_named(refused, monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    assert refused("--otlp-endpoint", "http://127.0.0.1:4318") == (
        "fairlead: --otlp-endpoint: needs OpenTelemetry's SDK: "
        "pip install opentelemetry-sdk opentelemetry-exporter-otlp-proto-http\n"
    )


@pytest.mark.parametrize("url", ["localhost:4318", "ftp://a", "http://", "http://a:x", "http://[a"])
def test_an_invalid_collector_url_is_refused(refused, url):
    assert refused("--otlp-endpoint", url) == (
        f"fairlead: --otlp-endpoint: {url}: must be the URL of an OTLP/HTTP collector, such as "
        "http://localhost:4318\n"
    )


def test_a_shadow_creates_no_spans(refused):
    assert refused("--shadow", "--otlp-endpoint", "http://127.0.0.1:4318") == (
        "fairlead: --otlp-endpoint: cannot be used with --shadow\n"
    )


@pytest.mark.parametrize(
    ("endpoint", "url"),
    [
        ("http://a:4318", "http://a:4318/v1/traces"),
        ("https://a/otlp/", "https://a/otlp/v1/traces"),
        ("https://a/otlp/v1/traces", "https://a/otlp/v1/traces"),
    ],
)
def test_an_endpoint_is_a_base_url_or_the_url_of_traces(endpoint, url):
    assert traces_url(endpoint) == url
