"""Sweeps: one scenario run many times, with fields, seeds or failures varied.

variation   what varies: a field of the scenario and its values
case        the scenarios that result: all combinations, or a sample of them
case_run    runs one of them, in this process or elsewhere
measure     the numbers of each result, and their distribution over the cases
answer      the distribution and the cases, as tables
"""
