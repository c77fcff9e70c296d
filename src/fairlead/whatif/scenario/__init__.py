"""Scenario files of `fairlead simulate`: cluster sources, timed events, settings."""
