"""A run on disk: its directory, what its trials left there, and how both are read again."""
