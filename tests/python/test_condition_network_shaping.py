"""network_shaping on made counters of tc; the kernel's part is in tests/conformance/condition."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from made_trial import MadeCompanion, MadeMonitor, MadeTrial, S, graph_of

from perflab import programs
from perflab.condition import NotInEffect, Window
from perflab.condition import evidence as shared
from perflab.condition import network_shaping as module
from perflab.condition.network_shaping import KIND, LARGEST_PACKET_BYTES, NetworkShaping, Shaped, Snapshot
from perflab.errors import BadInput, Unavailable
from perflab.host import Host
from perflab.models import as_json

WINDOW = Window(2 * S, 12 * S)
# As tc 6.1 prints them.
TBF = {
    "kind": "tbf",
    "handle": "10:",
    "root": True,
    "refcnt": 2,
    "options": {"rate": 1250000, "burst": 131071, "lat": 50000},
}
NETEM = {
    "kind": "netem",
    "handle": "1:",
    "root": True,
    "options": {
        "limit": 1000000,
        "delay": {"delay": 0.005, "jitter": 0.001, "correlation": 0},
        "loss-random": {"loss": 0.01, "correlation": 0},
        "ecn": False,
        "gap": 0,
    },
}


def made(**parameters: Any) -> NetworkShaping:
    condition = KIND.make(parameters, "network_shaping")
    assert isinstance(condition, NetworkShaping)
    return condition


def snapshot(at_s: float, packets: int, *disciplines: dict[str, Any], size: int = 1000, drops: int = 0) -> Snapshot:
    """After that many packets, all of which passed the interface."""
    counts = {"bytes": packets * size, "packets": packets, "drops": drops, "overlimits": 0, "backlog": 0}
    found = {d["kind"]: {**copy.deepcopy(d), **counts} for d in disciplines}
    return Snapshot(round(at_s * S), found, packets)


class Verified:
    """A shaping whose namespace is as the two snapshots say."""

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, condition: NetworkShaping) -> None:
        self.holder = MadeCompanion("holder", 100)
        self.trial = MadeTrial(tmp_path, MadeMonitor(tmp_path / "m.jsonl").reader(), self.holder)
        self.condition = condition
        self._monkeypatch = monkeypatch
        self.namespaces = {100: 7}
        monkeypatch.setattr(module, "_find", lambda program: program)
        for place in (module, shared):
            monkeypatch.setattr(place, "network_namespace", lambda pid: self.namespaces.get(pid, 1))
        monkeypatch.setattr(shared, "descendants", lambda pid: {})
        monkeypatch.setattr(module, "_is_root", lambda: True)

    def __call__(self, before: Snapshot, after: Snapshot) -> dict[str, Any]:
        self._monkeypatch.setattr(module, "take_snapshot", lambda pid: before)
        self.shaped = self.condition.begin(self.trial)
        self.shaped.settle()
        self._monkeypatch.setattr(module, "take_snapshot", lambda pid: after)
        return dict(as_json(self.shaped.verify(WINDOW)))


@pytest.fixture
def rate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Verified:
    return Verified(tmp_path, monkeypatch, made(rate="10Mbit"))


@pytest.fixture
def late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Verified:
    return Verified(tmp_path, monkeypatch, made(delay="5ms", jitter="1ms", loss="1%"))


def test_traffic_within_rate_and_burst_is_in_effect(rate: Verified) -> None:
    evidence = rate(snapshot(1, 100, TBF), snapshot(13, 12_100, TBF))
    assert evidence["in_effect"], evidence
    assert evidence["promised"]["rate_bytes_per_s"] == 1_250_000
    assert evidence["achieved"]["bytes_per_s"] == pytest.approx(1e6)
    assert evidence["achieved"]["packets"] == 12_000
    assert (evidence["achieved"]["loss"], evidence["note"]) == (None, None)


def test_the_workload_is_launched_into_the_namespace_and_nothing_of_it_stays(rate: Verified) -> None:
    rate(snapshot(1, 100, TBF), snapshot(13, 200, TBF))
    assert rate.trial.launch.prefix == ("nsenter", "--net=/proc/100/ns/net", "--")
    script = rate.trial.commands[0][-1]
    assert script == (
        "ip link set lo up && tc qdisc add dev lo root handle 10: tbf rate 1250000bps burst 131072 latency 50000us "
        "&& exec sleep infinity"
    )
    rate.shaped.remove()
    assert rate.holder.stopped == 1


def test_its_programs_are_found_where_path_lacks_the_administrator_s_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ip", "tc", "unshare", "nsenter"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setattr(programs, "ADMINISTRATORS_FOLDERS", (str(tmp_path),))
    condition = made(rate="10Mbit")
    trial = MadeTrial(tmp_path, MadeMonitor(tmp_path / "m.jsonl").reader(), MadeCompanion("holder", 100))
    monkeypatch.setattr(module, "network_namespace", lambda pid: 7 if pid == 100 else 1)
    monkeypatch.setattr(Shaped, "_not_ready", lambda _: None)
    condition.begin(trial)
    unshare, *_, script = trial.commands[0]
    assert unshare == str(tmp_path / "unshare")
    assert script.startswith(f"{tmp_path}/ip link set lo up && {tmp_path}/tc qdisc add dev lo root"), script
    assert trial.launch.prefix[0] == str(tmp_path / "nsenter")


def test_an_ordinary_user_enters_by_a_user_namespace(rate: Verified, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_is_root", lambda: False)
    rate(snapshot(1, 100, TBF), snapshot(13, 200, TBF))
    assert rate.trial.commands[0][:5] == ["unshare", "--user", "--map-root-user", "--net", "--"]
    assert rate.trial.launch.prefix[1:3] == ("--user=/proc/100/ns/user", "--preserve-credentials")


@pytest.mark.parametrize(
    ("after", "reason"),
    [
        (snapshot(13, 20_000, TBF), "19900000 bytes passed, but rate and burst allow only 15431072"),
        (snapshot(13, 200), "tbf is no longer on lo of the namespace"),
        (snapshot(13, 50, TBF), "tbf on lo of the namespace was replaced during the trial"),
        (snapshot(13, 200, {**TBF, "handle": "8001:"}), "tbf on lo of the namespace was replaced during the trial"),
        (
            snapshot(13, 200, {**TBF, "options": {"rate": 2500000, "burst": 131071, "lat": 50000}}),
            "rate of tbf is 2.5e+06 bytes/s, but 1.25e+06 was promised",
        ),
        (
            snapshot(13, 100, TBF),
            "no packet passed lo: the workload's messages take another way, e.g. shared memory",
        ),
    ],
)
def test_what_is_not_as_promised(rate: Verified, after: Snapshot, reason: str) -> None:
    evidence = rate(snapshot(1, 100, TBF), after)
    assert evidence["in_effect"] is False
    assert evidence["reason"] == reason


def test_packets_that_passed_while_it_was_away_are_seen(rate: Verified) -> None:
    counted = snapshot(13, 600, TBF)
    evidence = rate(snapshot(1, 100, TBF), Snapshot(counted.at_ns, counted.disciplines, 900))
    assert evidence["reason"] == "800 packets passed lo, but only 500 of them the shaping"


def test_packets_that_passed_while_the_counters_were_read_are_not_held_against_it(rate: Verified) -> None:
    before, after = snapshot(1, 100, TBF), snapshot(13, 600, TBF)
    slow = Snapshot(before.at_ns, before.disciplines, 100, passed_meanwhile=300)
    assert rate(slow, Snapshot(after.at_ns, after.disciplines, 900, passed_meanwhile=40))["in_effect"]


def test_a_process_outside_the_namespace_is_named(rate: Verified) -> None:
    rate.trial.processes = {"a": 201, "b": 202}
    rate.namespaces |= {201: 7, 202: 1}
    evidence = rate(snapshot(1, 100, TBF), snapshot(13, 200, TBF))
    assert evidence["reason"] == "process 'b' of the workload is not in the shaped network namespace"
    assert evidence["achieved"]["processes_outside"] == ["b"]


def test_counters_that_begin_too_late_prove_nothing(rate: Verified) -> None:
    evidence = rate(snapshot(3, 100, TBF), snapshot(13, 200, TBF))
    assert evidence["reason"] == "its counters were read after the measured time had begun"


def test_a_holder_that_ended_is_named(rate: Verified) -> None:
    rate(snapshot(1, 100, TBF), snapshot(13, 200, TBF))
    rate.holder.status = -9
    evidence = as_json(rate.shaped.verify(WINDOW))
    assert evidence["reason"] == "the holder of the namespace was killed by SIGKILL during the trial"


def test_delay_and_loss_as_promised(late: Verified) -> None:
    evidence = late(snapshot(1, 0, NETEM), snapshot(13, 9_900, NETEM, drops=100))
    assert evidence["in_effect"], evidence
    assert "netem limit 1000000 delay 5000us 1000us loss random 1%" in late.trial.commands[0][-1]


@pytest.mark.parametrize("drops", [0, 40, 200])
def test_another_loss_than_promised_is_seen(late: Verified, drops: int) -> None:
    evidence = late(snapshot(1, 0, NETEM), snapshot(13, 10_000 - drops, NETEM, drops=drops))
    assert evidence["reason"] == f"{drops} of 10000 packets were lost, but 1.000% were promised"


def test_few_packets_are_no_proof_of_another_loss(late: Verified) -> None:
    assert late(snapshot(1, 0, NETEM), snapshot(13, 50, NETEM, drops=0))["in_effect"]


def test_another_delay_than_promised_is_seen(late: Verified) -> None:
    other = copy.deepcopy(NETEM)
    other["options"]["delay"]["delay"] = 0.001  # type: ignore[index]
    evidence = late(snapshot(1, 0, NETEM), snapshot(13, 9_900, other, drops=100))
    assert evidence["reason"] == "delay.delay of netem is 0.001 s, but 0.005 was promised"


def test_what_is_not_measured_is_null_and_not_what_was_asked(late: Verified, tmp_path: Path) -> None:
    evidence = late(snapshot(1, 0, NETEM), snapshot(13, 9_900, NETEM, drops=100))
    achieved = evidence["achieved"]
    assert (achieved["delay_ns"], achieved["jitter_ns"]) == (None, None)
    assert achieved["loss"] == pytest.approx(0.01)  # as counted
    assert "disciplines" not in achieved
    assert evidence["settings"]["before"] == evidence["settings"]["after"]
    assert evidence["settings"]["after"][0]["options"]["delay"]["delay"] == 0.005
    assert evidence["note"].startswith("delay and jitter: not measured; it is ")


def test_settings_are_compared_at_both_ends(late: Verified) -> None:
    other = copy.deepcopy(NETEM)
    other["options"]["delay"]["jitter"] = 0.0005  # type: ignore[index]
    evidence = late(snapshot(1, 0, other), snapshot(13, 9_900, NETEM, drops=100))
    assert evidence["reason"] == "delay.jitter of netem is 0.0005 s, but 0.001 was promised"


def test_a_rate_goes_below_a_delay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    both = Verified(tmp_path, monkeypatch, made(rate="10Mbit", delay="5ms", jitter="1ms"))
    below = {**TBF, "parent": "1:1"}
    del below["root"]
    evidence = both(snapshot(1, 0, NETEM, below), snapshot(13, 200, NETEM, below))
    assert evidence["in_effect"], evidence
    assert "dev lo parent 1:1 handle 10: tbf" in both.trial.commands[0][-1]


@pytest.mark.parametrize(
    ("parameters", "complaint"),
    [
        ({}, "give at least one of rate, delay and loss"),
        ({"jitter": "1ms"}, "give at least one of rate, delay and loss"),
        ({"jitter": "1ms", "loss": 1}, "jitter needs a delay to vary"),
        ({"delay": "1ms", "jitter": "2ms"}, "jitter exceeds the delay"),
        ({"rate": 10}, "rate: 10 is not a rate; use a unit"),
        ({"rate": "0Mbit"}, "rate: 0Mbit must be at least 8000bit"),
        (
            {"rate": "1Mbit", "burst": LARGEST_PACKET_BYTES - 1},
            f"burst: .* must be at least {LARGEST_PACKET_BYTES}",
        ),
        ({"loss": 101}, "loss: 101% must be at most 100%"),
    ],
)
def test_bad_parameters(parameters: dict[str, Any], complaint: str) -> None:
    with pytest.raises(BadInput, match=f"^network_shaping: {complaint}"):
        made(**parameters)


def test_only_the_loopback_and_once(rate: Verified) -> None:
    with pytest.raises(BadInput, match="shapes only lo, but the network is eth0"):
        rate.condition.check_network("eth0")
    rate.condition.check_network("lo")
    rate.trial.launch.prefix = ("nice",)
    with pytest.raises(NotInEffect, match="another condition already changes"):
        rate.condition.begin(rate.trial)


def test_what_the_kernel_lacks_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_find", lambda program: program)
    monkeypatch.setattr(module, "cannot_make_namespaces", lambda: None)
    monkeypatch.setattr(module, "missing_discipline", lambda kind: "no netem here" if kind == "netem" else None)
    made(rate="1Mbit").check(Host(), graph_of("a"), "dds")
    with pytest.raises(Unavailable, match="network_shaping: no netem here"):
        made(rate="1Mbit", delay="1ms").check(Host(), graph_of("a"), "dds")
    with pytest.raises(BadInput, match="the virtual runtime has no processes"):
        made(rate="1Mbit").check(Host(), graph_of("a"), "virtual")


def test_without_iproute2_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda program, path=None: None)
    with pytest.raises(Unavailable, match="ip is not installed; install it with: apt-get install iproute2"):
        made(rate="1Mbit").check(Host(), graph_of("a"), "dds")


@pytest.mark.parametrize(
    ("text", "bytes_per_s"), [("8kbit", 1000), ("20Mbit", 2_500_000), ("1.6 Mbit/s", 200_000), ("1Gbit", 125_000_000)]
)
def test_rates_have_units(text: str, bytes_per_s: int) -> None:
    assert made(rate=text).rate_bytes_per_s == bytes_per_s


def test_parameters_can_be_given_again() -> None:
    condition = made(rate="1Mbit", delay="1.5ms")
    assert condition.parameters["queue"] == "50ms"
    assert condition.parameters["delay"] == "1500us"
    assert KIND.make(condition.parameters, "again").parameters == condition.parameters
