"""`rclcpp`: which RMWs a sourced ROS 2 has, what it says where there is none, and beside which others it may run."""

from __future__ import annotations

from pathlib import Path

import pytest

from perflab import middleware
from perflab.errors import BadInput, Unavailable
from perflab.middleware import Middleware, available, common_framing, rclcpp, select
from perflab.native import Native


def ros(prefix: Path, *rmws: str) -> dict[str, str]:
    """The environment of a ROS 2 with those RMWs."""
    index = prefix / "share" / "ament_index" / "resource_index" / "rmw_typesupport"
    index.mkdir(parents=True)
    for rmw in (*rmws, "rmw_implementation"):
        (index / rmw).touch()
    return {"AMENT_PREFIX_PATH": f"/nowhere:{prefix}"}


def test_what_is_installed_is_in_the_index_of_ament(tmp_path: Path) -> None:
    environment = ros(tmp_path, "rmw_cyclonedds_cpp", "rmw_zenoh_cpp")
    assert rclcpp.sourced(environment)
    assert rclcpp.installed(environment) == ["rmw_cyclonedds_cpp", "rmw_zenoh_cpp"]
    names = [kind.name for kind in rclcpp.kinds(environment)]
    assert names == ["rclcpp/rmw_cyclonedds_cpp", "rclcpp/rmw_fastrtps_cpp", "rclcpp/rmw_zenoh_cpp"]


def test_without_ros_2_nothing_is_installed() -> None:
    assert not rclcpp.sourced({})
    assert rclcpp.installed({}) == []
    assert rclcpp.installed({"AMENT_PREFIX_PATH": "/does/not/exist"}) == []


@pytest.mark.parametrize(
    ("rmws", "named", "means"),
    [
        (("rmw_cyclonedds_cpp", "rmw_fastrtps_cpp"), None, "rmw_fastrtps_cpp"),
        (("rmw_cyclonedds_cpp",), None, "rmw_cyclonedds_cpp"),
        (("rmw_cyclonedds_cpp", "rmw_fastrtps_cpp"), "rmw_cyclonedds_cpp", "rmw_cyclonedds_cpp"),
    ],
)
def test_rclcpp_is_short_for_the_rmw_that_ros_2_would_take(
    tmp_path: Path, rmws: tuple[str, ...], named: str | None, means: str
) -> None:
    environment = ros(tmp_path, *rmws) | ({} if named is None else {"RMW_IMPLEMENTATION": named})
    assert rclcpp.chosen(environment) == means


def test_not_sourced_is_said_with_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AMENT_PREFIX_PATH", raising=False)
    found = available(middleware.REGISTRY["rclcpp/rmw_cyclonedds_cpp"], Native(tmp_path))
    assert not found.usable
    assert found.text.startswith("ROS 2 not sourced; source its setup.bash")
    with pytest.raises(Unavailable, match=r"^middleware rclcpp/rmw_fastrtps_cpp is not available: ROS 2 not sourced"):
        select("rclcpp/rmw_fastrtps_cpp", [], Native(tmp_path))
    with pytest.raises(Unavailable, match="ROS 2 not sourced"):
        select("rclcpp", [], Native(tmp_path))


def test_sourced_but_built_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for key, value in ros(tmp_path / "ros", "rmw_cyclonedds_cpp").items():
        monkeypatch.setenv(key, value)
    found = available(middleware.REGISTRY["rclcpp/rmw_cyclonedds_cpp"], Native(tmp_path))
    assert not found.usable
    assert found.text.startswith("built without ROS 2: rclcpp.so is not in ")


def test_an_rmw_that_is_not_installed_names_those_that_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for key, value in ros(tmp_path / "ros", "rmw_cyclonedds_cpp").items():
        monkeypatch.setenv(key, value)
    library = tmp_path / "runtime" / "rclcpp.so"
    library.parent.mkdir()
    library.touch()
    found = available(middleware.REGISTRY["rclcpp/rmw_fastrtps_cpp"], Native(tmp_path))
    assert not found.usable
    assert (
        "has no rmw_fastrtps_cpp, only rmw_cyclonedds_cpp; `apt install ros-$ROS_DISTRO-rmw-fastrtps-cpp`" in found.text
    )
    # A file that is no library.
    found = available(middleware.REGISTRY["rclcpp/rmw_cyclonedds_cpp"], Native(tmp_path))
    assert not found.usable
    assert "cannot be used" in found.text


def made(name: str, **options: str) -> Middleware:
    kind = middleware.REGISTRY[name]
    return Middleware(
        name, kind.runtime, None, None, options, wire=kind.wire, service_framings=kind.service_framings, rmw=kind.rmw
    )


def test_the_fast_dds_of_ros_2_meets_other_libraries_over_udp() -> None:
    pair = [made("rclcpp/rmw_fastrtps_cpp"), made("fastdds")]
    assert [m.options for m in middleware._side_by_side(pair, "x")] == [{"transport": "udp"}] * 2
    for other in ("cyclonedds", "rclcpp/rmw_cyclonedds_cpp"):
        pair = [made(other), made("rclcpp/rmw_fastrtps_cpp")]
        assert [m.options for m in middleware._side_by_side(pair, "x")] == [{}, {"transport": "udp"}]
    alone = [made("rclcpp/rmw_fastrtps_cpp")]
    assert middleware._side_by_side(alone, "x")[0].options == {}
    others = [made("rclcpp/rmw_cyclonedds_cpp"), made("fastdds", transport="shm")]
    assert middleware._side_by_side(others, "x")[1].options == {"transport": "shm"}
    with pytest.raises(BadInput, match="transport=shm of fastdds: ROS 2's Fast DDS reaches other"):
        middleware._side_by_side([made("rclcpp/rmw_fastrtps_cpp"), made("fastdds", transport="shm")], "x")


@pytest.mark.parametrize(
    ("one", "other", "framing"),
    [
        ("rclcpp/rmw_fastrtps_cpp", "fastdds", "rmw_fastrtps"),
        ("rclcpp/rmw_cyclonedds_cpp", "cyclonedds", "rmw_cyclonedds"),
        ("rclcpp/rmw_cyclonedds_cpp", "fastdds", "rmw_cyclonedds"),
        ("cyclonedds", "rclcpp/rmw_fastrtps_cpp", None),
    ],
)
def test_the_framing_of_services_follows_the_rmw_of_the_other_side(one: str, other: str, framing: str | None) -> None:
    pair = [made(one), made(other)]
    if framing is None:
        with pytest.raises(Unavailable, match="no service framing in common"):
            common_framing(pair, None)
        assert common_framing(pair, None, ()) is None, "a graph without services needs none"
        assert common_framing(pair, None, {1}) is None, "nor one whose services stay within a process"
        with pytest.raises(Unavailable, match="no service framing in common"):
            common_framing(pair, None, {0, 1})
    else:
        assert common_framing(pair, None) == framing


def test_options_of_rclcpp_are_those_of_each_of_its_rmws() -> None:
    wanted = ["rclcpp/rmw_cyclonedds_cpp", "rclcpp/rmw_fastrtps_cpp", "cyclonedds"]
    own = middleware._parse_options(["rclcpp.node=lifecycle", "rclcpp/rmw_fastrtps_cpp.transport=udp"], wanted)
    assert own == {
        "rclcpp/rmw_cyclonedds_cpp": {"node": "lifecycle"},
        "rclcpp/rmw_fastrtps_cpp": {"node": "lifecycle", "transport": "udp"},
        "cyclonedds": {},
    }
    with pytest.raises(BadInput, match="is for rclcpp, which --middleware does not name"):
        middleware._parse_options(["rclcpp.node=lifecycle"], ["cyclonedds"])
