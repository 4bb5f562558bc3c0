"""The cross-check: the only place that sees both theory and experiment.

A claim names what is measured (a function of a setup and a seed that knows no theory) and what is expected (a function of
a theory and a setup that knows no experiment); the verdict joins the two.
"""
