"""The decoder of dumped objects: from text to typed views, with as little work as possible."""
