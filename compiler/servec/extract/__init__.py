"""What released packages of an engine accept, read from the packages: releases -> one catalogue."""
