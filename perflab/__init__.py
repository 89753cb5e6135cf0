"""perflab, a performance laboratory for ROS 2 and DDS.

An experiment runs a workload under conditions, trial by trial, while observers record; analysis turns the
records into answers. Imports point one way: cli -> experiment -> workload, middleware, condition, observer ->
native programs; `statistics` is pure and knows none of them.
"""

__version__ = "0.1.0"
