"""What all groups share: field errors, formats of single values, ObjectMeta, selectors."""
