"""The hardware, kernel, limits, libraries and programs of a run. Part of the manifest.

Files are read below the host's root; what only this machine can report (software, this process's CPUs) is None for
another root. Unreadable values are None; a missing limit is "unlimited".
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

from perflab import programs, version
from perflab.host import Host
from perflab.kernel import CPU, UNLIMITED, parse_cpu_list
from perflab.middleware import Middleware
from perflab.native import Native

Json = dict[str, Any]

PROGRAM_TIMEOUT_S = 10.0
NODES = "sys/devices/system/node"

PACKAGES = ("numpy", "polars", "pydantic", "rich", "scipy", "statsmodels", "typer")

# Variables that affect the middlewares and their processes from outside, and so belong to what was measured.
ENVIRONMENT_PREFIXES = (
    "CYCLONEDDS_", "FASTDDS_", "FASTRTPS_", "ROS_", "RMW_", "ZENOH_", "IOX2_", "RCUTILS_", "MALLOC_", "LD_",
)  # fmt: skip
ENVIRONMENT = ("GLIBC_TUNABLES",)

# All of kernel/sched_* are recorded.
SYSCTLS = (
    "net.core.rmem_max", "net.core.wmem_max", "net.core.rmem_default", "net.core.wmem_default",
    "net.core.netdev_max_backlog", "net.core.busy_poll", "net.core.busy_read", "net.ipv4.udp_mem",
    "net.ipv4.ipfrag_high_thresh", "net.ipv4.ipfrag_time", "kernel.numa_balancing", "kernel.timer_migration",
    "kernel.nmi_watchdog", "vm.swappiness", "vm.stat_interval",
)  # fmt: skip

# Loads a plug-in like perflab-node, in a separate process, and prints the files mapped before and after.
_LOAD = """
import ctypes, os, sys
def maps():
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as file:
        return file.read()
before = maps()
ctypes.CDLL(sys.argv[1], mode=os.RTLD_NOW | os.RTLD_LOCAL)
sys.stdout.buffer.write((before + "\\0" + maps()).encode("utf-8", "surrogateescape"))
"""


def inventory(host: Host, native: Native, middlewares: Iterable[Middleware], beside: Iterable[Path] = ()) -> Json:
    """All of `host.facts()`, and more about the machine; `software` has the installed software, with these programs in
    addition to perflab's own."""
    clocks = host.text("sys/devices/system/clocksource/clocksource0/available_clocksource")
    limits = {name: {"soft": _limit(soft), "hard": _limit(hard)} for name, (soft, hard) in host.limits().items()}
    memory = ("MemTotal", "MemAvailable", "SwapTotal", "SwapFree")
    names = ("total_kb", "available_kb", "swap_total_kb", "swap_free_kb")
    return {
        **host.facts(),
        "cpus": [_cpu(host, cpu) for cpu in host.online()] or None,
        "caches": _caches(host),
        "numa_nodes": _numa_nodes(host),
        "turbo": {True: "on", False: "off", None: None}[host.turbo()],
        "smt": host.text(f"{CPU}/smt/control"),
        "memory": dict(zip(names, host.kb("proc/meminfo", *memory), strict=True)),  # current value
        "huge_pages": host.chosen("sys/kernel/mm/transparent_hugepage/enabled"),
        "clock_sources": None if clocks is None else clocks.split(),
        "mitigations": _mitigations(host),
        "cgroup": _cgroup(host),
        "limits": limits or None,
        "sysctls": _sysctls(host),
        "environment": environment() if host.root == Path("/") else None,
        "software": _software(native, list(middlewares), beside) if host.root == Path("/") else None,
    }


def environment(*more: str) -> dict[str, str]:
    """Environment variables that affect measurements, and those that begin with one of `more`."""
    prefixes = (*ENVIRONMENT_PREFIXES, *more)
    return {k: v for k, v in sorted(os.environ.items()) if k.startswith(prefixes) or k in ENVIRONMENT}


def _cpu(host: Host, cpu: int) -> Json:
    folder = f"{CPU}/cpu{cpu}"
    nodes = host.folders(folder, "node[0-9]*")
    siblings = host.text(f"{folder}/topology/thread_siblings_list")
    return {
        "cpu": cpu,
        "core": host.number(f"{folder}/topology/core_id"),
        "socket": host.number(f"{folder}/topology/physical_package_id"),
        "siblings": None if siblings is None else parse_cpu_list(siblings),
        "numa_node": int(nodes[0].rpartition("node")[2]) if nodes else None,
        "driver": host.text(f"{folder}/cpufreq/scaling_driver"),
        "governor": host.text(f"{folder}/cpufreq/scaling_governor"),
        "khz": host.number(f"{folder}/cpufreq/scaling_cur_freq"),
        "khz_min": host.number(f"{folder}/cpufreq/scaling_min_freq"),
        "khz_max": host.number(f"{folder}/cpufreq/scaling_max_freq"),
    }


def _caches(host: Host) -> list[Json] | None:
    """Each cache once, with the CPUs that share it."""
    found: dict[tuple[Any, ...], Json] = {}
    for path in (path for cpu in host.online() for path in host.folders(f"{CPU}/cpu{cpu}/cache", "index[0-9]*")):
        cache = {
            "level": host.number(f"{path}/level"),
            "type": host.text(f"{path}/type"),
            "size": host.text(f"{path}/size"),
            "cpus": host.text(f"{path}/shared_cpu_list"),
        }
        found.setdefault(tuple(cache.values()), cache)
    return list(found.values()) or None


def _numa_nodes(host: Host) -> list[Json] | None:
    numbers = [path.rpartition("node")[2] for path in host.folders(NODES, "node[0-9]*")]
    return [
        {
            "node": node,
            "cpus": host.text(f"{NODES}/node{node}/cpulist"),
            "memory_kb": host.kb(f"{NODES}/node{node}/meminfo", f"Node {node} MemTotal")[0],
        }
        for node in sorted(int(number) for number in numbers if number.isdigit())
    ] or None


def _mitigations(host: Host) -> dict[str, str] | None:
    found = {Path(path).name: host.text(path) for path in host.folders(f"{CPU}/vulnerabilities", "*")}
    return {name: text for name, text in found.items() if text is not None} or None


def _sysctls(host: Host) -> dict[str, str | None]:
    scheduling = [Path(path).name for path in host.folders("proc/sys/kernel", "sched_*") if host.text(path) is not None]
    names = [*SYSCTLS, *(f"kernel.{name}" for name in scheduling)]
    values = {name: host.text(f"proc/sys/{name.replace('.', '/')}") for name in names}
    return {name: None if value is None else " ".join(value.split()) for name, value in values.items()}


def _cgroup(host: Host) -> Json | None:
    """The outer limits of this process: CPU time, CPUs, memory; the tightest of all levels above it."""
    group = host.cgroup()
    if group is None:
        return None
    unified, levels = group.unified, group.levels

    def known(controller: str, *files: str) -> list[str]:
        """The content of these files at every level, one line each."""
        texts = [[_read(level / file) for file in files] for level in levels(controller)]
        return [" ".join(map(str, found)) for found in texts if None not in found]

    quotas = group.cpu_quotas()
    cpusets = ("cpuset.cpus.effective",) if unified else ("cpuset.effective_cpus", "cpuset.cpus")
    memory = known("memory", "memory.max" if unified else "memory.limit_in_bytes")
    allowed = [text for level in levels("cpuset") for file in cpusets if (text := _read(level / file))]
    return {
        "version": 2 if unified else 1,
        "path": group.path,
        "cpus": _tightest(quotas) if levels("cpu") else None,
        "cpuset": allowed[0] if allowed else None,
        "memory_bytes": _tightest([_limit(m) for m in memory]) if levels("memory") else None,
    }


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def _tightest(limits: list[Any]) -> Any:
    """The smallest one; if there are none, the controller is not used, and so limits nothing."""
    return min((limit for limit in limits if isinstance(limit, int | float)), default=UNLIMITED)


def _limit(text: str) -> int | str:
    # Version 1 expresses "no limit" as the largest multiple of the page size.
    return UNLIMITED if not text.isdigit() or int(text) >= 1 << 62 else int(text)


# -- software --------------------------------------------------------------------------------------------------------


def _software(native: Native, middlewares: list[Middleware], beside: Iterable[Path]) -> Json:
    """Programs run in parallel: most of the time is waiting for them."""
    kinds = {m.name: m for m in middlewares if m.library is not None}
    programs = sorted(p for p in native.folder.glob("perflab-*") if p.is_file()) if native.folder.is_dir() else []
    with ThreadPoolExecutor(max_workers=8) as pool:
        loaded = {
            name: pool.submit(_loaded, m.library, m.environment) for name, m in kinds.items() if m.library is not None
        }
        hashes = {path: pool.submit(_file, path) for path in (*programs, *beside)}
        plugins = {name: pool.submit(_file, m.library) for name, m in kinds.items() if m.library is not None}
        git = pool.submit(_git)
        stress = pool.submit(_stress_ng)
        paths = {name: future.result() for name, future in loaded.items()}
        packages = pool.submit(_packages, sorted({p for found in paths.values() for p in found or ()}))
        carried = {name: [pool.submit(_file, p) for p in found or ()] for name, found in paths.items()}
        owners = packages.result()
        return {
            "perflab": {"version": version.__version__, "folder": str(_package_folder()), "git": git.result()},
            "programs": {
                path.name if path.parent == native.folder else str(path): future.result()
                for path, future in hashes.items()
            },
            "middlewares": {
                name: {
                    "version": middleware.version,
                    "plugin": plugins[name].result(),
                    "libraries": None
                    if paths[name] is None
                    else [library | _owner(owners, library["path"]) for f in carried[name] if (library := f.result())],
                }
                for name, middleware in kinds.items()
            },
            "libc": _libc(),
            "python": platform.python_version(),
            "executable": sys.executable,
            "packages": {name: package_version(name) for name in PACKAGES},
            "stress_ng": stress.result(),
        }


def _loaded(library: Path, environment: Mapping[str, str]) -> list[str] | None:
    """The shared libraries that are loaded with a plug-in, as found by the dynamic linker; sorted."""
    output = _run([sys.executable, "-I", "-S", "-c", _LOAD, os.fspath(library)], environment)
    if output is None or "\0" not in output:
        return None
    before, after = (_mapped(part) for part in output.split("\0", 1))
    return sorted(after - before - {os.path.realpath(library)})


def _mapped(maps: str) -> set[str]:
    """The shared objects in the text of /proc/PID/maps."""
    paths = {fields[5] for line in maps.splitlines() if len(fields := line.split(None, 5)) == 6}
    return {path for path in paths if path.startswith("/") and ".so" in Path(path).name}


def _file(path: str | Path) -> Json | None:
    """Size and the beginning of the SHA-256 of a file."""
    try:
        status = os.stat(path)  # noqa: PTH116 - of text or Path alike
        digest = _digest(os.fspath(path), status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
    except OSError:
        return None
    return {"path": os.fspath(path), "size_bytes": status.st_size, "sha256": digest}


@lru_cache(maxsize=256)
def _digest(path: str, *identity: int) -> str:
    """`identity` distinguishes a replaced file."""
    del identity
    with open(path, "rb") as file:  # noqa: PTH123 - file_digest wants the file
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def _packages(paths: list[str]) -> dict[str, tuple[str, str | None]]:
    """The package that owns each path, with its version; without paths that no package owns."""
    if not paths or shutil.which("dpkg-query") is None:
        return {}
    # If /lib is a link to /usr/lib, packages may still list the file below /lib.
    names = {path.removeprefix("/usr") if path.startswith("/usr/lib") else path: path for path in paths}
    names |= {path: path for path in paths}
    owners: dict[str, str] = {}
    for line in (_run(["dpkg-query", "-S", *names], any_status=True) or "").splitlines():
        package, colon, path = line.partition(": ")
        if colon and path in names:
            owners[names[path]] = package.split(",")[0]
    if not owners:
        return {}
    wanted = sorted(set(owners.values()))
    told = _run(["dpkg-query", "-W", "-f", "${binary:Package}\t${Package}\t${Version}\n", *wanted], any_status=True)
    versions: dict[str, str] = {}
    for line in (told or "").splitlines():
        binary, plain, version = line.split("\t")
        versions[binary] = versions[plain] = version
    return {path: (package.split(":")[0], versions.get(package)) for path, package in owners.items()}


def _owner(owners: Mapping[str, tuple[str, str | None]], path: str) -> Json:
    package, version = owners.get(path, (None, None))
    return {"package": package, "package_version": version}


def _package_folder() -> Path:
    return Path(version.__file__).resolve().parent


def _git() -> Json | None:
    """The revision of perflab, if it runs from its checkout and git is available."""
    package = _package_folder()
    if shutil.which("git") is None or not (package.parent / ".git").exists():
        return None  # an environment within a checkout of another project has no revision of its own
    git = ["git", "--no-optional-locks", "-C", str(package.parent)]
    revision = _run([*git, "rev-parse", "HEAD"])
    changes = _run([*git, "status", "--porcelain", "--untracked-files=no"])
    if revision is None:
        return None
    return {"revision": revision.strip(), "modified": None if changes is None else bool(changes.strip())}


def _stress_ng() -> str | None:
    if shutil.which("stress-ng") is None:
        return None
    found = re.search(r"version (\S+)", _run(["stress-ng", "--version"]) or "")
    return found.group(1) if found else None


def _libc() -> str | None:
    try:
        return os.confstr("CS_GNU_LIBC_VERSION")
    except (OSError, ValueError):
        return None


def package_version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _run(command: list[str], environment: Mapping[str, str] | None = None, *, any_status: bool = False) -> str | None:
    """The output of a program; None if it cannot be run."""
    variables = {"LC_ALL": "C", **(environment or {})}
    try:
        done = programs.ask(command, limit_s=PROGRAM_TIMEOUT_S, environment=variables, errors="surrogateescape")
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if any_status or done.returncode == 0 else None


# -- comparing -------------------------------------------------------------------------------------------------------

_COMPARED = {
    "kernel": "kernel",
    "kernel_version": "kernel build",
    "kernel_command_line": "kernel command line",
    "preemption": "preemption",
    "distribution": "distribution",
    "machine": "architecture",
    "cpu_model": "CPU",
    "cpus_online": "CPUs online",
    "cpus_allowed": "CPUs that perflab may use",
    "clock_source": "clock source",
    "turbo": "turbo",
    "smt": "SMT",
    "huge_pages": "transparent huge pages",
    "cgroup.cpus": "CPU limit of the cgroup",
    "cgroup.cpuset": "CPUs of the cgroup",
    "cgroup.memory_bytes": "memory limit of the cgroup",
    "limits.Max locked memory.soft": "memlock limit",
    "limits.Max realtime priority.soft": "rtprio limit",
    "limits.Max nice priority.soft": "nice limit",
    "software.perflab.version": "perflab",
    "software.perflab.git.revision": "perflab revision",
    "software.perflab.git.modified": "perflab changed since its revision",
    "software.programs.perflab-node.sha256": "perflab-node",
    "software.libc": "libc",
    "software.stress_ng": "stress-ng",
}
# None has a meaning here: there is none.
_PRESENCE = {"hypervisor": "hypervisor", "container": "container"}
_OF_CPUS = {"governor": "frequency governor", "khz_max": "highest frequency in kHz"}
_OF_EACH = {"mitigations": "mitigation of", "sysctls": "sysctl"}
_MEMORY_TOLERANCE = 0.01  # the kernel reserves slightly more or less for itself at every boot
_SHOWN_LETTERS = 60


def difference(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[str]:
    """Differences between two inventories that matter when their runs are compared, one line each.

    An unknown value is not a difference. Python and its packages are in no measured path.
    """
    one, other = _facts(a), _facts(b)
    kb = [_at(inventory_, "memory_kb") for inventory_ in (a, b)]
    if None not in kb and abs(kb[0] - kb[1]) > _MEMORY_TOLERANCE * max(kb):
        one["memory"], other["memory"] = (f"{size >> 10} MiB" for size in kb)
    variables = [_at(inventory_, "environment") for inventory_ in (a, b)]
    for name in sorted(set().union(*variables)) if None not in variables else ():
        label = f"environment variable {name}"
        one[label], other[label] = (known.get(name, "not set") for known in variables)
    lines = [
        f"{label} {_shown(value)} against {_shown(other[label])}"
        for label, value in one.items()
        if label in other and other[label] != value
    ]
    return lines + _libraries_against(a, b)


def _facts(inventory_: Mapping[str, Any]) -> dict[str, Any]:
    """Known and comparable values, by name."""
    found = {label: _at(inventory_, path) for path, label in _COMPARED.items()}
    found |= {label: inventory_[path] or "none" for path, label in _PRESENCE.items() if path in inventory_}
    for key, label in _OF_CPUS.items():
        values = {str(cpu[key]) for cpu in _at(inventory_, "cpus") or () if cpu.get(key) is not None}
        found[label] = ", ".join(sorted(values)) or None
    for path, label in _OF_EACH.items():
        found |= {f"{label} {name}": value for name, value in (_at(inventory_, path) or {}).items()}
    for name, middleware in (_at(inventory_, "software.middlewares") or {}).items():
        found |= {name: middleware.get("version"), f"plug-in of {name}": _at(middleware, "plugin.sha256")}
    return {label: value for label, value in found.items() if value is not None}


def _libraries_against(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[str]:
    """The libraries of the middlewares that both runs used; versions of one library are compared with each other."""
    sides = [_at(inventory_, "software.middlewares") or {} for inventory_ in (a, b)]
    lines = []
    for name in sorted(set(sides[0]) & set(sides[1])):
        # By "libddsc" of libddsc.so.0.10.2.
        known = [
            {Path(lib["path"]).name.split(".so")[0]: lib for lib in of[name].get("libraries") or ()} for of in sides
        ]
        one, other = known
        for library in sorted(set(one) & set(other)):
            digests, versions = ([of[library].get(key) for of in known] for key in ("sha256", "package_version"))
            if digests[0] != digests[1]:
                told = versions if None not in versions and versions[0] != versions[1] else digests
                lines.append(f"{library} of {name} {_shown(told[0])} against {_shown(told[1])}")
        if one and other:
            lines += [f"{library} of {name} only in the first" for library in sorted(set(one) - set(other))]
            lines += [f"{library} of {name} only in the second" for library in sorted(set(other) - set(one))]
    return lines


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = f"{value:g}" if isinstance(value, float) else " ".join(str(value).split())
    return text if len(text) <= _SHOWN_LETTERS else f"{text[: _SHOWN_LETTERS - 1]}…"


def _at(document: Mapping[str, Any], path: str) -> Any:
    value: Any = document
    for key in path.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    return value
