"""The workload `manipulation`: its graph, its tasks, and what it makes of what its programs say."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest

from perflab import catalog
from perflab.errors import BadInput
from perflab.results.outcome import FAILED, SUCCESS, BrokenOff
from perflab.statistics.said import Said, SaidOutcome
from perflab.workload import Graph, Judgement, Made, Origin, manipulation, outside
from perflab.workload.manipulation import FIGURES, KIND, TIMES, ManipulationParameters


def document(**given: Any) -> dict[str, Any]:
    return manipulation.document(ManipulationParameters.model_validate(given))


def process(graph: dict[str, Any], name: str) -> dict[str, Any]:
    (found,) = (p for p in graph["processes"] if p["name"] == name)
    return found  # type: ignore[no-any-return]


def judged(
    outcome: Any = SUCCESS,
    said: Sequence[SaidOutcome] = (),
    given: Any = MappingProxyType({}),
    broken_off: BrokenOff | None = None,
    **figures: tuple[float, ...],
) -> Judgement:
    """What the kind makes of a trial in which programs said this, by what its graph declares."""
    declared = document(**given)
    outcomes = {name: {"of": "failed"} | written for name, written in declared["outcomes"].items()}
    graph = Graph({"name": "g", "processes": [], "own_figures": declared["figures"], "own_outcomes": outcomes})
    trial: Any = SimpleNamespace(outcome=outcome)
    made = Made(graph, origin=Origin(KIND, {}))
    return made.judged(trial, Path(), said=Said(figures=figures, outcomes=tuple(said)), broken_off=broken_off)[0]


def says(name: str, at_ns: int = 1, process: str = "simulator", reason: str = "why") -> SaidOutcome:
    return SaidOutcome(process=process, name=name, reason=reason, at_ns=at_ns)


def test_every_task_of_the_catalog_makes_a_graph_with_one_process_that_ends_it() -> None:
    assert set(manipulation.tasks()) == {
        "pick_and_place", "reach", "reach_behind_obstacle", "reach_into_shelf", "sequence"
    }  # fmt: skip
    for task in manipulation.tasks():
        graph = document(task=task)
        assert [p["name"] for p in graph["processes"] if p.get("ends")] == ["benchmark_runner"]
        assert all(p["program"].startswith("perflab-") for p in graph["processes"])


def test_a_controller_of_its_own_is_one_process_more_and_takes_the_controllers_along() -> None:
    embedded, split = document(), document(controller="split")
    names = [p["name"] for p in split["processes"]]
    assert names == ["simulator", "controller_manager", *(p["name"] for p in embedded["processes"][1:])]
    controllers = process(split, "controller_manager")["nodes"]
    assert process(embedded, "simulator")["nodes"][1 : len(controllers) + 1] == controllers
    assert "physics" in process(split, "simulator")["threads"]


def test_each_node_on_sim_time_hears_the_clock_in_a_thread_of_its_own() -> None:
    def heard(controller: str) -> dict[str, list[str]]:
        return {
            p["name"]: [
                node["name"]
                for node in p["nodes"]
                if any(s["topic"] == "/clock" for s in node.get("subscriptions", ()))
                and [other["executor"] for other in p["nodes"]].count(node["executor"]) == 1
            ]
            for p in document(controller=controller)["processes"]
        }

    embedded, split = heard("embedded"), heard("split")
    controllers = ("joint_state_broadcaster", "panda_arm_controller", "controller_manager")
    assert embedded["simulator"] == [f"{node}_clock" for node in controllers]
    assert split["simulator"] == split["controller_manager"] == []  # that manager is on the wall's time
    for found in (embedded, split):
        assert found["move_group"] == ["move_group_clock", "move_group_private_clock"]
        assert found["robot_state_publisher"] == ["robot_state_publisher_clock"]
        assert found["benchmark_runner"] == []


# Of MoveIt, ros2_control and robot_state_publisher (Jazzy) with gz_ros2_control: topic, type, who publishes it, who
# reads it; depth, reliability and durability of both ends. SystemDefaults of a reader are those of rmw_fastrtps.
RELIABLE, BEST, LATCHED = "reliable", "best_effort", "transient_local"
TOPICS: dict[str, tuple[str, dict[str, tuple[Any, ...]], dict[str, tuple[Any, ...]]]] = {
    "/clock": (
        "rosgraph_msgs/msg/Clock",
        {"clock_bridge": (10, RELIABLE)},
        dict.fromkeys(
            (
                "joint_state_broadcaster_clock", "panda_arm_controller_clock", "controller_manager_clock",
                "robot_state_publisher_clock", "move_group_clock", "move_group_private_clock",
            ),
            (1, BEST),
        ),
    ),
    "/joint_states": (
        "sensor_msgs/msg/JointState",
        {"joint_state_broadcaster": (1, RELIABLE)},
        {"move_group_private": (1, BEST), "robot_state_publisher": (5, BEST), "benchmark_runner": (1, BEST)},
    ),
    "/dynamic_joint_states": (
        "control_msgs/msg/DynamicJointState", {"joint_state_broadcaster": (1, RELIABLE)}, {}
    ),
    "/panda_arm_controller/controller_state": (
        "control_msgs/msg/JointTrajectoryControllerState", {"panda_arm_controller": (1, RELIABLE)}, {}
    ),
    "/tf": (
        "tf2_msgs/msg/TFMessage",
        {"robot_state_publisher": (100, RELIABLE)},
        {"move_group_private": (100, RELIABLE)},
    ),
    "/tf_static": (
        "tf2_msgs/msg/TFMessage",
        {"robot_state_publisher": (1, RELIABLE, LATCHED)},
        {"move_group_private": (1, RELIABLE, LATCHED)},
    ),
    "/robot_description": ("std_msgs/msg/String", {"robot_state_publisher": (1, RELIABLE, LATCHED)}, {}),
    "/robot_description_semantic": ("std_msgs/msg/String", {"move_group": (1, RELIABLE, LATCHED)}, {}),
    "/monitored_planning_scene": ("moveit_msgs/msg/PlanningScene", {"move_group_private": (100, RELIABLE)}, {}),
    "/rosout": (
        "rcl_interfaces/msg/Log",
        dict.fromkeys(
            (
                "joint_state_broadcaster", "panda_arm_controller", "controller_manager", "clock_bridge",
                "robot_state_publisher", "move_group", "move_group_private", "benchmark_runner",
            ),
            (1000, RELIABLE, LATCHED),
        ),
        {},
    ),
    "/display_planned_path": ("moveit_msgs/msg/DisplayTrajectory", {"move_group": (10, RELIABLE)}, {}),
}  # fmt: skip
ACTIONS = {
    "/move_action": ("moveit_msgs/action/MoveGroup", ["move_group"], ["benchmark_runner"]),
    "/panda_arm_controller/follow_joint_trajectory": (
        "control_msgs/action/FollowJointTrajectory", ["panda_arm_controller"], ["move_group"]
    ),
}  # fmt: skip


def test_topics_actions_and_their_qos_are_those_of_the_stack_that_it_stands_for() -> None:
    nodes = [node for p in document()["processes"] for node in p["nodes"]]

    def ends(which: str, topic: str) -> dict[str, tuple[Any, ...]]:
        return {
            node["name"]: qos_of(end["qos"]) for node in nodes for end in node.get(which, ()) if end["topic"] == topic
        }

    def qos_of(qos: dict[str, Any]) -> tuple[Any, ...]:
        durable = (qos["durability"],) if "durability" in qos else ()
        return (qos.get("depth", 10), qos.get("reliability", RELIABLE), *durable)

    found = {
        end["topic"]: end["type"]
        for node in nodes
        for which in ("publishers", "subscriptions")
        for end in node.get(which, ())
    }
    inner = {topic for topic in found if topic.startswith(("/world/", "~/"))}  # of Gazebo, and of controller_manager
    assert {
        topic: (found[topic], ends("publishers", topic), ends("subscriptions", topic)) for topic in set(found) - inner
    } == TOPICS
    actions = {
        action["action"]: (
            action["type"],
            *(
                [node["name"] for node in nodes for end in node.get(which, ()) if end["action"] == action["action"]]
                for which in ("action_servers", "action_clients")
            ),
        )
        for node in nodes
        for action in node.get("action_servers", ())
    }
    assert actions == ACTIONS


def test_the_hand_is_there_where_a_step_needs_it() -> None:
    def servers(task: str) -> list[str]:
        nodes = process(document(task=task), "simulator")["nodes"]
        return [s["action"] for node in nodes for s in node.get("action_servers", ())]

    assert servers("reach") == [manipulation.TRAJECTORIES]
    assert servers("pick_and_place") == [manipulation.TRAJECTORIES, manipulation.GRIPPER]


def test_the_runner_asks_what_may_touch_where_its_steps_change_that() -> None:
    def asked(**given: Any) -> list[str]:
        (runner,) = process(document(**given), "benchmark_runner")["nodes"]
        return [client["service"] for client in runner.get("clients", ())]

    assert asked(task="pick_and_place") == ["/apply_planning_scene", "/get_planning_scene"]
    assert asked(task="reach") == []
    assert asked(task="reach", stack="ros2") == ["/apply_planning_scene"]


def test_a_goal_takes_the_place_of_the_tasks_own() -> None:
    options = process(document(task="sequence", goal=(0.3, 0.1, 0.6), radius=0.02), "benchmark_runner")["options"]
    assert options["goal"] == [0.3, 0.1, 0.6]
    assert options["radius"] == 0.02
    assert "steps" not in options


@pytest.mark.parametrize(
    ("given", "quaternion"),
    [
        ("0,2,0,0", (0.0, 1.0, 0.0, 0.0)),
        ("3.14159265358979,0,0", (1.0, 0.0, 0.0, 0.0)),
        ((0.0, 0.0, math.pi / 2), (0.0, 0.0, math.sqrt(0.5), math.sqrt(0.5))),
        # Roll first, about fixed axes: x goes to y by the yaw, y to z and z to x by both.
        ((math.pi / 2, 0.0, math.pi / 2), (0.5, 0.5, 0.5, 0.5)),
    ],
)
def test_an_orientation_is_a_quaternion_or_roll_pitch_yaw_of_every_goal(given: Any, quaternion: Any) -> None:
    options = process(document(task="sequence", orientation=given), "benchmark_runner")["options"]
    assert [step["orientation"] for step in options["steps"]] == [pytest.approx(quaternion, abs=1e-12)] * 4


def test_every_parameter_changes_the_graph() -> None:
    others: dict[str, Any] = {
        "task": "sequence", "scene": "shelf", "goal": (0.3, 0.0, 0.6), "radius": 0.02, "orientation_tolerance": 0.2,
        "orientation": (1.0, 0.0, 0.0, 0.0),
        "home": "off", "motions": 2, "planner": "PRM", "collision": "fcl", "attempts": 1, "replan": 0,
        "planning_time": 1.0, "warm_plans": 0, "velocity_scaling": 0.1, "acceleration_scaling": 0.1,
        "controller": "split", "drive": "torque", "path_tolerance": 0.1, "goal_tolerance": 0.1,
        "cancel_after": "1s", "joint_states": "reliable", "limit": "5s", "stack": "attached",
    }  # fmt: skip
    elsewhere = {
        "launch": "ros2 launch my_robot all.launch.py", "simulator_launch": "gz sim", "sim_time": "on",
        "ready_within": "5s", "plans": "perflab", "executes": "perflab", "statistics": "off",
    }  # fmt: skip
    assert {*others, *elsewhere} == set(ManipulationParameters.model_fields)
    usual, on_ros2 = document(), document(stack="ros2")
    for name, value in others.items():
        assert document(**{name: value}) != usual, name
    for name, value in elsewhere.items():
        launch = {"launch": " ".join(manipulation.DEMO)} if name in ("plans", "executes") else {}
        assert document(stack="ros2", **{name: value}, **launch) != on_ros2, name


def test_a_stack_outside_is_what_the_runner_meets_once_and_no_process_of_perflabs() -> None:
    graph = Graph(document(stack="ros2", sim_time="on", simulator_launch="gz sim", launch="ros2 launch a b.py"))
    assert (graph.own_processes, list(graph.programs)) == (["benchmark_runner"], ["benchmark_runner"])
    assert {name: said["command"] for name, said in graph.outside.items()} == {
        "simulator": ["gz", "sim"], "stack": ["ros2", "launch", "a", "b.py"],
    }  # fmt: skip
    assert graph.started_outside == ("simulator", "stack")
    servers = {
        s["action"] for p in graph.document["processes"] for n in p["nodes"] for s in n.get("action_servers", ())
    }
    assert servers == {"/move_action", "/panda_arm_controller/follow_joint_trajectory"}
    (runner,) = process(graph.document, "benchmark_runner")["nodes"]
    assert {client["action"] for client in runner["action_clients"]} == servers
    figures = {f"/controller_manager/statistics/{which}" for which in ("names", "values")}
    assert {s["topic"] for s in runner["subscriptions"]} == {"/joint_states", "/clock", *figures}
    options = process(graph.document, "benchmark_runner")["options"]
    assert (options["planner"], options["scene"]) == ("RRTConnectkConfigDefault", "table")
    attached = Graph(document(stack="attached"))
    assert (list(attached.outside), attached.started_outside) == (["stack"], ())


@pytest.mark.parametrize("sim_time", ["off", "on"])
def test_perflabs_move_group_plans_for_controllers_that_are_none_of_perflabs(sim_time: str) -> None:
    graph = Graph(document(stack="attached", plans="perflab", collision="fcl", statistics="off", sim_time=sim_time))
    assert (graph.own_processes, list(graph.outside)) == (["move_group", "benchmark_runner"], ["stack"])
    (stack, planner, runner) = (process(graph.document, name) for name in ("stack", *graph.own_processes))
    servers = [server["action"] for node in stack["nodes"] for server in node.get("action_servers", ())]
    assert servers == ["/panda_arm_controller/follow_joint_trajectory"]
    assert planner["options"] == {"scene": "table", "collision": "fcl"} | (
        {"sim_time": False} if sim_time == "off" else {}
    )
    heard = {topic["topic"] for node in planner["nodes"] for topic in node.get("subscriptions", ())}
    assert heard == {"/joint_states", *(["/clock"] if sim_time == "on" else [])}
    assert [client["action"] for client in runner["nodes"][0]["action_clients"]] == ["/move_action"]
    assert (runner["options"]["planner"], "scene" in runner["options"]) == ("RRTConnect", False)


def test_perflabs_controllers_execute_what_a_move_group_plans_that_is_none_of_perflabs() -> None:
    graph = Graph(document(stack="attached", executes="perflab", controller="split", drive="torque"))
    assert graph.own_processes == ["simulator", "controller_manager", "clock_bridge", "benchmark_runner"]
    (stack, runner) = (process(graph.document, name) for name in ("stack", "benchmark_runner"))
    (planner,) = stack["nodes"]
    assert [client["action"] for client in planner["action_clients"]] == [manipulation.TRAJECTORIES]
    assert {topic["topic"] for topic in planner["subscriptions"]} == {"/joint_states", "/clock"}
    assert [client["action"] for client in runner["nodes"][0]["action_clients"]] == [manipulation.MOVES]
    assert {"statistics", "scene"} & runner["options"].keys() == {"scene"}


def test_a_move_group_that_does_not_know_the_hand_is_told_of_it() -> None:
    def hints(**parameters: Any) -> list[str | None]:
        graph = Graph(document(stack="attached", executes="perflab", **parameters))
        return [part.hint for part in outside.parts(graph).values()]

    assert hints(task="reach") == [None]
    (hint,) = hints(task="pick_and_place")
    assert hint is not None and manipulation.HAND in hint


def test_the_domain_of_a_stack_outside_is_not_its_own() -> None:
    attached = document(stack="attached")
    stack = process(attached, "stack")
    stack["options"] = {"command": "ros2 run a b", "environment": {"ROS_DOMAIN_ID": "3"}}
    with pytest.raises(BadInput, match=r"^process stack of .*: environment: perflab sets ROS_DOMAIN_ID"):
        outside.parts(Graph(attached))


def test_what_stack_ros2_lacks_is_one_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROS_DISTRO", "jazzy")
    monkeypatch.setattr(outside, "has_package", lambda name: name in ("controller_manager", "ros_gz_sim"))
    ros2, control, gazebo = manipulation.needs()
    assert (
        not ros2.available
        and "-moveit-ros-move-group" in ros2.install
        and "ros-jazzy-controller-manager" not in ros2.install
    )
    assert control.install == "sudo apt install ros-jazzy-joint-trajectory-controller ros-jazzy-joint-state-broadcaster"
    assert gazebo.install.endswith("-ros-gz-bridge ros-jazzy-gz-ros2-control")


def test_a_package_is_found_in_the_sourced_ros2_alone(tmp_path: Path) -> None:
    index = tmp_path / "share/ament_index/resource_index/packages"
    index.mkdir(parents=True)
    (index / "here").touch()
    assert outside.has_package("here", {"AMENT_PREFIX_PATH": f"/nowhere:{tmp_path}"})
    assert not outside.has_package("here", {})
    assert outside.package_of(["ros2", "launch", "here", "a.launch.py"]) == "here"
    assert outside.package_of(["ros2", "launch", "./a.launch.py"]) is None
    assert outside.package_of(["ros2", "launch", "a.launch.py", "world:=empty"]) is None
    assert outside.package_of(["ros2", "run", "--prefix", "gdb", "here", "node"]) is None
    assert outside.apt_name("ros_gz_sim", {"ROS_DISTRO": "kilted"}) == "ros-kilted-ros-gz-sim"


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"task": "reech"}, "unknown task 'reech'; choose from pick_and_place, reach"),
        ({"stack": "ros2", "plans": "perflab"}, "launch: the usual one starts more than the stack's part"),
        ({"stack": "ros2", "executes": "perflab"}, "right would be move_group alone"),
        ({"stack": "attached", "plans": "perflab", "executes": "perflab"}, "right would be stack=embedded"),
        (
            {"stack": "attached", "executes": "perflab", "sim_time": "on"},
            "sim_time: stack=attached has no such parameter",
        ),
        ({"stack": "attached", "collision": "fcl"}, "collision: stack=attached has no such parameter"),
        ({"stack": "attached", "plans": "perflab", "drive": "torque"}, "drive: stack=attached has no such parameter"),
        ({"goal": "0.4,0.2"}, "goal: '0.4,0.2' is not three numbers x,y,z"),
        ({"goal": "0.4,0.2,high"}, "goal: '0.4,0.2,high' is not three numbers x,y,z"),
        (
            {"orientation": "0,0,0,0"},
            "orientation: '0,0,0,0' is neither a quaternion x,y,z,w nor roll,pitch,yaw in rad",
        ),
        ({"orientation": "0,1"}, "orientation: '0,1' is neither a quaternion x,y,z,w nor roll,pitch,yaw in rad"),
        ({"velocity_scaling": 2}, "velocity_scaling: "),
        ({"task": "pick_and_place", "motions": 2}, "task pick_and_place can be done only once in a trial; use 1"),
        ({"task": "pick_and_place", "home": "off"}, "home: off repeats task pick_and_place"),
        ({"planner": "RRTConect"}, "unknown planner 'RRTConect'; choose from AnytimePathShortening, BFMT, BITstar, "),
        ({"collision": "bullet"}, "collision: "),
        ({"controler": "split"}, "no parameter 'controler'; did you mean controller?"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(given: dict[str, Any], complaint: str) -> None:
    with pytest.raises(BadInput) as refused:
        KIND.make(given, "workload manipulation")
    assert complaint in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_task_that_is_none_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bad = tmp_path / "tasks" / "bad.json"
    bad.parent.mkdir()
    monkeypatch.setattr(catalog, "folder", lambda: tmp_path)
    bad.write_text('{"description": "x"}')
    with pytest.raises(BadInput, match=r"bad\.json is not a task: it must be an object with description and scene"):
        manipulation.tasks()
    bad.write_text('{"description": "x", "scene": "table", "gaol": [1, 2, 3]}')
    with pytest.raises(BadInput, match="unknown key 'gaol'; choose from description, goal"):
        manipulation.tasks()


def test_figures_are_in_plain_units_of_several_motions_the_median_and_counts_are_sums() -> None:
    figures = judged(planning=(0.01, 0.03, 0.02), tip_error=(0.0005,), overruns=(2.0, 3.0)).figures
    assert figures == {"planning": 2e7, "tip_error": 0.5, "overruns": 5.0}


@pytest.mark.parametrize(
    ("given", "share"),
    [
        ({"motions": 10}, 30.0),
        ({"task": "sequence"}, 75.0),
        ({"task": "sequence", "motions": 3}, 25.0),
        ({"task": "sequence", "goal": (0.4, 0.0, 0.5), "motions": 10}, 30.0),
        ({"task": "pick_and_place"}, 50.0),
        ({"motions": 9}, 33.333333),
    ],
)
def test_success_is_the_share_of_all_motions_that_a_trial_was_to_make(given: dict[str, Any], share: float) -> None:
    assert judged(given=given, success=(1.0, 1.0, 0.0, 1.0)).figures == {"success": share}


def test_a_trial_whose_motions_all_succeed_has_a_hundred_percent() -> None:
    for motions in range(1, 200):
        assert judged(given={"motions": motions}, success=(1.0,) * motions).figures == {"success": 100.0}


def test_an_outcome_is_the_programs_or_that_it_came_to_its_goal() -> None:
    assert judged().outcome == manipulation.SUCCEEDED
    assert judged(said=[says("collision")]).outcome == "collision"
    assert judged(said=[says("collision")]).reason == "why"
    assert judged(FAILED).outcome is None


MEANWHILE = (
    says("unended_planning", 6, "benchmark_runner", "planning for 0.2 s"),
    says("unended_execution", 7, "move_group", "60 %"),
)


@pytest.mark.parametrize(
    ("broken_off", "said", "outcome", "reason"),
    [
        (BrokenOff(why="ended", process="move_group", at_ns=5), MEANWHILE, "ended_move_group",
         "benchmark_runner: planning for 0.2 s; move_group: 60 %"),
        (BrokenOff(why="failed", process="simulator", at_ns=5), (), "failed_simulator", None),
        (BrokenOff(why="silent", process="clock_bridge", at_ns=5), (), "silent_clock_bridge", None),
        (BrokenOff(why="limit", at_ns=5), MEANWHILE, "unended_planning",
         "benchmark_runner: planning for 0.2 s; move_group: 60 %"),
        # What another process makes of the end is no cause of it.
        (BrokenOff(why="limit", at_ns=5), (says("preempted", 5), MEANWHILE[1]), "unended_execution",
         "move_group: 60 %"),
        (BrokenOff(why="limit", at_ns=5), (), "unended", None),
        (BrokenOff(why="silent", at_ns=5), (), "unended", None),  # a process of a condition
        # What failed before it broke off is what became of it.
        (BrokenOff(why="ended", process="move_group", at_ns=5), (says("collision", 4), *MEANWHILE), "collision",
         "why; benchmark_runner: planning for 0.2 s; move_group: 60 %"),
    ],
)  # fmt: skip
def test_a_trial_that_broke_off_has_the_outcome_of_its_process_or_of_the_step_that_had_not_ended(
    broken_off: BrokenOff, said: Sequence[SaidOutcome], outcome: str, reason: str | None
) -> None:
    found = judged(FAILED, said, broken_off=broken_off)
    assert (found.outcome, found.reason) == (outcome, reason)
    assert outcome in document(controller="split")["outcomes"]


def test_planners_are_those_of_the_program_also_by_the_names_of_moveits_configurations() -> None:
    known = manipulation.PLANNERS
    assert len(known) == 27
    assert ", ".join(f"`{name}`" for name in known) in (Path(__file__).parents[2] / "docs/manipulation.md").read_text()
    for name in ("RRTConnect", "geometric::RRTConnect", "RRTConnectkConfigDefault"):
        assert ManipulationParameters.model_validate({"planner": name}).planner == "RRTConnect"


def test_every_word_of_the_programs_is_declared() -> None:
    """What they say is in their sources as literals; a trial in which one says another is a harness error."""
    root = Path(__file__).parents[2] / "native" / "manipulation"
    text = "".join(path.read_text() for path in sorted(root.rglob("*.cpp")))
    import re

    figures = set(re.findall(r'figure\((?:measured, )?"(\w+)"', text))
    times = set(re.findall(r'times\("(\w+)"\)', text))
    assert figures == set(FIGURES)
    assert times == set(TIMES)
    assert set(document()["outcomes"]) >= set(re.findall(r'(?:Failure\{|outcome\()"(\w+)"', text))
    assert all(figure["words"] for figure in document()["figures"].values())
