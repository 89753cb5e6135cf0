"""The results of runs, as records: summary.json is one of them (perflab.models). This package does not calculate
anything."""
