"""Compiled wrappers that start real servers: `make rehearse`."""
