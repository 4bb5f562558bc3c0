"""Positional and semantic learning in tied low-rank dot-product attention (arXiv 2402.03902)."""

from derive.positional_semantic.theory import CHOICES, asymptotics, derivation, general, prepared, state_evolution

__all__ = ["CHOICES", "asymptotics", "derivation", "general", "prepared", "state_evolution"]
