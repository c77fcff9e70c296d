"""Which nodes fit and how well: the in-tree plugins, one module each, under upstream's names.

Law: each rule cites the upstream file it is exact to; reasons are upstream's words, one constant
each, beside the rule.
"""
