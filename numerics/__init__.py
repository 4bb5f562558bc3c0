"""Expressions to numbers: landscapes, branches and transitions of an effective action."""
