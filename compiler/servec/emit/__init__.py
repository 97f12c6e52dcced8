"""Launches -> files. Each printer owns the quoting of its format and is tested by reading back."""
