"""PodTopologySpread: spreads matching pods evenly over topology domains.

Upstream's plugins/podtopologyspread, by phase: `plugin` has the extension points, `constraint` and
`default_selector` determine which pods to spread, `spread_counts` counts them, and `filter` and
`score` decide.
"""
