"""The inventory of a machine and its software as rows for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perflab.columns import Cell, Column, Table
from perflab.errors import DAMAGE
from perflab.results.files import Manifest
from perflab.units import format_bytes, plural

Json = Mapping[str, Any]

UNKNOWN = "not known"


@dataclass(frozen=True)
class Row:
    """One property. `value` is None if it could not be determined."""

    section: str
    label: str
    value: str | None

    @property
    def text(self) -> str:
        return UNKNOWN if self.value is None else self.value


def inventory_of(manifest: Manifest) -> Json | None:
    """From a run; for an older one, what it recorded about its host."""
    return manifest.inventory or manifest.host or None


def in_words(inventory: Json) -> str:
    """ "AMD EPYC, 2 CPUs, 23.5 GiB, Linux 6.18, KVM"; the known parts."""
    try:
        known = {row.label: row.value for row in rows(inventory)}
    except DAMAGE:
        return "a machine with a damaged record"
    cpus = str(known.get("CPUs") or "").partition(" ")[0]
    kernel = str(known.get("kernel") or "").partition("-")[0]
    hypervisor = known.get("hypervisor")
    parts = (
        known.get("CPU"),
        (plural(int(cpus), "CPU") if cpus.isdigit() else f"CPUs {cpus}") if cpus else None,
        known.get("memory"),
        f"Linux {kernel}" if kernel else None,
        hypervisor if hypervisor not in (None, "none") else None,
    )
    return ", ".join(str(part) for part in parts if part)


def table(inventory: Json) -> Table[Row]:
    """Every property with its value, by section."""
    columns: list[Column[Row]] = [
        Column("property", "property", lambda row: row.label, rank=0),
        Column("value", "value", lambda row: Cell(row.text, row.value, "faint" if row.value is None else ""), rank=0),
    ]
    return Table("inventory", "Machine and software", columns, rows(inventory), grouped=lambda row: row.section)


MACHINE, SYSTEM, LIMITS, SOFTWARE = "Machine", "System", "Limits", "Software"


def rows(inventory: Json) -> list[Row]:
    """From `inventory` in a manifest, including older runs with only a part of it."""
    software = inventory.get("software") or {}
    cpus: Sequence[Json] = inventory.get("cpus") or ()
    found = [
        *_section(
            MACHINE,
            {
                "CPU": inventory.get("cpu_model"),
                "architecture": inventory.get("machine"),
                "CPUs": _cpus(inventory, cpus),
                "cores and sockets": _topology(cpus),
                "SMT": {"notsupported": "not supported"}.get(str(inventory.get("smt")), inventory.get("smt")),
                "frequency": _frequency(cpus),
                "frequency governor": _each(cpus, "governor"),
                "turbo": inventory.get("turbo"),
                "caches": _caches(inventory.get("caches") or ()),
                "memory": _kb(inventory.get("memory_kb")),
                "NUMA nodes": _count(inventory.get("numa_nodes")),
                "hypervisor": inventory.get("hypervisor") or "none",
                "container": inventory.get("container") or "none",
            },
        ),
        *_section(
            SYSTEM,
            {
                "distribution": inventory.get("distribution"),
                "kernel": inventory.get("kernel"),
                "kernel build": inventory.get("kernel_version"),
                "preemption": inventory.get("preemption"),
                "kernel command line": inventory.get("kernel_command_line"),
                "clock source": inventory.get("clock_source"),
                "transparent huge pages": inventory.get("huge_pages"),
                "mitigations": _mitigations(inventory.get("mitigations")),
            },
        ),
        *_section(LIMITS, _limits(inventory)),
        *_section(SOFTWARE, _software(software)),
    ]
    environment = inventory.get("environment") or {}
    return [*found, *(Row("Environment", name, str(value)) for name, value in environment.items())]


def _section(name: str, values: Mapping[str, Any]) -> list[Row]:
    return [Row(name, label, None if value is None else str(value)) for label, value in values.items()]


def _cpus(inventory: Json, cpus: Sequence[Json]) -> str | None:
    online, allowed = inventory.get("cpus_online"), inventory.get("cpus_allowed")
    if online is None:
        return None
    count = f"{len(cpus)} ({online})" if cpus else str(online)
    return count if allowed is None or allowed == len(cpus) else f"{count}, {allowed} of them usable"


def _topology(cpus: Sequence[Json]) -> str | None:
    cores = {(c.get("socket"), c.get("core")) for c in cpus}
    if not cpus or any(None in core for core in cores):
        return None
    sockets = {socket for socket, _ in cores}
    return f"{_many(len(cores), 'core')} on {_many(len(sockets), 'socket')}"


def _many(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"


def _frequency(cpus: Sequence[Json]) -> str | None:
    low = [c["khz_min"] for c in cpus if c.get("khz_min") is not None]
    high = [c["khz_max"] for c in cpus if c.get("khz_max") is not None]
    if not low or not high:
        return None
    return f"{min(low) / 1e6:.3g} to {max(high) / 1e6:.3g} GHz"


def _each(cpus: Sequence[Json], key: str) -> str | None:
    return ", ".join(sorted({str(c[key]) for c in cpus if c.get(key) is not None})) or None


def _caches(caches: Sequence[Json]) -> str | None:
    """ "L1 data 2 x 32K, L2 2 x 512K"."""
    counts: dict[tuple[str, str], int] = {}
    for cache in caches:
        if cache.get("level") is None or cache.get("size") is None:
            continue
        kind = str(cache.get("type") or "").lower()
        name = f"L{cache['level']}{'' if kind in ('', 'unified') else f' {kind}'}"
        counts[name, str(cache["size"])] = counts.get((name, str(cache["size"])), 0) + 1
    return ", ".join(f"{name} {f'{n} × ' if n > 1 else ''}{size}" for (name, size), n in counts.items()) or None


def _kb(kb: int | None) -> str | None:
    return None if kb is None else format_bytes(kb * 1024)


def _count(listed: Sequence[Any] | None) -> str | None:
    return None if listed is None else str(len(listed))


def _mitigations(mitigations: Mapping[str, str] | None) -> str | None:
    if mitigations is None:
        return None
    on = [name for name, state in mitigations.items() if state.startswith("Mitigation")]
    open_ = [name for name, state in mitigations.items() if state.startswith("Vulnerable")]
    parts = [f"{', '.join(on)}" if on else "none", f"vulnerable: {', '.join(open_)}" if open_ else ""]
    return "; ".join(filter(None, parts))


def _limits(inventory: Json) -> dict[str, str | None]:
    cgroup, limits = inventory.get("cgroup") or {}, inventory.get("limits") or {}

    def soft(name: str) -> Any:
        return (limits.get(name) or {}).get("soft")

    memlock, bound = soft("Max locked memory"), cgroup.get("memory_bytes")
    cpus = [str(cgroup["cpus"])] if cgroup.get("cpus") is not None else []
    cpus += [f"on {cgroup['cpuset']}"] if cgroup.get("cpuset") else []
    return {
        "CPUs of the cgroup": ", ".join(cpus) or None,
        "memory of the cgroup": format_bytes(bound) if isinstance(bound, int) else bound,
        "locked memory": format_bytes(memlock) if isinstance(memlock, int) else memlock,
        "real-time priority": None if soft("Max realtime priority") is None else str(soft("Max realtime priority")),
    }


def _software(software: Json) -> dict[str, str | None]:
    perflab, packages = software.get("perflab") or {}, software.get("packages") or {}
    git = perflab.get("git")
    revision = ""
    if git is not None:
        changed = {True: ", changed since", False: "", None: ""}[git.get("modified")]
        revision = f" ({str(git['revision'])[:12]}{changed})"
    found = {"perflab": None if perflab.get("version") is None else f"{perflab['version']}{revision}"}
    for name, middleware in (software.get("middlewares") or {}).items():
        owned = {
            f"{library['package']} {library['package_version']}"
            for library in middleware.get("libraries") or ()
            if library.get("package") and _is_its_own(name, library["package"])
        }
        version = middleware.get("version")
        found[name] = None if version is None else f"{version}{f' ({chr(44).join(sorted(owned))})' if owned else ''}"
    named = {name: version for name, version in packages.items() if version is not None}
    return {
        **found,
        "libc": software.get("libc"),
        "stress-ng": software.get("stress_ng"),
        "Python": software.get("python"),
        "Python packages": ", ".join(f"{name} {version}" for name, version in named.items()) or None,
    }


def _is_its_own(middleware: str, package: str) -> bool:
    """Whether a package is the middleware's, and not one of its many dependencies."""
    return {"cyclonedds": "dds", "fastdds": "fast"}.get(middleware, middleware) in package
