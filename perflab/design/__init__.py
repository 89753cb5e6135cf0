"""The design of an experiment, as values: document, factors, levels, treatments, blocks, a search. Runs nothing."""
