"""Programmed links in real time: the disturbance over the least that crosses processes."""

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
