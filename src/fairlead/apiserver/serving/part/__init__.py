"""Parts: the subresources of objects, and the kinds that are only ever posted.

Law: each takes a call and gives its answer; `table` has them by the name that stands in the path.
"""
