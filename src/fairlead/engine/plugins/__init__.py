"""The in-tree scheduling plugins, one module or package each, under upstream's names.

Law: each rule cites the upstream file whose behaviour it reproduces; reasons are upstream's words,
one constant each, beside the rule.
"""
