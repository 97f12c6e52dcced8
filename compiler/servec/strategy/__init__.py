"""The few ways of doing a thing that data cannot say, by name. A manifest names its way."""
