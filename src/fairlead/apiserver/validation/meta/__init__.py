"""The parts of validation that all API groups share: field errors, formats, metadata, selectors."""
