"""The assessment of an outcome: the verdict, the conditions of `--fail-on`, and their certainty."""
