"""Starts ros2_control with the Panda of the catalog on mock hardware, as a launch file does, until SIGINT.

ros2_control_alone.py TOOL FOLDER [hand]: ros2_controllers_tool, where its files go, whether the hand is controlled.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from perflab import catalog

RATE = 500  # Hz, as of the embedded controllers
ARM = "panda_arm_controller"
BROADCASTER = "joint_state_broadcaster"
HAND = "panda_hand_controller"
FINGER = "panda_finger_joint1"

stopping = False


def stop(*_: object) -> None:
    global stopping  # noqa: PLW0603 - set by a signal
    stopping = True


def description(robot: Path) -> tuple[str, list[str]]:
    """The robot with joints that reach commanded positions at once, and the names of its arm's joints."""
    state = {
        joint.get("name", ""): joint.get("value", "0")
        for joint in ElementTree.parse(robot / "panda.srdf").findall(
            "group_state[@name='home'][@group='panda_arm']/joint"
        )
    }
    urdf = ElementTree.parse(robot / "panda.urdf").getroot()
    system = ElementTree.SubElement(urdf, "ros2_control", name="panda", type="system")
    hardware = ElementTree.SubElement(system, "hardware")
    ElementTree.SubElement(hardware, "plugin").text = "mock_components/GenericSystem"
    ElementTree.SubElement(hardware, "param", name="calculate_dynamics").text = "true"
    for name, position in {**state, FINGER: "0.035"}.items():
        joint = ElementTree.SubElement(system, "joint", name=name)
        ElementTree.SubElement(joint, "command_interface", name="position")
        for interface, value in (("position", position), ("velocity", "0")):
            shown = ElementTree.SubElement(joint, "state_interface", name=interface)
            ElementTree.SubElement(shown, "param", name="initial_value").text = value
    return ElementTree.tostring(urdf, encoding="unicode"), list(state)


def parameters(joints: list[str], said: Path) -> Mapping[str, Any]:
    types = {
        ARM: "joint_trajectory_controller/JointTrajectoryController",
        BROADCASTER: "joint_state_broadcaster/JointStateBroadcaster",
        HAND: "position_controllers/GripperActionController",
    }
    known = {name: {"type": type_, "params_file": str(said)} for name, type_ in types.items()}
    manager = {"update_rate": RATE, **known}
    arm = {"joints": joints, "command_interfaces": ["position"], "state_interfaces": ["position", "velocity"]}
    of_each = {"controller_manager": manager, ARM: arm, HAND: {"joint": FINGER}}
    return {name: {"ros__parameters": parameters} for name, parameters in of_each.items()}


def node() -> Path:
    for prefix in os.environ["AMENT_PREFIX_PATH"].split(os.pathsep):
        if (found := Path(prefix) / "lib/controller_manager/ros2_control_node").is_file():
            return found
    sys.exit("the sourced ROS 2 has no ros2_control_node")


def main() -> int:
    signal.signal(signal.SIGINT, stop)
    tool, folder = sys.argv[1], Path(sys.argv[2])
    urdf, joints = description(catalog.folder() / "robots/panda")
    (folder / "panda.urdf").write_text(urdf)
    said = folder / "controllers.yaml"  # JSON is YAML
    said.write_text(json.dumps(parameters(joints, said)))
    hand = [HAND] if "hand" in sys.argv[3:] else []
    running = [
        subprocess.Popen([node(), "--ros-args", "--params-file", said]),
        subprocess.Popen([tool, folder / "panda.urdf", BROADCASTER, ARM, *hand]),
    ]
    while not stopping and not (ended := [each for each in running if each.poll() is not None]):
        time.sleep(0.02)
    for each in running:
        each.send_signal(signal.SIGINT)
    for each in running:
        each.wait()
    return 0 if stopping else abs(ended[0].returncode) or 1


if __name__ == "__main__":
    sys.exit(main())
