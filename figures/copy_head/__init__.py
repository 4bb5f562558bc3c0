"""Figures of the head that learns to copy."""
