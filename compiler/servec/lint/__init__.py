"""Engine command lines in other people's files: found, never run, held against the catalogue."""
