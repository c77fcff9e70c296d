"""The sentences of a verdict, grouped by what they are about."""
