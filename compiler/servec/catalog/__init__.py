"""Typed access to facts: engines, accelerators, images, recipes, models; each with a source."""
