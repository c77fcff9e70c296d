"""NodePrice: the cheaper node is the better one.

The price of a node is a label, `example.com/price-per-hour`, in any currency. Depends on the Node
object alone, so that scores are worked out once per kind of pod and node; REVERSED makes 100 of the
lowest price that fits and 0 of the highest.
"""

from __future__ import annotations

import msgspec

from fairlead import plugin


class NodePrice:
    """Score."""

    name = "NodePrice"
    locality = plugin.Locality.NODE
    normalization = plugin.Normalization.REVERSED

    class Args(msgspec.Struct, frozen=True, rename="camel"):
        """`default_price` is that of nodes without a (readable) price."""

        label: str = "example.com/price-per-hour"
        default_price: float = 1.0

    def __init__(self, args: Args) -> None:
        """See Args."""
        self._args = args

    def score(self, state: plugin.CycleState, pod: plugin.PodInfo, node: plugin.NodeInfo) -> int:
        """The price in ten-thousandths."""
        try:
            price = float(node.labels.get(self._args.label, ""))
        except ValueError:
            price = self._args.default_price
        return round(max(price, 0) * 10_000)
