"""The configuration of Karpenter: its objects, its settings, and the labels of its providers."""
