"""Runs extender.yaml with an extender that takes node-0 off the candidates for preemption.

    python extender.py --behave-like 1.19 -v 5 --no-report

The arguments are those of `fairlead simulate`. The extender serves HTTP on this machine during the
run.
"""

from __future__ import annotations

import json
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

from fairlead.cli import main

HERE = Path(__file__).parent
CONFIGURATION = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
extenders:
- {urlPrefix: "http://127.0.0.1:PORT", preemptVerb: preempt, nodeCacheCapable: true}
"""


class Extender(BaseHTTPRequestHandler):
    """Answers `preempt` with all candidates but node-0."""

    def do_POST(self) -> None:
        """Read the candidates with their victims, and return those to keep."""
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        kept = {
            node: victims
            for node, victims in asked["NodeNameToMetaVictims"].items()
            if node != "node-0"
        }
        body = json.dumps({"NodeNameToMetaVictims": kept}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Keep standard error for the decisions."""


def run(arguments: list[str]) -> None:
    """Serve the extender and run the scenario with it."""
    server = HTTPServer(("127.0.0.1", 0), Extender)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        with tempfile.TemporaryDirectory() as folder:
            port = str(server.server_address[1])
            Path(folder, "scheduler.yaml").write_text(CONFIGURATION.replace("PORT", port))
            for name in ("extender.yaml", "priority-classes.yaml"):
                Path(folder, name).write_text((HERE / name).read_text())
            scenario = str(Path(folder, "extender.yaml"))
            main.run(["simulate", scenario, "--allow-extenders", *arguments])
    finally:
        server.shutdown()
        server.server_close()


if __name__ == "__main__":
    run(sys.argv[1:])
