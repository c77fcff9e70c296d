"""The in-tree scheduling plugins under upstream's names, each in its own module or package.

Each rule cites the upstream file whose behaviour it reproduces. Each rejection reason is one
constant beside its rule, in upstream's words.
"""
