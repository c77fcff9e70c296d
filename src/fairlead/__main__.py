"""Lets `python -m fairlead` run the command `fairlead`."""

from __future__ import annotations

from fairlead.cli.main import main

main()
