"""Logs of Apex.AI's performance_test, one file per process: CSV or JSON, of versions from 2018 to 2.3.

dialect    what columns and settings are called, and their units; Log, what one such file says, whatever its dialect
parse      file -> Log                  write       Log -> file
seconds    Log -> what counts of it     accounts    a trial of perflab -> Logs
runs       Logs -> RunData
"""
