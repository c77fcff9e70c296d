"""Torture: production code in virtual time under seeded workloads, changes and faults.

    seed ──▶ scenario_generator ──▶ run ──▶ Result ──violation──▶ shrinker ──▶ smaller scenario
                                     │
         ControlPlane: engine ◀── Auditor, FaultyWorld ──▶ LocalWorld ──▶ Store

Law: the code under test is the code that serves users; faults are injected between the engine and
its world, and nothing below this package knows of them.
"""
