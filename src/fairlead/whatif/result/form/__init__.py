"""The forms of the answers that commands print as JSON: a class per answer, with all its fields.

The answers themselves are made as tables (`result/tabular_answer.py`) or dictionaries, so no
command uses these classes. tools/form_schema.py writes docs/answer-schema.json and the tables of
docs/answers.md from them, and the tests compare each printed answer with its form.
"""
