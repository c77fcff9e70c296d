"""PodTopologySpread: pods that look alike are spread evenly over topology domains.

Upstream's plugins/podtopologyspread, by phase: `plugin` is what the framework asks, `constraint`
and `default_selector` say what is to be spread, `spread_counts` counts it, `filtering` and
`scoring` decide.
"""
