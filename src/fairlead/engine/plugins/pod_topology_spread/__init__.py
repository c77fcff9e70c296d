"""PodTopologySpread: spreads matching pods evenly over topology domains.

`constraint` and `default_selector` select the pods to spread. `spread_counts` counts these pods.
`filter` and `score` evaluate nodes by the counts.
upstream: plugins/podtopologyspread
"""
