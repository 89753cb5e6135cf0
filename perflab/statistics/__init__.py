"""Pure functions over records: nothing here opens a file, starts a process or knows a middleware."""
