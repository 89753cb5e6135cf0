"""The processes of one trial that are not perflab's: started under perflab-guard, each in its own group, and ended with
all their descendants. Those that already run are left alone.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from perflab.errors import PerflabError
from perflab.experiment.companion import GuardedCompanion
from perflab.experiment.running import RunningTrial
from perflab.experiment.supervisor import CompanionEnded, Event
from perflab.experiment.system import Failed
from perflab.middleware import rclcpp
from perflab.processes import describe_status, last_words
from perflab.results.outcome import FAILED
from perflab.units import NS_PER_S
from perflab.workload import outside
from perflab.workload.outside import DOMAIN

PARTITION = "GZ_PARTITION"  # variable that a Gazebo simulator obeys
FOLDER = "PERFLAB_TRIAL"
LOOPBACK = "lo"
LAST_INDEX = 99  # of the participants on a host, each of which has its own ports
DISTROS_WITHOUT_RANGE = "h"  # values of ROS_DISTRO: Humble and before only have ROS_LOCALHOST_ONLY


def ros_environment(domain: int | None, network: str, folder: Path) -> dict[str, str]:
    """Variables for ROS 2 programs in a trial: their own domain and partition, on the requested interface."""
    on_host = network == LOOPBACK
    found = {DOMAIN: str(domain), "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST" if on_host else "SUBNET"}
    # Later ones still obey it, with a warning.
    if os.environ.get("ROS_DISTRO", "")[:1] <= DISTROS_WITHOUT_RANGE:
        found["ROS_LOCALHOST_ONLY"] = "1" if on_host else "0"
    return {**found, PARTITION: f"perflab_{domain}", FOLDER: str(folder.absolute())}


def meeting(rmw: str, network: str) -> dict[str, str]:
    """Settings that an RMW needs to reach perflab's middlewares on that interface: it is the only interface, and the
    loopback has no multicast. The user's CYCLONEDDS_URI comes after it, and overrides it."""
    if rmw in rclcpp.FASTRTPS:
        return {"FASTDDS_BUILTIN_TRANSPORTS": "UDPv4"}  # versions do not understand each other's shared memory
    if rmw != rclcpp.CYCLONEDDS:
        return {}
    general = f'<Interfaces><NetworkInterface name="{network}"/></Interfaces>'
    discovery = (
        f"<ParticipantIndex>auto</ParticipantIndex><MaxAutoParticipantIndex>{LAST_INDEX}</MaxAutoParticipantIndex>"
    )
    if network == LOOPBACK:
        general += "<AllowMulticast>false</AllowMulticast>"
        discovery += '<Peers><Peer Address="127.0.0.1"/></Peers>'
    parts = f"<General>{general}</General><Discovery>{discovery}</Discovery>"
    uri = f'<CycloneDDS><Domain Id="any">{parts}</Domain></CycloneDDS>'
    own = os.environ.get("CYCLONEDDS_URI")
    return {
        "ROS_AUTOMATIC_DISCOVERY_RANGE": "SYSTEM_DEFAULT",  # LOCALHOST would add to it
        "ROS_LOCALHOST_ONLY": "0",
        "CYCLONEDDS_URI": f"{uri},{own}" if own else uri,
    }


class Outside:
    """Those of a trial. Call `launch` before the nodes start, which wait for them."""

    def __init__(self, trial: RunningTrial) -> None:
        self._trial = trial
        self._parts = outside.parts(trial.plan.graph)
        self._running: dict[str, GuardedCompanion] = {}
        self._ending = False

    @property
    def declared(self) -> bool:
        return bool(self._parts)

    @property
    def notes(self) -> tuple[str, ...]:
        """For the trial: why figures are null."""
        named = ", ".join(self._parts)
        return (
            (f"{named}: not perflab's, so figures that only its own programs report are null",) if self._parts else ()
        )

    def launch(self) -> None:
        trial = self._trial
        for name, part in self._parts.items():
            if part.command is None:
                continue
            self._running[name] = trial.start_outside(
                name,
                part.command,
                environment={**self._environment(name), **part.environment},
                directory=None if part.directory is None else Path(part.directory),
            )

    def _environment(self, name: str) -> Mapping[str, str]:
        plan = self._trial.plan
        middleware = plan.variant.middleware_of(plan.graph.processes.index(name))
        framing = plan.variant.service_framing or next(iter(middleware.service_framings), None)
        rmw = middleware.rmw or rclcpp.OF_FRAMING.get(framing or "")
        network = plan.settings.network
        found = ros_environment(plan.domain, network, self._trial.directory)
        return found if rmw is None else {**found, "RMW_IMPLEMENTATION": rmw, **meeting(rmw, network)}

    def hear(self, event: Event) -> bool:
        """Handles the end of a process. Raises Failed unless the end was requested."""
        if not isinstance(event, CompanionEnded) or event.companion not in self._running.values():
            return False
        if not self._ending:
            self._fail(event.companion)
        return True

    @staticmethod
    def _fail(companion: GuardedCompanion) -> NoReturn:
        how = "was ended" if companion.status is None else describe_status(companion.status)
        text = f"{companion.name} (pid {companion.pid}) {how} while it should run{last_words(companion.log)}"
        raise Failed(FAILED, text)

    def words(self) -> str:
        """Their last output, for a trial that waited in vain."""
        said = [f"{name} runs{last_words(companion.log)}" for name, companion in self._running.items()]
        already = [name for name in self._parts if name not in self._running]
        told = [*said, *(f"{name} should already run in domain {self._trial.plan.domain}" for name in already)]
        hints = [part.hint for part in self._parts.values() if part.hint]
        return "".join(f"; {text}" for text in (*told, *hints))

    def end(self) -> None:
        """Asks them to end, as a user would; what still runs after the grace time is killed, which is noted."""
        self._ending = True
        for name, companion in reversed(self._running.items()):
            stop = self._parts[name].stop
            companion.signal(stop.number, group=stop.to == "group")
        for name, companion in reversed(self._running.items()):
            deadline_s = time.monotonic() + self._parts[name].stop.grace / NS_PER_S
            self._trial.waits_for(f"{name} to end", self._parts[name].stop.grace / NS_PER_S)
            self._trial.until(lambda of=companion: of.ended_ns is not None, deadline_s)  # type: ignore[misc]

    def close(self) -> list[str]:
        """What could not be ended, one line each."""
        self._ending = True
        problems = []
        for name, companion in reversed(self._running.items()):
            self._trial.supervisor.forget(companion)
            try:
                companion.stop()
            except (PerflabError, OSError) as error:
                problems.append(f"{name} could not be ended: {error}")
            if companion.killed:
                self._trial.keeper.add_note(f"{companion.killed} of the processes of {name} did not end before SIGKILL")
        return problems
