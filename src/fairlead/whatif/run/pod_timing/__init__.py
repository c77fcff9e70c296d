"""The startup times and runtimes of pods: measured in a dump, or read from a file."""
