"""Figures of attention that learns from positions or from meaning."""
