"""Extenders: servers that have a say in filtering, scoring, preemption and binding.

Law: nothing here waits. A question leaves as a `CallExtender`; whoever asked is suspended (a
`Consultation`) and goes on with the answer.
upstream: pkg/scheduler/extender.go
"""
