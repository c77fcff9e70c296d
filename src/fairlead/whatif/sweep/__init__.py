"""Sweeps: one scenario run many times, with different fields, seeds or failures.

variation   a field of the scenario and the values that it takes
case        the resulting scenarios: all combinations, or a sample of them
case_run    runs one case, in this process or elsewhere
measure     the numbers of each result, and their distribution over the cases
answer      the distribution and the cases, as tables
"""
