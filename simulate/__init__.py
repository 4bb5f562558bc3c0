"""Experiments: data, networks, training and sampling, and the cross-check of theory against them.

Nothing here may use a theory's prediction while it trains or samples; only the cross-check sees both sides.
"""
