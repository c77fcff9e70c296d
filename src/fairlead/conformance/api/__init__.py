"""Replaying recorded exchanges with an API server: what it answers, and what kubectl prints.

`placeholder` knows what stands for values that differ from run to run, `agreement` compares two
JSON values under them, `exchange` reads what was recorded, `answer` and `watched` compare one
answer and one watch, `replay` runs a case over a `transport`.
"""
