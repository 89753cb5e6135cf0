"""A package outside perflab that adds one kind of each sort; tests/python/test_plugins.py installs it."""
