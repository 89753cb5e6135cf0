"""irobot_benchmark's output directories: `<topology>_log/` with latency_all, latency_total, resources, events and
metadata.txt, in the current dialect or the older one, as text of fixed width or CSV.

    dialect    the names and widths of columns; Output, what one such directory says, whatever its dialect
    parse      directory -> Output         write       Output -> directory
    runs       Outputs -> RunData          accounts    a trial of perflab -> Outputs
"""
