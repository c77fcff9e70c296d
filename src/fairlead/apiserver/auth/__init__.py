"""Who asks, and whether they may: tokens and certificates, RBAC, and what a cluster begins with.

Law: pure, but for `certificate`, which makes keys. Who is asked about and when come in as
arguments; a refusal is an ApiError in upstream's words.
"""
