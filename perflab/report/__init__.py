"""Reports: results for people."""
