"""The outcome of a run as values, and the difference between two outcomes."""
