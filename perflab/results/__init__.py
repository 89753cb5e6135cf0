"""What runs found, as records: summary.json is one of them (perflab.models). Nothing here calculates."""
