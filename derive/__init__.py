"""Derivations from a model's definition to the expressions that the numerics receive (SymPy only)."""
