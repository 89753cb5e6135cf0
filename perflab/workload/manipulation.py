"""The workload `manipulation`: a simulated arm, its controllers, a planner and a client (docs/manipulation.md).

Each process of the stack is a program of its own (native/manipulation) with ROS 2's names, types, rates and QoS. The
motion is a task of the catalog: a scene, and one goal or several steps.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from perflab import catalog, native
from perflab.errors import BadInput
from perflab.parameters import DurationNs, Parameters, Switch
from perflab.results.figure import OwnFigure, OwnTimes
from perflab.results.outcome import SUCCESS, BrokenOff
from perflab.units import NS_PER_S
from perflab.workload import OUTSIDE, Ended, Judgement, Made, Need, WorkloadKind, outside, topology
from perflab.workload.command import Words

if TYPE_CHECKING:
    from perflab.statistics.said import SaidOutcome

NAME = "manipulation"
EMBEDDED, SPLIT = "embedded", "split"
ROS2, ATTACHED = "ros2", "attached"  # stacks other than the embedded one
ARM, HAND = "/panda_arm_controller", "/panda_hand_controller"
TRAJECTORIES, GRIPPER, MOVES = f"{ARM}/follow_joint_trajectory", f"{HAND}/gripper_cmd", "/move_action"
SUCCEEDED = "succeeded"
UNENDED = "unended"  # prefix of outcomes that name an unfinished step

# The keys of a task, which are options of the runner; parameters of the same name override them.
_OF_CONTACT = frozenset({"allow", "forbid"})  # steps that say what may touch
_OF_SCENE = _OF_CONTACT | {"attach", "detach"}  # steps that change the planning scene
_NO_GOAL = _OF_SCENE | {"grip", "wait"}  # steps without a motion
_NEEDED = frozenset({"description", "scene"})
_OF_GOAL = (
    "link",
    "orientation",
    "radius",
    "orientation_tolerance",
)  # keys that steps inherit from their task
# The keys of a task that are not options of the runner. `once`: the task leaves objects elsewhere than it found them.
_OF_TASK = frozenset({"description", "scene", "once"})
_TASK_KEYS = _OF_TASK | {"steps", "goal", "joints", "state", "replan", *_OF_GOAL}


def _numbers(value: Any, counts: Collection[int]) -> tuple[float, ...] | None:
    """None unless they are that many finite numbers."""
    try:
        numbers = tuple(float(number) for number in (value.split(",") if isinstance(value, str) else value))
    except (TypeError, ValueError):
        return None
    return numbers if len(numbers) in counts and all(map(math.isfinite, numbers)) else None


def _point(value: Any) -> Any:
    if (numbers := _numbers(value, (3,))) is None:
        raise ValueError(f"{value!r} is not three numbers x,y,z")
    return numbers


def _orientation(value: Any) -> Any:
    """As a quaternion x, y, z, w of length 1. Roll, pitch and yaw are about fixed axes, as in URDF."""
    numbers = _numbers(value, (3, 4))
    if numbers is None or (len(numbers) == 4 and not any(numbers)):
        raise ValueError(f"{value!r} is neither a quaternion x,y,z,w nor roll,pitch,yaw in rad")
    if len(numbers) == 3:
        (cr, cp, cy), (sr, sp, sy) = ([turn(angle / 2) for angle in numbers] for turn in (math.cos, math.sin))
        numbers = (
            sr * cp * cy - cr * sp * sy,
            cr * sp * cy + sr * cp * sy,
            cr * cp * sy - sr * sp * cy,
            cr * cp * cy + sr * sp * sy,
        )
    return tuple(number / math.hypot(*numbers) for number in numbers)


def _some_numbers(least: int, most: int) -> WithJsonSchema:
    numbers = {"type": "array", "items": {"type": "number"}, "minItems": least, "maxItems": most}
    return WithJsonSchema({"anyOf": [{"type": "string"}, numbers]})


Point = Annotated[tuple[float, float, float], BeforeValidator(_point), _some_numbers(3, 3)]
Orientation = Annotated[tuple[float, float, float, float], BeforeValidator(_orientation), _some_numbers(3, 4)]


PLANNERS = tuple(catalog.planners())


def _planner(value: Any) -> Any:
    """By the plain name; MoveIt's configurations have other names."""
    name = str(value).removeprefix("geometric::").removesuffix("kConfigDefault")
    if name not in PLANNERS:
        raise ValueError(f"unknown planner {value!r}; choose from {', '.join(PLANNERS)}")
    return name


def _moveits_name(planner: str) -> str:
    """The name of its configuration in MoveIt's ompl_planning.yaml."""
    return "APSConfigDefault" if planner == "AnytimePathShortening" else f"{planner}kConfigDefault"


Planner = Annotated[str, BeforeValidator(_planner), WithJsonSchema({"type": "string", "examples": list(PLANNERS)})]


# MoveIt's demo of the Panda: move_group and ros2_control with its mock hardware.
DEMO = ("ros2", "launch", "moveit_resources_panda_moveit_config", "demo.launch.py")


# Parameters of perflab's move_group, of its controllers and simulator, and of other stacks.
_OF_MOVE_GROUP = ("collision", "joint_states")
_OF_CONTROLLERS = ("controller", "drive", "path_tolerance", "goal_tolerance")
_OF_SIMULATORS = ("simulator_launch", "sim_time", "statistics")  # of a stack that executes with its own controllers
_OF_OTHERS = ("launch", "simulator_launch", "sim_time", "plans", "executes", "statistics", "ready_within")


class ManipulationParameters(Parameters):
    stack: Literal["embedded", "ros2", "attached"] = Field(
        "embedded",
        description="the planning and control stack: embedded, perflab's own programs; ros2, MoveIt and "
        "ros2_control as started by `launch`; attached, a robot or stack that already runs (in the domain of "
        "--domain)",
    )
    launch: Words = Field(list(DEMO), description=f"stack=ros2: its command line ({' '.join(DEMO)})")
    simulator_launch: Words | None = Field(
        None, description="stack=ros2: a second command line, for the simulator, if `launch` does not start it"
    )
    sim_time: Switch = Field(False, description="stack=ros2, attached: it has a simulator, which publishes /clock")
    plans: Literal["stack", "perflab"] = Field(
        "stack",
        description="stack=ros2, attached: whose move_group plans: the stack's; perflab's, and ros2_control drives the "
        "arm",
    )
    executes: Literal["stack", "perflab"] = Field(
        "stack",
        description="stack=ros2, attached: whose controllers execute: the stack's; perflab's, in its simulator, and "
        "the stack plans, on sim time",
    )
    statistics: Switch = Field(
        True,
        description="stack=ros2, attached: the loop's period and execution (T3) from /controller_manager/statistics, "
        "which ros2_control has in Jazzy; off where the stack has none",
    )
    ready_within: DurationNs = Field(
        "120s",  # type: ignore[assignment]
        gt=0,
        description="stack=ros2, attached: longest wait until it is discovered",
    )
    task: str = Field("reach", description="task from the catalog, see `perflab list tasks`")
    scene: str | None = Field(None, description="scene instead of the task's: a catalog name, or a path")
    goal: Point | None = Field(None, description="goal of the flange instead of the task's: x,y,z in m")
    radius: float | None = Field(None, ge=0, le=1, description="tolerance of the goal's position, in m (0.01)")
    orientation: Orientation | None = Field(
        None,
        description="orientation of the goal instead of downwards or the task's: a quaternion x,y,z,w, or "
        "roll,pitch,yaw in rad",
    )
    orientation_tolerance: float | None = Field(None, ge=0, le=4, description="tolerance about each axis, in rad (0.1)")
    home: Switch = Field(
        True,
        description="whether each motion begins at home; off, after two unmeasured motions, as in the original",
    )
    motions: int = Field(1, ge=1, le=1_000_000, description="motions per trial")
    planner: Planner = Field("RRTConnect", description="planner of OMPL, see `perflab list planners`")
    collision: Literal["mujoco", "fcl"] = Field(
        "mujoco",
        description="collision checker of the planner: mujoco, convex hulls; fcl, meshes by FCL as in MoveIt",
    )
    attempts: int = Field(3, ge=1, le=1000, description="plans that are computed in parallel and combined into one")
    replan: int | None = Field(
        None, ge=0, le=1000, description="most plans of a motion if one fails or would collide (the task's); 0: one"
    )
    planning_time: float = Field(5.0, ge=1e-3, le=1e4, description="time limit of planning, in s")
    warm_plans: int = Field(
        3, ge=0, le=1000, description="repetitions of the first plan of a trial, for cold against warm"
    )
    velocity_scaling: float = Field(0.5, ge=1e-3, le=1, description="share of the joints' velocity limits")
    acceleration_scaling: float = Field(0.5, ge=1e-3, le=1, description="share of the joints' acceleration limits")
    controller: Literal["embedded", "split"] = Field(
        "embedded",
        description="embedded: in the simulator's thread, as gz_ros2_control; split: a controller_manager of its own",
    )
    drive: Literal["velocity", "torque"] = Field(
        "velocity", description="velocity: the servo of gz_ros2_control; torque: torque control of the joints"
    )
    path_tolerance: float = Field(0.0, ge=0, le=10, description="tolerance of each joint on the path, in rad; 0: none")
    goal_tolerance: float = Field(0.0, ge=0, le=10, description="tolerance of each joint at the goal, in rad; 0: none")
    cancel_after: DurationNs | None = Field(
        None, gt=0, description="cancel each motion this long after it began, to measure how it stops"
    )
    joint_states: Literal["best_effort", "reliable"] = Field(
        "best_effort",
        description="reliability of move_group's subscription: SystemDefaults is best effort with rmw_fastrtps, and "
        "reliable with rmw_cyclonedds",
    )
    limit: DurationNs = Field("120s", gt=0, description="a trial that takes longer fails")  # type: ignore[assignment]

    @property
    def own_planner(self) -> bool:
        """Whether perflab's move_group plans."""
        return self.stack == EMBEDDED or self.plans == "perflab"

    @property
    def own_controllers(self) -> bool:
        """Whether perflab's controllers execute, in its simulator."""
        return self.stack == EMBEDDED or self.executes == "perflab"

    @model_validator(mode="after")
    def _of_the_stack(self) -> ManipulationParameters:
        given = self.model_fields_set
        strange = (
            *(() if self.own_planner else _OF_MOVE_GROUP),
            *(_OF_SIMULATORS if self.own_controllers else _OF_CONTROLLERS),
        )
        for name in strange if self.stack != EMBEDDED else ():
            if name in given:
                raise ValueError(f"{name}: stack={self.stack} has no such parameter; leave it out")
        if self.stack != EMBEDDED and self.own_planner and self.own_controllers:
            raise ValueError(
                "executes: where perflab plans as well, nothing is the stack's; right would be stack=embedded"
            )
        if self.stack == ROS2 and (self.own_planner or self.own_controllers) and "launch" not in given:
            part = "ros2_control" if self.own_planner else "move_group"
            raise ValueError(f"launch: the usual one starts more than the stack's part; right would be {part} alone")
        # The stack is known only at a level of a factor.
        for name in _OF_OTHERS if "stack" not in given else ():
            if name in given:
                raise ValueError(f"{name}: the embedded stack has no such parameter; add stack=ros2")
        return self

    @model_validator(mode="after")
    def _known(self) -> ManipulationParameters:
        known = tasks()
        if self.task not in known:
            raise ValueError(f"unknown task {self.task!r}; choose from {', '.join(known)}")
        if known[self.task].get("once") and self.goal is None:
            if self.motions > 1:
                raise ValueError(f"motions: task {self.task} can be done only once in a trial; use 1")
            if not self.home:
                raise ValueError(f"home: off repeats task {self.task}, which can be done only once in a trial; use on")
        return self


def tasks() -> dict[str, dict[str, Any]]:
    """The tasks of the catalog by name. Raises BadInput if a file is not a task."""
    found = {}
    for entry in catalog.tasks():
        document = catalog.read_json(entry.path)
        if document is None or not _NEEDED.issubset(document):
            raise BadInput(f"{entry.path} is not a task: it must be an object with {' and '.join(sorted(_NEEDED))}")
        if strange := sorted(_TASK_KEYS.symmetric_difference(document).intersection(document)):
            raise BadInput(f"{entry.path}: unknown key {strange[0]!r}; choose from {', '.join(sorted(_TASK_KEYS))}")
        found[entry.name] = document
    return found


def make(parameters: ManipulationParameters, message_path: Sequence[str] = ()) -> Made:
    return Made(topology.resolved(document(parameters), native.find(), message_path))


def document(p: ManipulationParameters) -> dict[str, Any]:
    """The graph, as in a graph file."""
    described = tasks()[p.task]
    scene = p.scene or described["scene"]
    task = {key: value for key, value in described.items() if key not in _OF_TASK}
    grips = any("grip" in step for step in task.get("steps", ()))
    processes = [
        *(_simulation(p, scene, task, grips) if p.own_controllers else ()),
        *([_state_publisher()] if p.stack == EMBEDDED else _outside(p, grips)),
        *([_move_group(p, scene)] if p.own_planner else ()),
        _runner(p, task, scene, grips),
    ]
    # Processes that are not perflab's have their own logs, which perflab does not need.
    own = [process for process in processes if process.get("program") != OUTSIDE]
    for node in (node for process in own for node in process["nodes"] if _is_of_ros(node)):
        node["publishers"] = [*node.get("publishers", ()), _publisher("/rosout", "rcl_interfaces/msg/Log", _LOG)]
    return {
        "name": NAME,
        "limit": f"{p.limit}ns",
        "figures": _declared_figures(p),
        "outcomes": _declared_outcomes([process["name"] for process in processes]),
        "processes": processes,
    }


def _is_of_ros(node: Mapping[str, Any]) -> bool:
    """Gazebo is not one, and the thread in which a node receives /clock is part of that node."""
    return node["name"] != "simulator" and not node["name"].endswith("_clock")


def _simulation(
    p: ManipulationParameters, scene: str, task: Mapping[str, Any], grips: bool
) -> Iterator[dict[str, Any]]:
    yield _simulator(p, scene, grips, _may_touch(task))
    if p.controller == SPLIT:
        yield _controller_manager(p, scene, grips)
    yield _clock_bridge()


def _outside(p: ManipulationParameters, grips: bool) -> Iterator[dict[str, Any]]:
    """MoveIt, ros2_control and the robot's simulator, as perflab's processes find them: one server of each action and
    one publisher of each topic. Further ones belong to another stack."""
    nodes = [*(() if p.own_controllers else _controllers_outside(p, grips))]
    if not p.own_planner:
        nodes.append(_planner_outside(p, grips))
    clock = {"publishers": [_publisher("/clock", "rosgraph_msgs/msg/Clock", {"depth": 10})]}
    simulator = [{"name": "clock_bridge", **clock}] if p.sim_time else []
    apart = p.stack == ROS2 and p.simulator_launch is not None
    if apart:
        shown = simulator or [{"name": "simulator"}]
        yield _started("simulator", p, p.simulator_launch, shown)
    yield _started("stack", p, p.launch if p.stack == ROS2 else None, nodes if apart else [*nodes, *simulator])


def _controllers_outside(p: ManipulationParameters, grips: bool) -> Iterator[dict[str, Any]]:
    broadcaster = {"publishers": [_publisher("/joint_states", "sensor_msgs/msg/JointState", _LAST)]}
    yield {"name": "joint_state_broadcaster", **broadcaster}
    yield {"name": ARM.removeprefix("/"), "action_servers": [_TRAJECTORY_END]}
    if grips:
        yield {"name": HAND.removeprefix("/"), "action_servers": [_GRIPPER_END]}
    if p.statistics:
        yield {"name": "controller_manager", "publishers": _loop_figures("~/statistics", _ALL)}


def _planner_outside(p: ManipulationParameters, grips: bool) -> dict[str, Any]:
    node = {"name": "move_group", "servers": [*_SCENE_SERVICES], "action_servers": [_MOVE_END]}
    if not p.own_controllers:
        return node
    clients = [_TRAJECTORY_END, *([_GRIPPER_END] if grips else ())]
    heard = [
        _subscription("/joint_states", "sensor_msgs/msg/JointState"),
        _subscription("/clock", "rosgraph_msgs/msg/Clock", _CLOCK),
    ]
    return node | {"action_clients": clients, "subscriptions": heard}


def _started(
    name: str, p: ManipulationParameters, command: Sequence[str] | None, nodes: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    options = {"within": f"{p.ready_within}ns", **({} if command is None else {"command": list(command)})}
    names = {node["name"]: node for node in nodes}
    if "controller_manager" in names:
        options["hint"] = "one without /controller_manager/statistics needs statistics=off"
    elif _GRIPPER_END in names.get("move_group", {}).get("action_clients", ()):
        options["hint"] = f"this task needs {HAND} (GripperCommand) among the controllers that MoveIt knows"
    return {"name": name, "program": OUTSIDE, "options": options, "nodes": list(nodes)}


# SystemDefaults of a writer: reliable, with a history of 1.
_LAST = {"depth": 1}
_DEEP = {"depth": 100}
_LATCHED = {"depth": 1, "durability": "transient_local"}
_CLOCK = {"depth": 1, "reliability": "best_effort"}
_LOG = {"depth": 1000, "durability": "transient_local"}
_PER_CPU = {"id": 0, "kind": "multi_threaded"}  # as many threads as the machine has CPUs, as in rclcpp


def _publisher(topic: str, type_: str, qos: Mapping[str, Any] | None = None) -> dict[str, Any]:
    return {"topic": topic, "type": type_, "qos": dict(qos or {})}


_subscription = _publisher


def _on_sim_time(process: dict[str, Any], *nodes: str) -> dict[str, Any]:
    """The process, in which each of these nodes receives /clock in its own thread, as in rclcpp with sim time."""
    executors = process.get("executors") or [{"id": 0, "kind": "single_threaded"}]
    first = 1 + max(executor["id"] for executor in executors)
    clocks = [
        {
            "name": f"{node}_clock",
            "executor": number,
            "subscriptions": [_subscription("/clock", "rosgraph_msgs/msg/Clock", _CLOCK)],
        }
        for number, node in enumerate(nodes, first)
    ]
    own = [{"id": clock["executor"], "kind": "single_threaded"} for clock in clocks]
    with_executor = [{"executor": 0, **node} for node in process["nodes"]]
    return {**process, "executors": [*executors, *own], "nodes": [*with_executor, *clocks]}


_CHANGES = {"service": "/apply_planning_scene", "type": "moveit_msgs/srv/ApplyPlanningScene"}
_KNOWS = {"service": "/get_planning_scene", "type": "moveit_msgs/srv/GetPlanningScene"}
_SCENE_SERVICES = (_CHANGES, _KNOWS)


def _may_touch(task: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The pairs of bodies that the steps of a task allow to touch, and never forbid again."""
    allowed: dict[frozenset[str], list[str]] = {}
    for step in task.get("steps", ()):
        if "allow" in step:
            allowed[frozenset(step["allow"])] = step["allow"]
        elif "forbid" in step:
            allowed.pop(frozenset(step["forbid"]), None)
    return [{"pair": pair} for pair in allowed.values()]


def _simulator(p: ManipulationParameters, scene: str, grips: bool, may_touch: list[dict[str, Any]]) -> dict[str, Any]:
    world = {"name": "simulator", "publishers": [_publisher("/world/clock", "rosgraph_msgs/msg/Clock", _DEEP)]}
    controllers = _controllers(grips) if p.controller == EMBEDDED else []
    steps = "control" if controllers else "physics"
    threads: dict[str, Any] = {name: {} for name in (steps, "clock", *(_CONTROLLER_THREADS if controllers else ()))}
    options: dict[str, Any] = {"scene": scene, "drive": p.drive, "controller": p.controller}
    if may_touch:
        options["may_touch"] = may_touch
    process = {
        "name": "simulator",
        "program": "perflab-simulator",
        "options": options | (_controller_options(p, grips) if controllers else {}),
        "threads": threads,
        "executors": [_PER_CPU],
        "nodes": [world, *controllers],
    }
    return _on_sim_time(process, *(node["name"] for node in controllers))


def _controller_manager(p: ManipulationParameters, scene: str, grips: bool) -> dict[str, Any]:
    return {
        "name": "controller_manager",
        "program": "perflab-controller-manager",
        "options": _controller_options(p, grips),
        "threads": {name: {} for name in ("control", *_CONTROLLER_THREADS)},
        "executors": [_PER_CPU],
        "nodes": [{**node, "executor": 0} for node in _controllers(grips)],
    }


_CONTROLLER_THREADS = ("joint_states", "dynamic_states", "arm_state", "manager")


def _controller_options(p: ManipulationParameters, grips: bool) -> dict[str, Any]:
    return {"path_tolerance": p.path_tolerance, "goal_tolerance": p.goal_tolerance, "gripper": grips}


def _controllers(grips: bool) -> list[dict[str, Any]]:
    broadcaster = {
        "name": "joint_state_broadcaster",
        "publishers": [
            _publisher("/joint_states", "sensor_msgs/msg/JointState", _LAST),
            _publisher("/dynamic_joint_states", "control_msgs/msg/DynamicJointState", _LAST),
        ],
    }
    state = "control_msgs/msg/JointTrajectoryControllerState"
    arm = {
        "name": ARM.removeprefix("/"),
        "publishers": [_publisher(f"{ARM}/controller_state", state, _LAST)],
        "action_servers": [_TRAJECTORY_END],
    }
    hand = {
        "name": HAND.removeprefix("/"),
        "action_servers": [_GRIPPER_END],
    }
    return [broadcaster, arm, *([hand] if grips else ()), _manager()]


_MOVE_END = {"action": MOVES, "type": "moveit_msgs/action/MoveGroup"}
_TRAJECTORY_END = {"action": TRAJECTORIES, "type": "control_msgs/action/FollowJointTrajectory"}
_GRIPPER_END = {"action": GRIPPER, "type": "control_msgs/action/GripperCommand"}
_MANAGER_SERVICES = {
    "list_controllers": "ListControllers",
    "list_controller_types": "ListControllerTypes",
    "list_hardware_components": "ListHardwareComponents",
    "list_hardware_interfaces": "ListHardwareInterfaces",
    "switch_controller": "SwitchController",
}
_ALL: Mapping[str, Any] = {"history": "keep_all"}
# Who listens to a robot's control loop never makes it wait.
_BEST_EFFORT: Mapping[str, Any] = {"depth": 100, "reliability": "best_effort"}


def _statistics(topic: str) -> list[dict[str, Any]]:
    """pal_statistics' topics of a registry."""
    return [*_loop_figures(topic, _ALL), _publisher(f"{topic}/full", "pal_statistics_msgs/msg/Statistics", _ALL)]


def _loop_figures(topic: str, qos: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The names of its figures, sent once, and their values, sent each cycle."""
    return [
        _publisher(f"{topic}/names", "pal_statistics_msgs/msg/StatisticsNames", _LATCHED),
        _publisher(f"{topic}/values", "pal_statistics_msgs/msg/StatisticsValues", qos),
    ]


def _manager() -> dict[str, Any]:
    """ros2_control's node of this name, with pal_statistics' topics for the loop's figures and all interfaces."""
    return {
        "name": "controller_manager",
        "publishers": [
            _publisher("~/activity", "controller_manager_msgs/msg/ControllerManagerActivity", _LATCHED),
            *_statistics("~/statistics"),
            *_statistics("~/introspection_data"),
        ],
        "servers": [
            {"service": f"~/{name}", "type": f"controller_manager_msgs/srv/{type_}"}
            for name, type_ in _MANAGER_SERVICES.items()
        ],
    }


def _clock_bridge() -> dict[str, Any]:
    node = {
        "name": "clock_bridge",
        "subscriptions": [_subscription("/world/clock", "rosgraph_msgs/msg/Clock", _DEEP)],
        "publishers": [_publisher("/clock", "rosgraph_msgs/msg/Clock")],
    }
    return {"name": "clock_bridge", "program": "perflab-clock-bridge", "nodes": [node]}


def _state_publisher() -> dict[str, Any]:
    node = {
        "name": "robot_state_publisher",
        "subscriptions": [
            _subscription("/joint_states", "sensor_msgs/msg/JointState", {"depth": 5, "reliability": "best_effort"})
        ],
        "publishers": [
            _publisher("/tf", "tf2_msgs/msg/TFMessage", _DEEP),
            _publisher("/tf_static", "tf2_msgs/msg/TFMessage", _LATCHED),
            _publisher("/robot_description", "std_msgs/msg/String", _LATCHED),
        ],
    }
    process = {"name": "robot_state_publisher", "program": "perflab-state-publisher", "nodes": [node]}
    return _on_sim_time(process, "robot_state_publisher")


def _move_group(p: ManipulationParameters, scene: str) -> dict[str, Any]:
    node = {
        "name": "move_group",
        "executor": 0,
        "publishers": [
            _publisher("/display_planned_path", "moveit_msgs/msg/DisplayTrajectory"),
            _publisher("/robot_description_semantic", "std_msgs/msg/String", _LATCHED),
        ],
        "servers": [*_SCENE_SERVICES],
        "action_servers": [_MOVE_END],
        "action_clients": [_TRAJECTORY_END],
    }
    # It takes them in as MoveIt does, and reads the arm from /joint_states. Not every stack has them.
    frames = [
        _subscription("/tf", "tf2_msgs/msg/TFMessage", _DEEP),
        _subscription("/tf_static", "tf2_msgs/msg/TFMessage", _LATCHED),
    ]
    sim_time = p.stack == EMBEDDED or p.sim_time
    private = {
        "name": "move_group_private",
        "executor": 1,
        "subscriptions": [
            _subscription("/joint_states", "sensor_msgs/msg/JointState", {"depth": 1, "reliability": p.joint_states}),
            *(frames if p.stack == EMBEDDED else ()),
        ],
        "publishers": [_publisher("/monitored_planning_scene", "moveit_msgs/msg/PlanningScene", _DEEP)],
    }
    process = {
        "name": "move_group",
        "program": "perflab-move-group",
        "options": {"scene": scene, "collision": p.collision} | ({} if sim_time else {"sim_time": False}),
        "threads": {name: {} for name in ("move_action", "planner", "execution", "scene_publisher")},
        "executors": [_PER_CPU, {"id": 1, "kind": "single_threaded"}],
        "nodes": [node, private],
    }
    return _on_sim_time(process, "move_group", "move_group_private") if sim_time else process


def _with_common(task: Mapping[str, Any]) -> dict[str, Any]:
    """The task, with the keys that its steps share copied into each of them."""
    if "steps" not in task:
        return dict(task)
    common = {key: task[key] for key in _OF_GOAL if key in task}
    steps = [common | step if "goal" in step else dict(step) for step in task["steps"]]
    return {key: value for key, value in task.items() if key not in common} | {"steps": steps}


def _runner(p: ManipulationParameters, task: Mapping[str, Any], scene: str, grips: bool) -> dict[str, Any]:
    known = p.own_planner  # whether move_group has perflab's names and scenes
    statistics = not p.own_controllers and p.statistics
    keys = {key for step in task.get("steps", ()) for key in step}
    node: dict[str, Any] = {
        "name": "benchmark_runner",
        "subscriptions": [
            _subscription("/joint_states", "sensor_msgs/msg/JointState", _CLOCK),
            *(_loop_figures("/controller_manager/statistics", _BEST_EFFORT) if statistics else ()),
        ],
        "action_clients": [
            _MOVE_END,
            *([_GRIPPER_END] if grips else ()),
        ],
    }
    # Ends that only show whether the stack is there, and is unique: a controller of an earlier run would answer, too.
    if not known and not p.own_controllers:
        node["action_clients"] += [_TRAJECTORY_END]
    if p.stack != EMBEDDED and p.sim_time:
        node["subscriptions"] += [_subscription("/clock", "rosgraph_msgs/msg/Clock", _CLOCK)]
    asks = bool(keys & _OF_CONTACT)  # what may touch already
    if keys & _OF_SCENE or not known:
        node["clients"] = [_CHANGES, *([_KNOWS] if asks else ())]
    asked = {
        "home": p.home,
        "motions": p.motions,
        "planner": p.planner if known else _moveits_name(p.planner),
        "attempts": p.attempts,
        "planning_time": p.planning_time,
        "warm_plans": p.warm_plans,
        "velocity_scaling": p.velocity_scaling,
        "acceleration_scaling": p.acceleration_scaling,
    }
    if not known:
        asked["scene"] = scene
    if statistics:
        asked["statistics"] = True
    if p.cancel_after is not None:
        asked["cancel_after"] = f"{p.cancel_after}ns"
    return {
        "name": "benchmark_runner",
        "program": "perflab-move-runner",
        "ends": True,
        "options": asked | _where(p, task),
        "threads": {"runner": {}},
        "nodes": [node],
    }


def _where(p: ManipulationParameters, task: Mapping[str, Any]) -> dict[str, Any]:
    """The goal or the steps, and what parameters say of them."""
    where = _with_common(task)
    if p.replan is not None:
        where["replan"] = p.replan
    if p.goal is not None:
        for key in ("steps", "joints", "state"):
            where.pop(key, None)
        where["goal"] = list(p.goal)
    for goal in (where, *where.get("steps", ())):
        if "goal" in goal:
            goal |= {
                key: value for key in ("radius", "orientation_tolerance") if (value := getattr(p, key)) is not None
            }
            if p.orientation is not None:
                goal["orientation"] = list(p.orientation)
    return where


# ---- what a trial reports --------------------------------------------------------------------------------------------


def judge(ended: Ended) -> Judgement:
    """As declared in the graph; a successful trial for which no program reports an outcome reached its goal, and one
    that ended early has the outcome of the process, or of the unfinished step."""
    found = ended.passed_on()
    if ended.broken_off is not None:
        outcome, reason = _broken_off(ended.broken_off, ended.said)
        found = replace(found, outcome=outcome, reason=reason)
    if (share := found.figures.get("success")) is not None:
        # Six sixths of 100 % are 100 %, and a criterion may ask for them.
        found = replace(found, figures={**found.figures, "success": round(share, 6)})
    succeeded = found.outcome is None and ended.trial.outcome == SUCCESS
    return replace(found, outcome=SUCCEEDED) if succeeded else found


def _broken_off(broken: BrokenOff, said: Sequence[SaidOutcome]) -> tuple[str, str | None]:
    """Outcome and reason. What programs report after it has ended early is their state then, or a consequence."""
    unended = [one for one in said if one.name.startswith(UNENDED)]
    words = [f"{one.process}: {one.reason}" for one in unended]
    first = next(iter(said), None)
    if first is not None and first.at_ns < broken.at_ns:
        name, words = first.name, [first.reason, *(words if first not in unended else words[1:])]
    elif broken.process is not None:
        name = f"{broken.why}_{broken.process}"
    else:
        name = unended[0].name if unended else UNENDED
    return name, "; ".join(words) or None


def goals(p: ManipulationParameters) -> int:
    """The number of goals of a trial."""
    steps = [] if p.goal is not None else tasks()[p.task].get("steps", [])
    return p.motions * (sum(not _NO_GOAL.intersection(step) for step in steps) or 1)


def _time(words: str, scale: Literal["ratio", "difference"] = "ratio") -> OwnFigure:
    return OwnFigure(words=words, unit="ns", scale=scale)


_FIGURES: Mapping[str, OwnFigure] = {
    "planning": _time("planning (T1)"),
    "execution": _time("execution (T2)"),
    "execution_overhead": _time("T2 beyond nominal", "difference"),
    "total": _time("total (T4)"),
    "success": OwnFigure(words="motions at their goal", unit="%", better="higher", scale="difference"),
    "tip_error": OwnFigure(words="tip error", unit="mm", scale="difference"),
    "planning_seen": _time("planning as seen by the client, from feedback"),
    "execution_seen": _time("execution as seen by the client"),
    "execution_overhead_seen": _time("the same beyond nominal", "difference"),
    "execution_failed": _time("execution until it failed"),
    "planning_cold": _time("first plan of a fresh move_group"),
    "planning_warm": _time("the same plan again"),
    "bring_up": _time("bring-up until the first planning request"),
    "planning_accept": _time("goal received to PLANNING (before T1)"),
    "planning_state_wait": _time("for a fresh state (of T1)"),
    "planning_ik": _time("inverse kinematics (of T1)"),
    "planning_solve": _time("planner (of T1)"),
    "planning_simplify": _time("simplification (of T1)"),
    "planning_parameterize": _time("time parameterisation (of T1)"),
    "planning_validate": _time("validation (of T1)"),
    "replans": OwnFigure(words="plans after the first of a motion (in T1)", unit="", scale="difference"),
    "execution_nominal": _time("nominal duration of the trajectory (of T2)"),
    "execution_controller": _time("trajectory by the controller's clock (of T2)"),
    "execution_state_wait": _time("for a fresh state before it (of T2)"),
    "execution_accept": _time("goal sent to accepted (of T2)"),
    "execution_result": _time("accepted to result (of T2)"),
    "execution_standstill": _time("until the arm stands still (of T2)"),
    "settling": _time("from the trajectory's end to standstill", "difference"),
    "tracking_rms": OwnFigure(words="deviation from the trajectory, root mean square", unit="mrad"),
    "tracking_max": OwnFigure(words="largest deviation from the trajectory", unit="mrad"),
    "path_length": OwnFigure(words="length of the path in joint space", unit="rad"),
    "path_ratio": OwnFigure(words="path by the straight line", unit=""),
    "stop_latency": _time("stop from the controller's cancel"),
    "stopping_distance": OwnFigure(words="stopping distance from the controller's cancel", unit="mm"),
    "stop_seen": _time("stop from the client's cancel"),
    "stopping_distance_seen": OwnFigure(words="stopping distance from the client's cancel", unit="mm"),
    "real_time_factor": OwnFigure(words="real-time factor (T5)", unit="", better="higher", scale="difference"),
    "late_steps": OwnFigure(words="steps of the simulation that began late (T5)", unit="", scale="difference"),
    "control_seen": OwnFigure(
        words="cycles of the control loop that its statistics tell of (T3)",
        unit="%",
        better="higher",
        scale="difference",
    ),
    "overruns": OwnFigure(words="overruns of the control loop (T3)", unit="", scale="difference"),
    "joint_state_age": _time("age of the joint states at move_group"),
    "clock_age": _time("age of /clock at move_group"),
}

# Figures that reports compare by default; all others are in tables, and `--metric` compares them.
_COMPARED = frozenset({"planning", "execution_overhead", "total", "success", "tip_error", "real_time_factor"})
FIGURES = {name: replace(figure, compared=name in _COMPARED) for name, figure in _FIGURES.items()}

TIMES: Mapping[str, OwnTimes] = {
    "control_period": OwnTimes(words="between cycles of the control loop (T3)", drawn=True),
    "control_lateness": OwnTimes(words="control loop after it was due (T3)", drawn=True, floor="cyclictest"),
    "control_execution": OwnTimes(words="work of a control cycle (T3)"),
    "step_execution": OwnTimes(words="work of a step of the simulation (T5)"),
    "collision_check": OwnTimes(words="whether a motion touches anything"),
    "planning_times": OwnTimes(words="planning of each motion (T1)"),
    "execution_times": OwnTimes(words="execution of each motion (T2)"),
    "total_times": OwnTimes(words="goal to result of each motion (T4)"),
}

OUTCOMES = {
    "stack_not_ready": "the stack did not become ready",
    "no_state": "no fresh state of the joints",
    "home_failed": "the arm did not reach home",
    "server_not_ready": "the action server was not ready",
    "goal_rejected": "the goal was rejected",
    "planning_failed": "planning failed",
    "planning_timeout": "planning took too long",
    "scene_rejected": "the change of the scene was refused",
    "start_deviation": "the arm was not where the trajectory begins",
    "result_unknown": "the controller did not recognise the goal",
    "path_tolerance": "the arm left its path",
    "goal_tolerance": "the controller did not reach its goal",
    "execution_timeout": "execution took too long",
    "collision": "the arm, or the held object, touched something",
    "would_collide": "the start, the goal or the rest of the path would collide",
    "grasp_failed": "the hand did not grasp the object",
    "preempted": "the motion was stopped",
    "goal_canceled": "the goal was cancelled",
    "goal_aborted": "the goal was aborted",
    "goal_missed": "the tip did not end at the goal",
    "no_result": "no result came",
    UNENDED: "cut off",
    f"{UNENDED}_bring_up": "cut off while the stack started",
    f"{UNENDED}_planning": "cut off in planning",
    f"{UNENDED}_execution": "cut off in execution",
    f"{UNENDED}_step": "cut off between motions",
}
"""The check that refused or failed, by the programs' name for it (native/manipulation)."""

# Outcomes of each process, by what ended the trial early (BrokenOff.why).
_OF_PROCESSES = {
    "ended": "{} ended",
    "failed": "{} failed",
    "silent": "{} sent no more reports",
    "stuck": "{} did not end",
}

# Programs report SI units, and shares from 0 to 1: the factors for the units of the figures.
_FACTORS = {"ns": float(NS_PER_S), "mm": 1e3, "mrad": 1e3, "%": 100.0}
# How the values of several motions are combined; default the median.
_SEVERAL = {"late_steps": "sum", "overruns": "sum", "replans": "sum", "success": "sum"}


def _declared_figures(p: ManipulationParameters) -> dict[str, Any]:
    """As in a graph file; success is the share of all goals of the trial, tried or not."""
    made: dict[str, Any] = {}
    for name, figure in FIGURES.items():
        factor = {"factor": _FACTORS[figure.unit]} if figure.unit in _FACTORS else {}
        if name == "success":
            factor = {"factor": _FACTORS["%"] / goals(p)}
        several = {"several": _SEVERAL[name]} if name in _SEVERAL else {}
        made[name] = figure.declaration | factor | several
    return made | {name: times.declaration for name, times in TIMES.items()}


def _declared_outcomes(processes: Sequence[str]) -> dict[str, Any]:
    succeeded = {SUCCEEDED: {"words": "reached its goal", "of": str(SUCCESS)}}
    of_processes = {f"{why}_{p}": words.format(p) for p in processes for why, words in _OF_PROCESSES.items()}
    return succeeded | {name: {"words": words} for name, words in (OUTCOMES | of_processes).items()}


def needs() -> list[Need]:
    """The requirements of stack=ros2 beyond perflab."""
    found = []
    for part, (summary, packages) in _PACKAGES.items():
        missing = [package for package in packages if not outside.has_package(package)]
        install = f"sudo apt install {' '.join(map(outside.apt_name, missing))}"
        found.append(Need(part, summary, available=not missing, install=install))
    return found


_PACKAGES = {
    "stack=ros2": (
        "MoveIt and ros2_control, with mock hardware",
        (
            "moveit_ros_move_group", "moveit_planners_ompl", "moveit_simple_controller_manager",
            "moveit_resources_panda_moveit_config", "controller_manager", "joint_trajectory_controller",
            "joint_state_broadcaster", "gripper_controllers",
        ),
    ),
    "stack=ros2,plans=perflab": (
        "ros2_control, with mock hardware",
        ("controller_manager", "joint_trajectory_controller", "joint_state_broadcaster"),
    ),
    "stack=ros2 in Gazebo": ("Gazebo and ros2_control in it", ("ros_gz_sim", "ros_gz_bridge", "gz_ros2_control")),
}  # fmt: skip

KIND = WorkloadKind(
    NAME,
    "a simulated Panda that plans and moves, with the nodes of MoveIt and ros2_control",
    ManipulationParameters,
    make,
    judge=judge,
    create_with=make,
    tried=True,
    needs=needs,
)
