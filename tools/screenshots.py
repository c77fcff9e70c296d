"""Makes the pictures in docs/images from real answers, with Chromium.

    python tools/screenshots.py

Run it after the report has changed, and look at the result.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from fairlead.cli.main import run

ROOT: Final = Path(__file__).parent.parent
IMAGES: Final = ROOT / "docs" / "images"
STORE: Final = "examples/store/store.yaml"
BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome")
SIZES: Final = {"report": (1280, 800)}


def main() -> int:
    """Write a picture for each of SIZES."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        print(f"screenshots: install one of {', '.join(BROWSERS)}", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        os.chdir(ROOT)  # the report names the file as the command does
        run(["whatif", STORE, "--fail-zone", "west-1b", "--for", "20m", "--report", str(page)])
        for name, (width, height) in SIZES.items():
            _take(browser, page, IMAGES / f"{name}.png", f"{width},{height}")
    return 0


def _take(browser: str, page: Path, image: Path, size: str) -> None:
    """Let `browser` draw `page` in a window of `size`, and keep the picture."""
    command = [
        browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
        "--virtual-time-budget=3000", f"--window-size={size}", f"--screenshot={image}",
        page.as_uri(),
    ]  # fmt: skip
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)  # noqa: S603 - of this machine


if __name__ == "__main__":
    sys.exit(main())
