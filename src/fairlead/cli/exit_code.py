"""Exit codes of `fairlead`."""

from __future__ import annotations

from typing import Final

SUCCESS: Final = 0
DIFFERENCE: Final = 1  # for example: whatif found a difference, or a check of doctor failed
NO: Final = 1  # The answer is no: for example, a node cannot be drained.
BAD_INPUT: Final = 2
CONDITION_HOLDS: Final = 3  # A condition of --fail-on is true.
DEFECT: Final = 70  # EX_SOFTWARE of sysexits.h: Fairlead itself failed
OUTPUT_FAILED: Final = 74  # EX_IOERR of sysexits.h: a result could not be written
SIGNALLED: Final = 128  # shells add this to the number of the signal that ended a command
INTERRUPTED: Final = 130  # the exit code that shells report for SIGINT
