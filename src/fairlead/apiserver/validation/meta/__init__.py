"""The parts that all groups share: field errors, formats of values, ObjectMeta, selectors."""
