"""A run on disk: its directory, its trials' files, and how to read both."""
