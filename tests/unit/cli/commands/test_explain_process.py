"""`fairlead explain --process` against servers other than `fairlead run`."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from fairlead.cli import exit_code
from fairlead.cli.commands.explain import process
from fairlead.cli.main import run


@contextmanager
def answering(body):
    """Yield the URL of a server that responds to every GET with `body`."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def explain(body, *options):
    with answering(body) as url:
        return run(["explain", "pod/store/web-0", "--process", url, *options])


def test_control_characters_do_not_reach_the_terminal(capsys):
    assert explain(b"  \x1b[2Jhi\xff\n") == exit_code.SUCCESS
    out = capsys.readouterr().out
    assert out.startswith("   [2Jhi")
    assert "\x1b" not in out


@pytest.mark.parametrize("body", [b"<html>", b"\xff\x00", b"[1]"])
def test_json_of_another_server_is_refused(capsys, body):
    assert explain(body, "-o", "json") == exit_code.BAD_INPUT
    assert "the response does not come from fairlead run" in capsys.readouterr().err


def test_a_long_answer_is_truncated(capsys, monkeypatch):
    monkeypatch.setattr(process, "_BYTES_MAX", 1 << 20)
    assert explain(b"x" * (3 << 20)) == exit_code.BAD_INPUT
    assert "the answer has more than 1 MiB" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("pod/web-0", "--token-file", "x"), "--process: is required with"),
        (("pod/web-0", "--process", "localhost"), "is not a URL such as https://localhost:10259"),
        (("deploy/web", "--process", "http://localhost"), "is not pod/NAMESPACE/NAME"),
        (
            (
                *("pod/w", "--process", "https://localhost", "--insecure-skip-tls-verify"),
                *("--certificate-authority", "ca.pem"),
            ),
            "--certificate-authority: cannot be combined with --insecure-skip-tls-verify",
        ),
        (("pod/w", "--process", "http://localhost", "-o", "markdown"), "must be text, details or"),
    ],
)
def test_wrong_options_are_refused(capsys, arguments, problem):
    assert run(["explain", *arguments]) == exit_code.BAD_INPUT
    assert problem in capsys.readouterr().err


def test_a_token_is_not_sent_over_plain_http(capsys, tmp_path):
    (tmp_path / "token").write_text("secret\n")
    assert explain(b"x", "--token-file", str(tmp_path / "token")) == exit_code.BAD_INPUT
    assert "--token-file: needs an https:// URL in --process" in capsys.readouterr().err


def test_an_upper_case_scheme_means_tls(capsys):
    """A plain HTTP server cannot answer a TLS handshake."""
    with answering(b"x") as url:
        https = url.replace("http://", "HTTPS://")
        assert run(["explain", "pod/web-0", "--process", https]) == exit_code.BAD_INPUT


@pytest.mark.parametrize(
    "option",
    [
        ("--snapshot", "dump.yaml"),
        ("--context", "c"),
        ("--max-input", "1Gi"),
        ("--config", "scheduler.yaml"),
        ("--plugin", "plugin.py:Plugin"),
        ("--allow-extenders",),
        ("--batch-config", "kube-batch"),
        ("--batch-plugin", "plugin.py:Plugin"),
        ("--apply", "pod.yaml"),
        ("--seeds", "3"),
        ("--runtimes", "runtimes.yaml"),
        ("--behave-like", "1.19"),
        ("--feature-gates", "GenericWorkload=true"),
    ],
    ids=lambda option: option[0],
)
def test_options_for_explanations_of_snapshots_are_refused(capsys, option):
    assert run(["explain", "pod/w", "--process", "http://localhost", *option]) == (
        exit_code.BAD_INPUT
    )
    err = capsys.readouterr().err
    assert "--process: cannot be combined with " in err
    assert option[0] in err
