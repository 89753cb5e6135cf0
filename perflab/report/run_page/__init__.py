"""The report of runs as one HTML page: its content, section by section, and the page."""
