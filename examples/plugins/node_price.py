"""NodePrice: prefers cheaper nodes.

The price of a node is its label `example.com/price-per-hour`, in any currency. The score depends on
the Node object only, so it is computed once per node for all pods with equal specs. REVERSED maps
the lowest price of the feasible nodes to 100 and the highest price to 0.
"""

from __future__ import annotations

import msgspec

from fairlead import plugin


class NodePrice:
    """A Score plugin whose raw score is the price of the node."""

    name = "NodePrice"
    locality = plugin.Locality.NODE
    normalization = plugin.Normalization.REVERSED

    class Args(msgspec.Struct, frozen=True, rename="camel"):
        """`default_price` is the price of nodes whose label is missing or not a number."""

        label: str = "example.com/price-per-hour"
        default_price: float = 1.0

    def __init__(self, args: Args) -> None:
        """Store `args`."""
        self._args = args

    def score(self, state: plugin.CycleState, pod: plugin.PodInfo, node: plugin.NodeInfo) -> int:
        """Return the price in ten-thousandths."""
        try:
            price = float(node.labels.get(self._args.label, ""))
        except ValueError:
            price = self._args.default_price
        return round(max(price, 0) * 10_000)
