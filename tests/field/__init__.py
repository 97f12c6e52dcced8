"""Cases from the field: rows of real behaviour, each turned into a spec and compiled."""
