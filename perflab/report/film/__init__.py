"""Films of trials in reports: which trials have one, what the page draws of it, and MuJoCo's pictures of it."""
