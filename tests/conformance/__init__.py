"""What released parsers say of command lines, against what servec says of them."""
