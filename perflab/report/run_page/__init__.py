"""The report of runs as one HTML page: what stands in it, section by section, and the page."""
