"""Extenders: HTTP servers that take part in filtering, scoring, preemption and binding.

A call to an extender is a `CallExtender` command, so no function of this package blocks. A
`Consultation` is a generator that yields such commands. The generator is suspended until the
answers arrive.
upstream: pkg/scheduler/extender.go
"""
