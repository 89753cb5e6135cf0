"""Checks before a recording begins, and what LTTng's daemon could not write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from perflab import tracer
from perflab.errors import BadInput, Unavailable
from perflab.native import Native
from perflab.tracer import RecordingSettings, check, lttng
from perflab.tracer.lttng import UserSpaceSettings


class MadeHost:
    """A machine with 1 GiB."""

    def facts(self) -> dict[str, Any]:
        return {"memory_kb": 1 << 20, "cpus_allowed": 2}


@pytest.fixture
def recorder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A recorder that refuses perf_event with what it was asked, and eBPF as the test says; LTTng is there."""
    monkeypatch.setattr(lttng, "check", lambda: None)
    monkeypatch.setattr(lttng, "check_contexts", lambda names: None)
    monkeypatch.setattr(lttng, "has_kernel_modules", lambda: False)
    monkeypatch.setattr(lttng, "free_shared_memory", lambda: 1 << 30)
    program = tmp_path / "perflab-scheduler-recorder"
    program.write_text(
        "#!/bin/sh\n"
        'case "$*" in\n'
        '*ebpf*) read answer < "${0%/*}/ebpf"; exit "$answer" ;;\n'
        '*) echo "perflab-scheduler-recorder: refused: $*" >&2; exit 3 ;;\n'
        "esac\n"
    )
    program.chmod(0o755)
    (tmp_path / "ebpf").write_text("0\n")
    return tmp_path


def test_rights_to_record_the_scheduler_are_known_before_the_first_trial(recorder: Path) -> None:
    settings = RecordingSettings(scheduler="perf_event", scheduler_buffer_bytes=1 << 20)
    with pytest.raises(Unavailable, match=r"^refused: --check --source perf_event --buffer-bytes 1048576$"):
        check(settings, Native(recorder), MadeHost())  # type: ignore[arg-type]


def test_auto_takes_what_is_permitted_and_says_what_is_missing_where_nothing_is(recorder: Path) -> None:
    settings = RecordingSettings(scheduler="auto")
    check(settings, Native(recorder), MadeHost())  # type: ignore[arg-type]
    (recorder / "ebpf").write_text("3\n")
    tracer.scheduler.check_source.cache_clear()
    tracer.scheduler.complaint.cache_clear()
    with pytest.raises(Unavailable, match="refused: --check --source perf_event"):
        check(settings, Native(recorder), MadeHost())  # type: ignore[arg-type]


def test_of_two_sources_without_rights_the_one_is_named_that_takes_a_single_command(recorder: Path) -> None:
    program = recorder / "perflab-scheduler-recorder"
    program.write_text(
        "#!/bin/sh\n"
        'case "$*" in\n'
        '*ebpf*) echo "eBPF: not permitted: \\`sudo setcap cap_bpf+ep $0\\`" >&2 ;;\n'
        '*) echo "tracefs is not mounted" >&2 ;;\n'
        "esac\n"
        "exit 3\n"
    )
    with pytest.raises(Unavailable, match=r"^eBPF: not permitted: `sudo setcap cap_bpf\+ep .*`$"):
        check(RecordingSettings(scheduler=tracer.AUTO), Native(recorder), MadeHost())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        (RecordingSettings(UserSpaceSettings(buffer_bytes=1 << 40)), "the buffers of user space would take .* GiB"),
        (
            RecordingSettings(None, scheduler="ebpf", flight_recorder_bytes=1 << 40),
            r"the buffers of the scheduler would take 1024 GiB, but this machine has 1\.00 GiB of memory",
        ),
    ],
)
def test_buffers_larger_than_the_memory_are_bad_input(recorder: Path, settings: RecordingSettings, line: str) -> None:
    with pytest.raises(BadInput, match=line):
        check(settings, Native(recorder), MadeHost())  # type: ignore[arg-type]


def test_buffers_that_shared_memory_has_no_room_for_are_refused(
    recorder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lttng, "free_shared_memory", lambda: 1 << 20)
    with pytest.raises(Unavailable, match=r"of /dev/shm, but only 1 MiB are free: choose smaller ones, or enlarge it"):
        check(RecordingSettings(), Native(recorder), MadeHost())  # type: ignore[arg-type]


LOG = """\
PERROR - 14:03:58.396 [1294/1294]: failed to set open files limit: Operation not permitted (in set_ulimit() at \
lttng-consumerd.c:312)
PERROR - 14:04:06.887 [1294/1315]: Error in write mmap (ret -28 != write_len 425984): No space left on device (in \
lttng_consumer_on_read_subbuffer_mmap() at consumer.c:1747)
Error: Error reading mmap subbuffer: -28
"""


@pytest.mark.parametrize(("log", "said"), [(LOG, "No space left on device"), (LOG.splitlines()[0] + "\n", None)])
def test_what_the_session_daemon_could_not_write_is_in_its_log(tmp_path: Path, log: str, said: str | None) -> None:
    daemon = lttng._Daemon(start=lambda *_, **__: pytest.fail("not started"), kernel=False)
    assert daemon.write_error() is None
    daemon._log = tmp_path / "lttng_sessiond.log"
    assert daemon.write_error() is None
    daemon._log.write_text(log)
    assert daemon.write_error() == said


def test_a_perflab_node_within_a_recording_says_its_events(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    native = Native(tmp_path)
    assert not tracer.has_tracepoints("dds", native)
    (tmp_path / tracer.TRACEPOINTS).touch()
    assert tracer.has_tracepoints("dds", native)
    assert not tracer.has_tracepoints("virtual", native)
    assert json.loads(json.dumps(tracer.node_setting("rclcpp", native))) == {"library": None}, "ROS 2 has its own"
    monkeypatch.setenv(tracer.RECORDED, "1")
    assert tracer.is_recorded()
