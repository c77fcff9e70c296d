"""Collections of objects: list pages, continue tokens, selectors and watches."""
