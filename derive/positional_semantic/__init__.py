"""Positional and semantic learning in tied low-rank dot-product attention (arXiv 2402.03902)."""

from derive.positional_semantic.theory import asymptotics, derivation, general, prepared, state_evolution

__all__ = ["asymptotics", "derivation", "general", "prepared", "state_evolution"]
