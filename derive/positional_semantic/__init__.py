"""Positional and semantic learning in tied low-rank dot-product attention (arXiv 2402.03902)."""

from derive.positional_semantic.theory import derivation, few_samples, general, prepared, state_evolution

__all__ = ["derivation", "few_samples", "general", "prepared", "state_evolution"]
