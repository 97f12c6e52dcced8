"""Findings: what is wrong, where, and what to do; and the renderers that show them."""
