"""Reading users' input: documents, durations, strict forms, errors that name file and field."""
