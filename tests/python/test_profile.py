"""CPU profiles without perf: its text, its file, rights, families, shares, and what is written of them."""

from __future__ import annotations

import errno
import io
import json
import math
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from conftest import Perflab
from support import SOURCE

from perflab import output
from perflab.errors import BadInput, Unavailable
from perflab.host import Host
from perflab.models import as_json
from perflab.observer import cpu_profile
from perflab.profile import FILE, counter, families, perf_data, record, result
from perflab.profile.counter import Attempt, Counter
from perflab.profile.perf_data import Frame, Samples, Weight
from perflab.profile.record import Plan, Recording, Settings
from perflab.profile.result import Profile
from perflab.report import profile_tables

DATA = SOURCE / "tests/data/profile"


def read(name: str) -> Samples:
    with (DATA / name).open(encoding="utf-8") as file:
        return perf_data.parse(file)


def stacks(samples: Samples) -> Iterator[tuple[str, list[str]]]:
    for thread in samples.threads.values():
        for stack in thread.stacks:
            yield thread.name, [samples.frames[number].name for number in stack]


def sample(*frames: str, name: str = "t", tid: int = 7, period: int = 10) -> str:
    """One sample as perf prints it; frames "symbol (object)" from the outermost."""
    lines = [f"{name} 7/{tid} 1.000000001: {period:>10} cycles:u: "]
    addresses = [0xFFFFFFFF81000000 if "kernel" in frame else 0x1000 for frame in frames]
    lines += [f"\t{address:>16x} {frame}" for address, frame in reversed(list(zip(addresses, frames, strict=True)))]
    return "".join(f"{line}\n" for line in [*lines, ""])


def parsed(*texts: str) -> Samples:
    return perf_data.parse("".join(texts).splitlines(keepends=True))


@pytest.mark.parametrize(
    ("symbol", "file", "whole"),
    [
        ("_start", "/usr/bin/talker", True),
        (None, "/usr/lib/x86_64-linux-gnu/libc.so.6", True),
        (None, "/lib/libpthread-2.31.so", True),
        (None, "/usr/lib/libddsc.so.0", False),
        ("qsort", "/usr/lib/x86_64-linux-gnu/libc.so.6", False),
        (None, None, False),
    ],
)
def test_a_stack_is_whole_where_a_thread_begins(symbol: str | None, file: str | None, whole: bool) -> None:
    """Without libc's debugging symbols what calls main() has no name."""
    frames = [perf_data.Frame(symbol, file), perf_data.Frame("main", "/usr/bin/talker")]
    assert perf_data.is_whole(frames, (0, 1)) is whole


def test_recorded_text_becomes_stacks_from_the_outermost_frame() -> None:
    samples = read("cyclonedds_dwarf.txt")
    assert (samples.total, samples.unreadable, samples.idle) == (6, 0, 0)
    found = list(stacks(samples))
    assert {name for name, _ in found} == {"montreal+9"}
    assert all(frames[:3] == ["clone3", "start_thread", "[libstdc++.so.6.0.30]"] for _, frames in found)
    writer = next(frames for _, frames in found if "dds_writecdr" in frames)
    assert writer[-1] == "dds_entity_unlock"
    # Parentheses, blanks and commas are part of the name.
    assert any(frame.startswith("perflab::graph::(anonymous namespace)::Sender::send<") for frame in writer)
    assert (samples.first_ns, samples.last_ns) == (49_591_666_381_789, 49_591_946_347_366)
    (thread,) = samples.threads.values()
    assert all(perf_data.is_whole(samples.frames, stack) for stack in thread.stacks)
    assert {weight.weight for weight in thread.stacks.values()} == {1_001_001}


def test_stacks_by_frame_pointers_end_too_early_and_are_not_called_whole() -> None:
    samples = read("frame_pointers.txt")
    (thread,) = samples.threads.values()
    whole = [stack for stack in thread.stacks if perf_data.is_whole(samples.frames, stack)]
    assert (samples.total, len(whole)) == (4, 1)
    broken = next(names for _, names in stacks(samples) if "_dl_lookup_symbol_x" in names)
    assert broken == ["[unknown]", "[unknown]", "_dl_lookup_symbol_x"]


def test_names_of_threads_may_look_like_the_rest_of_the_line() -> None:
    samples = read("names.txt")
    assert samples.unreadable == 0
    assert [(t.tid, t.name) for t in samples.threads.values()] == [
        (29946, "a b 1/2 3.4: x"), (29947, "(x) [y];z"), (29948, "lead"), (29949, ":-1/-1 :"), (29950, "")
    ]  # fmt: skip
    kernel = {frame.symbol: frame.kernel for frame in samples.frames}
    assert kernel["__x64_sys_clock_gettime"] is True
    assert kernel["__vdso_clock_gettime"] is False
    assert "clock_gettime" in kernel, "without the version of the symbol"


def test_inlined_functions_are_frames_of_their_own() -> None:
    samples = read("inlined.txt")
    (names,) = (names for _, names in stacks(samples))
    assert names[:4] == ["_start", "_dl_start", "_dl_start_final", "_dl_sysdep_start"]
    assert [f.symbol for f in samples.frames if f.inlined] == [
        "elf_machine_rela_relative", "elf_dynamic_do_Rela", "_dl_start_final"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "frame"),
    [
        ("operator() (/opt/a (1)/lib x.so)", Frame("operator()", "/opt/a (1)/lib x.so")),
        ("std::function<void (int)>::operator() (/usr/lib/a.so)",
         Frame("std::function<void (int)>::operator()", "/usr/lib/a.so")),
        ("main (/opt/program (deleted))", Frame("main", "/opt/program (deleted)")),
        ("[unknown] ([unknown])", Frame(None, None)),
        ("[unknown] (//anon)", Frame(None, None)),
        ("[unknown] (/usr/lib/libddsc.so.0)", Frame(None, "/usr/lib/libddsc.so.0")),
        ("Ljava/lang/Object;::wait (/tmp/perf-12.map)", Frame("Ljava/lang/Object;::wait", "/tmp/perf-12.map")),
        ("py::loop:/opt/a.py (/tmp/perf-12.map)", Frame("py::loop:/opt/a.py", "/tmp/perf-12.map")),
        ("nft_do_chain ([kernel.nf_tables])", Frame("nft_do_chain", "[kernel.nf_tables]", kernel=True)),
    ],
)  # fmt: skip
def test_frames(text: str, frame: Frame) -> None:
    assert parsed(sample(text)).frames == [frame]


def test_the_value_that_a_broken_stack_ends_with_is_not_the_kernel() -> None:
    samples = parsed("t 7/7 1.000000001: 1 cycles: \n\t 1000 f (/a)\n\tffffffffffffffff [unknown] ([unknown])\n\n")
    assert [frame.kernel for frame in samples.frames] == [False, False]


def test_idle_samples_are_counted_apart_and_lines_that_are_none_too() -> None:
    idle = sample("do_idle ([kernel.kallsyms])").replace("t 7/7", "swapper 0/0")
    samples = parsed(idle, sample("main (/a)"), "this is no sample\n", "\t   12 lost (/a)\n\n", sample("main (/a)"))
    assert (samples.total, samples.idle) == (2, 1)
    assert samples.unreadable == 2
    assert len(samples.threads) == 1


def test_the_same_stack_is_kept_once_with_its_weights() -> None:
    samples = parsed(*(sample("main (/a)", "f (/a)", period=period) for period in (3, 4, 5)))
    (thread,) = samples.threads.values()
    assert list(thread.stacks.values()) == [Weight(3, 12, 50)]


def test_a_sample_without_a_stack_is_a_sample() -> None:
    samples = parsed(sample(), sample("main (/a)"))
    found = families.group(samples.threads.values(), samples.frames, families.load())
    assert (found.samples, found.unresolved) == (2, 0.5)
    assert {row.family for row in found.families} == {"application", "unknown"}


def of(symbol: str | None, path: str | None, *callers: str) -> str:
    frames = [*(Frame(caller, "[kernel.kallsyms]", kernel=True) for caller in callers)]
    frames.append(Frame(symbol, path, kernel=path == "[kernel.kallsyms]"))
    return families.load().of_stack(frames, tuple(range(len(frames))))[-1]


KERNEL = "[kernel.kallsyms]"


@pytest.mark.parametrize(
    ("symbol", "path", "family"),
    [
        (None, "/usr/lib/x86_64-linux-gnu/libddsc.so.0.10.2", "cyclonedds"),
        ("dds_write", "/opt/ros/lib/libddsc.so", "cyclonedds"),
        (None, "/usr/lib/libfastrtps.so.2.9.1", "fastdds"),
        ("eprosima::fastcdr::Cdr::serialize", "/opt/robot/bin/driver", "fastdds"),
        ("ompl::geometric::RRTConnect::solve", "/opt/ros/jazzy/lib/libmoveit_ompl_interface.so.2.12.0", "ompl"),
        ("fcl::detail::collisionRecurse", "/usr/lib/x86_64-linux-gnu/libfcl.so.0.7", "collision"),
        ("planning_scene::PlanningScene::isStateColliding", "/opt/robot/bin/move_group", "moveit"),
        (None, "/opt/ros/jazzy/lib/libmoveit_planning_pipeline.so.2.12.0", "moveit"),
        ("mj_fwdPosition", "/opt/robot/lib/libmujoco.so.4.0.1", "mujoco"),
        ("mjc_Convex", "/opt/robot/bin/planner", "collision"),
        (None, "/opt/ros/jazzy/opt/gz_sim_vendor/lib/libgz-sim8.so.8.6.0", "gazebo"),
        ("controller_manager::ControllerManager::update", "/opt/robot/bin/driver", "ros2_control"),
        (None, "/opt/ros/jazzy/lib/libjoint_trajectory_controller.so", "ros2_control"),
        ("perflab::manipulation::Controllers::cycle", "/opt/perflab/perflab-simulator", "ros2_control"),
        ("perflab::manipulation::World::step", "/opt/perflab/perflab-simulator", "gazebo"),
        ("perflab::manipulation::planning::plan", "/opt/perflab/perflab-move-group", "moveit"),
        (
            "perflab::manipulation::(anonymous namespace)::MoveGroup::work_on",
            "/opt/perflab/perflab-move-group",
            "moveit",
        ),
        ("rclcpp::Executor::spin", "/opt/ros/jazzy/lib/librclcpp.so", "rclcpp"),
        ("std::__invoke", "/opt/ros/jazzy/lib/librclcpp.so", "rclcpp"),
        ("rclcpp::Publisher<A>::publish", "/opt/robot/bin/driver", "rclcpp"),
        ("rcl_publish", "/opt/ros/jazzy/lib/librcl.so", "rcl"),
        ("rcutils_get_env", "/opt/ros/jazzy/lib/librcutils.so", "rcl"),
        (None, "/opt/ros/jazzy/lib/librmw_fastrtps_cpp.so", "rmw"),
        (None, "/opt/ros/jazzy/lib/libstd_msgs__rosidl_typesupport_fastrtps_cpp.so", "rmw"),
        ("perflab::measure::Histogram::record", "/opt/perflab/perflab-node", "perflab"),
        ("perflab::program::Host::figure", "/opt/perflab/perflab-simulator", "perflab"),
        ("main", "/opt/perflab/perflab-node", "perflab"),
        ("perflab::runtime::TimerQueue::run_due", "/opt/perflab/perflab-node", "perflab_runtime"),
        ("perflab::realtime::spend_cpu_time", "/opt/perflab/perflab-node", "application"),
        (None, "/opt/perflab/middleware/cyclonedds.so", "perflab_runtime"),
        (None, "/opt/perflab/middleware/direct.so", "perflab_runtime"),
        ("perflab::runtime::ros::TypedSubscription<A>::take_one", "/opt/perflab/runtime/rclcpp.so", "perflab_runtime"),
        ("std::_Function_handler<void (unsigned long), perflab::A>::_M_invoke", "/a/rclcpp.so", "perflab_runtime"),
        (None, "/opt/perflab/runtime/rclcpp.so", "perflab_runtime"),
        ("rclcpp::Subscription<A>::handle_message", "/opt/perflab/runtime/rclcpp.so", "rclcpp"),
        ("perflab::measure::Histogram::record", "/opt/perflab/runtime/rclcpp.so", "perflab"),
        ("rclcpp::experimental::executors::EventsExecutor::spin", "/opt/ros/jazzy/lib/librclcpp.so", "rclcpp"),
        ("std::_Sp_counted_base::_M_release", "/opt/ros/jazzy/lib/librclcpp_lifecycle.so", "rclcpp"),
        ("rmw_wait", "/opt/ros/jazzy/lib/librmw_cyclonedds_cpp.so", "rmw"),
        (None, "/opt/ros/jazzy/lib/libperflab_msgs__rosidl_typesupport_introspection_cpp.so", "rmw"),
        (None, "/usr/lib/x86_64-linux-gnu/libz.so.1.2.13", "libc"),
        ("lttng_ust_event", "/usr/lib/liblttng-ust.so.1", "lttng"),
        (None, "/opt/ros/jazzy/lib/libtracetools.so", "lttng"),
        ("malloc", "/usr/lib/libc.so.6", "allocator"),
        ("_int_free", "/usr/lib/libc.so.6", "allocator"),
        ("operator new", "/usr/lib/libstdc++.so.6", "allocator"),
        ("__memmove_avx_unaligned_erms", "/usr/lib/libc.so.6", "libc"),
        ("freeaddrinfo", "/usr/lib/libc.so.6", "libc"),
        ("_PyEval_EvalFrameDefault", "/usr/bin/python3.12", "python"),
        ("udp_sendmsg", KERNEL, "kernel_network"),
        ("__x64_sys_recvmsg", KERNEL, "kernel_network"),
        ("__arm64_sys_sendto", KERNEL, "kernel_network"),
        ("__schedule", KERNEL, "kernel_scheduler"),
        ("futex_wait", KERNEL, "kernel_scheduler"),
        ("exc_page_fault", KERNEL, "kernel_memory"),
        ("vfs_read", KERNEL, "kernel_other"),
        (None, KERNEL, "kernel_other"),
        ("work", "/opt/robot/bin/driver", "application"),
        (None, "/opt/robot/bin/driver", "application"),
        (None, None, "unknown"),
    ],
)
def test_families(symbol: str | None, path: str | None, family: str) -> None:
    assert of(symbol, path) == family


def test_what_the_kernel_does_for_a_caller_is_its_callers() -> None:
    assert of("rep_movs_alternative", KERNEL, "do_syscall_64", "udp_sendmsg") == "kernel_network"
    assert of("rep_movs_alternative", KERNEL, "do_syscall_64", "vfs_read") == "kernel_other"
    assert of("__schedule", KERNEL, "__x64_sys_recvmsg") == "kernel_scheduler"


def test_a_file_of_rules_comes_first_and_adds_families(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(
        "families: [{name: lidar, title: 'lidar driver'}]\n"
        "rules:\n"
        "  - {family: lidar, object: '^liblidar', symbol: ['^decode', '^crc']}\n"
        "  - {family: application, symbol: '^memcpy$'}\n"
    )
    mine = families.load(path)
    assert list(mine.titles)[-2:] == ["lidar", "unknown"]
    assert mine.of_frame(Frame("crc32", "/opt/liblidar.so")) == "lidar"
    assert mine.of_frame(Frame("other", "/opt/liblidar.so")) == "application"
    assert mine.of_frame(Frame("memcpy", "/usr/lib/libc.so.6")) == "application"
    assert mine.of_frame(Frame("memmove", "/usr/lib/libc.so.6")) == "libc"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("rules: [{family: lidar, object: a}]", "no family named 'lidar'"),
        ("rules: [{family: libc, object: '('}]", "object is not a regular expression"),
        ("rules: [{family: libc}]", "a family and a pattern for object or symbol"),
        ("rules: {family: libc}", "rules is not a list"),
        ("families: [{name: A, title: b}]", "'A' is not a valid name"),
        ("- a", "must be a mapping"),
        ("rules: [", "mine.yaml:1:9: not YAML"),
        ("families: &a []\nrules: *a", "mine.yaml:2:8: the alias *a is not allowed"),
    ],
)
def test_files_of_rules_that_are_none(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(BadInput, match=re.escape(words)) as caught:
        families.load(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_shares_by_hand() -> None:
    """70 of 100 samples in DDS below rclcpp, 20 in rclcpp itself, 10 in a kernel that DDS called."""
    dds = ("_start (/a)", "rclcpp::spin (/lib/librclcpp.so)", "dds_write (/lib/libddsc.so)")
    samples = parsed(
        *([sample(*dds)] * 70), *([sample(*dds[:2])] * 20), *([sample(*dds, f"udp_sendmsg ({KERNEL})")] * 10)
    )
    found = families.group(samples.threads.values(), samples.frames, families.load())
    rows = {row.family: row for row in found.families}
    assert (found.samples, found.weight, found.whole, found.unresolved) == (100, 1000, 1.0, 0)
    assert {k: (r.self_samples, r.self_share, r.inclusive_samples, r.inclusive_share) for k, r in rows.items()} == {
        "application": (0, 0.0, 100, 1.0), "rclcpp": (20, 0.2, 100, 1.0), "cyclonedds": (70, 0.7, 80, 0.8),
        "kernel_network": (10, 0.1, 10, 0.1),
    }  # fmt: skip
    # Wilson's interval of 70 in 100 at 95 %, from its formula.
    z, n, p = 1.959963984540054, 100, 0.7
    centre, reach = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    low, high = (centre - reach) / (1 + z * z / n), (centre + reach) / (1 + z * z / n)
    assert rows["cyclonedds"].self_low == pytest.approx(low)
    assert rows["cyclonedds"].self_high == pytest.approx(high)


def test_functions_by_hand() -> None:
    """main calls work 6 times and leaf 4 times below it; once it was in main itself, twice nowhere."""
    samples = parsed(
        *([sample("_start (/a)", "main (/a)", "work (/a)")] * 6),
        *([sample("_start (/a)", "main (/a)", "work (/a)", "leaf (/lib/libc.so.6)")] * 3),
        sample("_start (/a)", "main (/a)", "work (/a)", "leaf (/lib/libc.so.6)"),
        sample("_start (/a)", "main (/a)", period=20),
        sample(),
    )
    found = families.functions(samples.threads.values(), samples.frames, families.load(), 10)
    rows = [(f.function, f.object, f.self_samples, f.self_weight, f.inclusive_samples) for f in found]
    assert rows[:3] == [
        ("work", "/a", 6, 60, 10),
        ("leaf", "/lib/libc.so.6", 4, 40, 4),
        ("main", "/a", 1, 20, 11),
    ]
    assert [f.self_share for f in found] == pytest.approx([60 / 130, 40 / 130, 20 / 130, 10 / 130])
    assert all(f.self_low is not None and f.self_low < (f.self_share or 0) < (f.self_high or 0) for f in found)
    assert (found[1].family, found[3].function, found[3].family) == ("libc", "[unknown]", "unknown")
    hottest = families.functions(samples.threads.values(), samples.frames, families.load(), 2)
    assert hottest == found[:2]


def test_the_hottest_functions_are_listed_and_the_others_counted_together(tmp_path: Path) -> None:
    long = "rclcpp::Executor::execute_any_executable(rclcpp::AnyExecutable&, std::chrono::nanoseconds)"
    samples = parsed(
        *([sample("_start (/a)", long.replace(" ", "") + " (/opt/x)")] * 12), *([sample("_start (/a)")] * 8)
    )
    document = made(samples)
    (process,) = document.processes
    table = result.functions_table("", process, document, 1)
    ((name, *others),) = [[column.cell(row) for column in table.columns] for row in table.rows]
    assert (name.text, name.value) == ("rclcpp::Executor::execute_any_executable(…)", long.replace(" ", ""))
    assert [cell.text for cell in others][2] == "60.0 %"
    assert table.notes == ["The other functions have 40.0 % together."]
    assert not result.functions_table("", process, document, 2).notes
    out = io.StringIO()
    profile_tables.print_profile(output.plain_console(out, 100), document, tmp_path, top=1)
    assert "hottest functions" in out.getvalue()
    result._write_pages(tmp_path, document, samples, families.load())
    assert "execute_any_executable(…)" in (tmp_path / result.INDEX).read_text()


def test_below_a_handful_of_samples_there_are_no_shares() -> None:
    samples = parsed(*[sample("_start (/a)")] * (families.LEAST_SAMPLES - 1))
    (row,) = families.group(samples.threads.values(), samples.frames, families.load()).families
    assert (row.self_samples, row.self_share, row.self_low, row.inclusive_high) == (9, None, None, None)


def test_samples_of_unequal_weight_are_less_certain() -> None:
    def width(*periods: int) -> float:
        texts = [sample("f (/a)", period=period) for period in periods]
        texts += [sample("g (/lib/libc.so.6)", period=period) for period in periods]
        samples = parsed(*texts)
        row = families.group(samples.threads.values(), samples.frames, families.load()).families[0]
        assert row.self_share == 0.5
        assert row.self_low is not None and row.self_high is not None
        return row.self_high - row.self_low

    assert width(*[10] * 30) < width(*[10] * 15, *[50] * 15)


def perf_file(*records: tuple[int, bytes], size: int | None = None) -> bytes:
    body = b"".join(struct.pack("<IHH", kind, 0, 8 + len(content)) + content for kind, content in records)
    head = struct.pack("<8sQQQQQQ", b"PERFILE2", 104, 136, 104, 0, 104, len(body) if size is None else size)
    return head.ljust(104, b"\0") + body


COMM, SAMPLE, LOST, LOST_SAMPLES, THROTTLE, FORK = 3, 9, 2, 13, 5, 7


def test_the_last_name_of_a_process_is_the_last_by_time(tmp_path: Path) -> None:
    """The buffers of CPUs are read one after the other: what a program was called before may stand behind its name."""
    path = tmp_path / "perf.data"
    time, identifier, sample_id_all = 1 << 2, 1 << 16, 1 << 18

    def named(name: bytes, at_ns: int) -> tuple[int, bytes]:
        return COMM, struct.pack("<II16sIIQQ", 6, 6, name, 6, 6, at_ns, 77)

    written = perf_file(named(b"perf", 0), named(b"burn", 200), named(b"perf-exec", 100))
    assert perf_data.read(_with_attribute(path, written, 0, 0)).names == {6: "perf-exec"}, "by their order alone"
    attribute = 1 << 1 | time | identifier, sample_id_all
    assert perf_data.read(_with_attribute(path, written, *attribute)).names == {6: "burn"}


def _with_attribute(path: Path, file: bytes, sample_type: int, flags: int) -> Path:
    """The file with a perf_event_attr at its end that says what its records hold."""
    attribute = struct.pack("<IIQQQQQ", 0, 136, 0, 0, sample_type, 0, flags).ljust(136, b"\0")
    head = bytearray(file[:104])
    struct.pack_into("<QQ", head, 24, len(file), len(attribute))
    path.write_bytes(bytes(head) + file[104:] + attribute)
    return path


def test_perf_data_tells_losses_throttling_and_processes(tmp_path: Path) -> None:
    path = tmp_path / "perf.data"
    path.write_bytes(
        perf_file(
            (COMM, struct.pack("<II", 5, 5) + b"sh\0\0\0\0\0\0"),
            (FORK, struct.pack("<IIIIQ", 6, 5, 6, 5, 1)),
            (FORK, struct.pack("<IIIIQ", 5, 5, 8, 5, 1)),
            (COMM, struct.pack("<II", 6, 6) + b"late name\0\0\0\0\0\0\0"),
            (COMM, struct.pack("<II", 5, 8) + b"thread\0\0"),
            (SAMPLE, bytes(16)),
            (SAMPLE, bytes(8)),
            (LOST, struct.pack("<QQ", 1, 40)),
            (LOST_SAMPLES, struct.pack("<Q", 2)),
            (THROTTLE, bytes(24)),
            (81, bytes(24)),
        )
    )
    found = perf_data.read(path)
    assert found == perf_data.PerfData(2, 42, 1, True, {5: "sh", 6: "late name"}, {6: 5})


def test_a_file_that_perf_could_not_finish_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    path = tmp_path / "perf.data"
    whole = perf_file((SAMPLE, bytes(8)), (SAMPLE, bytes(8)), size=0)
    path.write_bytes(whole)
    assert (perf_data.read(path).samples, perf_data.read(path).complete) == (2, False)
    path.write_bytes(perf_file((SAMPLE, bytes(8)), (SAMPLE, bytes(8)))[:-4])
    assert (perf_data.read(path).samples, perf_data.read(path).complete) == (1, False)
    path.write_bytes(b"PERF")
    with pytest.raises(BadInput, match=r"is not perf\.data"):
        perf_data.read(path)


def refusing(reason: int, *, but: Attempt | None = None) -> counter.Open:
    return lambda attempt: 0 if attempt == but else reason


def test_cycles_where_there_are_counters_else_the_clock() -> None:
    assert counter.choose(ask=lambda _: 0).argument == "cycles"
    clock = counter.choose(ask=lambda attempt: errno.ENOENT if attempt.event == "cycles" else 0)
    assert (clock.argument, clock.unit, clock.kernel) == ("cpu-clock", "ns", True)
    assert "no cycle counter" in clock.notes[0]


def test_user_space_alone_where_the_kernel_may_not_be_sampled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "paranoid"
    path.write_text("2\n")
    monkeypatch.setattr(counter, "PARANOID", path)
    found = counter.choose(ask=lambda attempt: errno.EACCES if attempt.kernel else 0)
    assert (found.argument, found.unit) == ("cycles:u", "cycles")
    assert found.notes == (
        "only user space: kernel.perf_event_paranoid is 2; the kernel's part needs `sudo sysctl "
        "kernel.perf_event_paranoid=1`",
    )


@pytest.mark.parametrize(
    ("value", "system", "words"),
    [
        ("4", False, "kernel.perf_event_paranoid is 4, so that a process cannot be profiled: "
                     "`sudo sysctl kernel.perf_event_paranoid=1`"),
        ("2", True, "kernel.perf_event_paranoid is 2, so that all processes of the machine cannot be profiled: "
                    "`sudo sysctl kernel.perf_event_paranoid=0`"),
        ("2", False, "although kernel.perf_event_paranoid is 2: a container's filter or a security module; start the "
                     "container with --cap-add PERFMON"),
    ],
)  # fmt: skip
def test_what_is_forbidden_names_the_setting_its_value_and_the_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, value: str, system: bool, words: str
) -> None:
    path = tmp_path / "paranoid"
    path.write_text(f"{value}\n")
    monkeypatch.setattr(counter, "PARANOID", path)
    with pytest.raises(Unavailable, match=re.escape(words)):
        counter.choose(system=system, ask=refusing(errno.EACCES))


def test_a_kernel_without_perf_events() -> None:
    with pytest.raises(Unavailable, match=r"Function not implemented.*CONFIG_PERF_EVENTS"):
        counter.choose(ask=refusing(errno.ENOSYS))


def test_lbr_only_where_the_processor_has_it() -> None:
    with pytest.raises(Unavailable, match="use dwarf"):
        counter.choose(branches=True, ask=lambda attempt: errno.EOPNOTSUPP if attempt.branches else 0)
    assert counter.choose(branches=True, ask=lambda _: 0).event == "cycles"


def test_kernel_symbols_without_names_are_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    symbols, restrict = tmp_path / "kallsyms", tmp_path / "kptr_restrict"
    symbols.write_text("0000000000000000 T _stext\n0000000000000000 T schedule\n")
    restrict.write_text("1\n")
    monkeypatch.setattr(counter, "SYMBOLS", symbols)
    monkeypatch.setattr(counter, "KPTR_RESTRICT", restrict)
    (note,) = counter.choose(ask=lambda _: 0).notes
    assert "kernel.kptr_restrict is 1" in note and "`sudo sysctl kernel.kptr_restrict=0`" in note
    symbols.write_text("0000000000000000 A fixed\nffffffff81000000 T _stext\n")
    assert counter.choose(ask=lambda _: 0).notes == ()


def test_buffers_hold_a_second_as_far_as_memory_may_be_locked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    mlock = tmp_path / "mlock"
    mlock.write_text("516\n")
    monkeypatch.setattr(record, "MLOCK_KB", mlock)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    monkeypatch.setattr("resource.getrlimit", lambda _: (8 << 20, 8 << 20))
    dwarf, fp = Settings(), Settings(call_graph="fp")
    monkeypatch.setattr(record, "_may_lock_memory", lambda: True)
    assert record.buffer_bytes(dwarf) == 16 << 20, "999 samples of 9 kB"
    assert record.buffer_bytes(fp) == 1 << 20
    monkeypatch.setattr(record, "_may_lock_memory", lambda: False)
    assert record.buffer_bytes(dwarf) == 4 << 20, "half of what may be locked, and a power of two"
    monkeypatch.setattr("resource.getrlimit", lambda _: (0, 0))
    assert record.buffer_bytes(dwarf) == 512 << 10


def made(samples: Samples, **changes: Any) -> Profile:
    plan = Plan(Settings(**changes), Counter("cycles", True, ("a note",)), Path("/usr/bin/perf"), "6.1", 1 << 20)
    known = Recording.of(plan, command=("a", "b"))
    return result._profile(known, perf_data.PerfData(samples.total, names={7: "main name"}), samples, families.load())


def test_the_folder_of_a_profile_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    dds = ("_start (/a)", "work; (/opt/x)", "dds_write (/lib/libddsc.so)")
    samples = parsed(*([sample(*dds)] * 15), *([sample("clone3 (/lib/libc.so.6)", name="two words", tid=8)] * 5))
    document = made(samples)
    result._write_stacks(tmp_path, document, samples)
    result._write_pages(tmp_path, document, samples, families.load())
    result._write_tables(tmp_path, document)
    (tmp_path / FILE).write_text(json.dumps(as_json(document)))
    assert result.load(tmp_path) == document
    assert sorted((tmp_path / result.FOLDED).read_text().splitlines()) == [
        "main name (7);t (7);_start;work:;dds_write 150",
        "main name (7);two words (8);clone3 50",
    ]
    frame = pl.read_parquet(tmp_path / result.PARQUET)
    whole = frame.filter(pl.col("tid").is_null())
    assert dict(zip(whole["family"], whole["self_share"], strict=True)) == {
        "application": 0.0, "cyclonedds": 0.75, "libc": 0.25
    }  # fmt: skip
    few = frame.filter(pl.col("tid") == 8)
    assert few.select("thread", "total_samples", "self_share", "self_samples").rows() == [("two words", 5, None, 5)]
    text = (tmp_path / result.CSV).read_text().splitlines()
    assert len(text) == frame.height + 1 and text[0].split(",") == frame.columns
    (process,) = document.processes
    assert process.page is not None
    assert (tmp_path / process.page).is_file() and process.page in (tmp_path / result.INDEX).read_text()


@pytest.mark.parametrize(
    ("texts", "changes", "words"),
    [
        ([sample("f (/a)")] * 20, {}, "100% of the stacks end too early.*copy more than 8192 bytes"),
        ([sample("f (/a)")] * 20, {"call_graph": "fp"}, "use --call-graph dwarf"),
        ([sample("_start (/a)", "[unknown] (/lib/libddsc.so)")] * 20, {}, "100% of the samples .* -dbgsym"),
        ([sample("_start (/a)")] * 3, {}, "only 3 samples"),
    ],
)  # fmt: skip
def test_what_makes_figures_less_than_they_seem_is_said(texts: list[str], changes: Any, words: str) -> None:
    (warning,) = made(parsed(*texts), **changes).warnings
    assert re.search(words, warning)


def test_without_samples_everything_is_unknown_and_nothing_zero(tmp_path: Path) -> None:
    document = made(parsed())
    assert document.quality.whole is None and document.quality.unresolved is None
    result._write_pages(tmp_path, document, parsed(), families.load())
    result._write_tables(tmp_path, document)
    assert pl.read_parquet(tmp_path / result.PARQUET).height == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "one of a command, --pid and --system"),
        (("--pid", "1", "--", "true"), "one of a command, --pid and --system"),
        (("--pid", "x", "--duration", "1s"), "--pid 'x' is not a process id"),
        (("--pid", "1"), "--duration is missing"),
        (("--call-graph", "magic", "--", "true"), "'magic' is not one of dwarf, fp, lbr"),
        (("--stack", "100000", "--", "true"), "not a multiple of 8 up to 65528"),
        (("--stack", "12", "--", "true"), "not a multiple of 8"),
        (("--duration", "0", "--", "true"), "--duration"),
        (("--families", "nowhere.yaml", "--", "true"), "cannot read --families 'nowhere.yaml': No such file"),
        (("--show", "nowhere"), "nowhere has no profile"),
        (("--show", ".", "--", "true"), "--show prints an existing profile; use"),
    ],
)
def test_bad_input_is_one_line(perflab: Perflab, arguments: tuple[str, ...], words: str) -> None:
    done = perflab("profile", *arguments)
    assert done.returncode == 2, done.stderr
    assert words in done.stderr and done.stderr.count("\n") == 1


def test_without_perf_it_says_what_to_install(perflab: Perflab, tmp_path: Path) -> None:
    done = perflab("profile", "--", "true", PATH=str(tmp_path))
    assert done.returncode == 3
    assert re.fullmatch(r"perflab: perf is not installed; install it with: apt-get install linux-\S+\n", done.stderr)


def test_a_perf_for_another_kernel_is_none(perflab: Perflab, tmp_path: Path) -> None:
    wrapper = tmp_path / "perf"
    wrapper.write_text("#!/bin/sh\necho 'WARNING: perf not found for kernel 6.8' >&2\nexit 2\n")
    wrapper.chmod(0o755)
    done = perflab("profile", "--", "true", PATH=f"{tmp_path}:/usr/bin:/bin")
    assert done.returncode == 3
    assert "is not for kernel" in done.stderr and done.stderr.count("\n") == 1


def observer(**parameters: Any) -> cpu_profile.CpuProfile:
    made = cpu_profile.KIND.make(parameters, "--observer cpu_profile")
    assert isinstance(made, cpu_profile.CpuProfile)
    return made


def test_the_observer_has_trials_of_its_own_unless_told_otherwise() -> None:
    assert observer().extra and not observer(trials="all").extra
    given = observer(frequency="99", call_graph="fp", keep_raw="off", system="on", stack="16KiB").parameters
    assert given == {"frequency": 99, "call_graph": "fp", "stack": 16384, "trials": "extra", "system": True,
                     "keep_raw": False, "families": "", "required": True}  # fmt: skip
    assert observer(**given).parameters == given


def test_the_observer_is_not_for_virtual_time() -> None:
    with pytest.raises(Unavailable, match=r"cpu_profile: .*use a real middleware"):
        observer().check(Host(), "virtual")


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"frequency": "0"}, "frequency"),
        ({"call_graph": "x"}, "call_graph"),
        ({"stack": "9"}, "multiple of 8"),
        ({"trials": "some"}, "trials"),
    ],
)
def test_wrong_parameters_of_the_observer(parameters: dict[str, str], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        observer(**parameters)
