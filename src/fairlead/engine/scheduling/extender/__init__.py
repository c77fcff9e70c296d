"""Extenders: HTTP servers that take part in filtering, scoring, preemption and binding.

A call to an extender is a `CallExtender` command, so no function of this package blocks. The
generator that yields the call (a `Consultation`) is suspended until the answer arrives.
upstream: pkg/scheduler/extender.go
"""
