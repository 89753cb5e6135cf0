"""Experiments: trials in order, their processes, and the run directory."""
