"""Typed access to facts: engines, accelerators, images, recipes, models. Everything with a source."""
