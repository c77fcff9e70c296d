"""A local cluster for tests: the thread that runs it, its clock, and expectations about it."""
