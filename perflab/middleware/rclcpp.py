"""ROS 2 itself: the graph runs on rclcpp, its executors and an RMW. One kind for each RMW; `rclcpp` is the one that
RMW_IMPLEMENTATION names, or else ROS 2's default.

ROS 2 is available if its setup.bash has been sourced: its packages are then in the index of AMENT_PREFIX_PATH.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from perflab.middleware import cyclonedds, fastdds
from perflab.middleware.kind import SWITCH, MiddlewareKind, Option

NAME = "rclcpp"
RUNTIME = "rclcpp"
NOT_SOURCED = "ROS 2 not sourced; source its setup.bash, e.g. `source /opt/ros/jazzy/setup.bash`"
DEFAULT_RMW = "rmw_fastrtps_cpp"  # folder of ROS 2, if it is installed
FASTRTPS = ("rmw_fastrtps_cpp", "rmw_fastrtps_dynamic_cpp")
CYCLONEDDS = "rmw_cyclonedds_cpp"
OVER_RTPS = (*FASTRTPS, CYCLONEDDS, "rmw_connextdds")
_KNOWN = (CYCLONEDDS, DEFAULT_RMW)
OF_FRAMING = {"rmw_cyclonedds": CYCLONEDDS, "rmw_fastrtps": DEFAULT_RMW}  # service framing of each RMW
_DDS = {CYCLONEDDS: cyclonedds.KIND, **dict.fromkeys(FASTRTPS, fastdds.KIND)}
_INDEX = Path("share/ament_index/resource_index/rmw_typesupport")  # where an RMW registers itself
_NO_RMW = ("rmw_implementation",)

DEFAULTS = {"node": "node", "parameter_services": "on"}  # value of each option below that the runtime uses by default
OPTIONS = (
    Option("node", "node, lifecycle: rclcpp::Node or LifecycleNode (node)", ("node", "lifecycle")),
    Option("parameter_services", "on, off: the parameter services and events of every node (on)", SWITCH),
    Option("rosout", "on, off: the publisher of /rosout of every node (on)", SWITCH),
    Option(
        "transport",
        "udp, default: Fast DDS over UDP only, instead of UDP and shared memory (default)",
        ("udp", "default"),
    ),
)


def sourced(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether ROS 2's setup.bash has been sourced."""
    return bool(environment.get("AMENT_PREFIX_PATH"))


def installed(environment: Mapping[str, str] = os.environ) -> list[str]:
    """The RMWs of the sourced ROS 2, sorted; none if it is not sourced."""
    prefixes = [Path(p) for p in environment.get("AMENT_PREFIX_PATH", "").split(os.pathsep) if p]
    found: set[str] = set()
    for prefix in prefixes:
        try:
            found |= {entry.name for entry in (prefix / _INDEX).iterdir()}
        except OSError:  # a prefix without any, or a deleted one
            continue
    return sorted(found.difference(_NO_RMW))


def chosen(environment: Mapping[str, str] = os.environ) -> str:
    """The RMW that `rclcpp` stands for: from RMW_IMPLEMENTATION, or ROS 2's default."""
    there = installed(environment)
    named = environment.get("RMW_IMPLEMENTATION")
    if named:
        return named
    return DEFAULT_RMW if DEFAULT_RMW in there or not there else there[0]


def kind_of(rmw: str) -> MiddlewareKind:
    """The kind of one RMW."""
    dds = _DDS.get(rmw)
    return MiddlewareKind(
        name=f"{NAME}/{rmw}",
        summary=f"ROS 2's rclcpp over {rmw}: its nodes, executors, timers and services",
        runtime=RUNTIME,
        disturbed=False,
        install=NOT_SOURCED,
        options=OPTIONS if rmw in FASTRTPS else OPTIONS[:-1],
        wire="rtps" if rmw in OVER_RTPS else rmw,
        over_network={} if rmw in OVER_RTPS else None,
        service_framings=("rmw_cyclonedds",) if rmw == CYCLONEDDS else ("rmw_fastrtps",),
        rmw=rmw,
        tuning={"shared_memory": lambda on: {"transport": "default" if on else "udp"}} if rmw in FASTRTPS else {},
        libraries=(f"lib{rmw}", *(dds.libraries if dds else ())),
        threads=dds.threads if dds else (),
        thread_settings=dds.thread_settings if dds else None,
    )


def kinds(environment: Mapping[str, str] = os.environ) -> list[MiddlewareKind]:
    """The RMWs of every ROS 2, and further ones of the sourced one."""
    return [kind_of(rmw) for rmw in dict.fromkeys((*_KNOWN, *installed(environment)))]


KINDS = kinds()
