"""`python -m fairlead.cli` is `fairlead`."""

from __future__ import annotations

from fairlead.cli.main import main

main()
