"""Extraction: what a released package of an engine accepts, read from the package itself."""
