"""Collections of objects: list pages, continue tokens and watches."""
