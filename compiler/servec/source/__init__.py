"""Text -> located values. The only package, beside output and cli, that touches files."""
