"""What is written, held against what its consumers refuse."""
