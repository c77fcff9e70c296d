"""A local cluster for tests: its thread, its clock, and expectations about it."""
