"""The compiler's intermediate representations, one module each, in the order of the passes."""
