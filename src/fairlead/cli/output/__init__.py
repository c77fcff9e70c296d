"""Output of commands: text, tables, progress bar and files."""
