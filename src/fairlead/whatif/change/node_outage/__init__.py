"""Node failures in a what-if or scenario: the nodes, the kind of failure, its time and duration."""
