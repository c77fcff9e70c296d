"""Torture: production code in virtual time under seeded workloads, changes and faults.

    seed ──▶ scenario_generator ──▶ run ──▶ Result ──violation──▶ shrinker ──▶ smaller scenario
                                     │
         ControlPlane: engine ◀── Auditor, FaultyWorld ──▶ LocalWorld ──▶ Store

The tested code is the code that users run. Faults are injected between the engine and its world.
Code outside this package contains nothing about faults.
"""
