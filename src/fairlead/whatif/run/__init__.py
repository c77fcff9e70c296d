"""Running an experiment, and the recorders that collect its outcome."""
