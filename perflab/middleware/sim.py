"""Simulated links in real time: the disturbance layer over the cheapest middleware between processes."""

from dataclasses import replace

from perflab.middleware import shm
from perflab.middleware.disturbance import WITHOUT_PREFIX

KIND = replace(
    shm.KIND,
    name="sim",
    plugin=shm.KIND.name,
    summary="shm with programmed delay, loss, reordering, duplication and stalls, under names without a prefix",
    without_prefix=True,
    options=(*WITHOUT_PREFIX, *shm.KIND.options),
)
