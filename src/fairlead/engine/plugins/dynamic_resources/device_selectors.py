"""DeviceSelectors: compiles and evaluates CEL selectors of devices, and caches the results.

Devices with the same driver, attributes, capacity and allowMultipleAllocations have the same
`PoolDevice.selector_input`. Devices with the same input share the result of an expression. The cost
of an evaluation is limited.

upstream: dynamic-resource-allocation/cel/compile.go: CompileCELExpression, DeviceMatches
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fairlead.engine.state.devices.device_pools import PoolDevice

if TYPE_CHECKING:
    from fairlead.cel.program import Program

_RESULTS_MAX: Final = 1 << 18


class CompileError(Exception):
    """Raised if an expression does not compile; the message is the compiler's error."""


class EvaluationError(Exception):
    """Raised if the evaluation of an expression for a device fails; the message is the reason."""


class DeviceSelectors:
    """Compiles and evaluates selectors; caches programs and results."""

    def __init__(self) -> None:
        self._programs: dict[str, Program | str] = {}
        self._results: dict[tuple[str, bytes], bool | str] = {}

    def matches(self, expression: str, device: PoolDevice) -> bool:
        """Return whether `expression` selects `device`.

        Raises CompileError if `expression` does not compile, and EvaluationError if its evaluation
        fails.
        """
        key = (expression, device.selector_input)
        result = self._results.get(key)
        if result is None:
            # Imported only when needed, because few pods have devices. The import of CEL takes as
            # long as the simulation of a small cluster.
            from fairlead.engine.plugins.dynamic_resources.device_expression import (  # noqa: PLC0415
                evaluated,
            )

            program = self._program(expression)
            if len(self._results) >= _RESULTS_MAX:
                self._results.clear()
            result = self._results[key] = evaluated(program, device)
        if isinstance(result, str):
            raise EvaluationError(result)
        return result

    def _program(self, expression: str) -> Program:
        program = self._programs.get(expression)
        if program is None:
            from fairlead.engine.plugins.dynamic_resources.device_expression import (  # noqa: PLC0415
                compiled,
            )

            program = self._programs[expression] = compiled(expression)
        if isinstance(program, str):
            raise CompileError(program)
        return program
