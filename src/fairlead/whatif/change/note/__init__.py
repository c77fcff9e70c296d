"""Notes about parts of a change that have no effect, or another effect than the user may expect."""
