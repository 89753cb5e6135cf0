"""The folder of a profile: made from perf.data, read back, and what there is to say about it.

perf.data       what perf recorded, unless it was to be dropped
profile.json    everything below, and how it was recorded (docs/formats.md)
families.*      shares of families, per process and thread, as Parquet and CSV
folded.txt      stacks with weights, one per line, for other tools
index.html      links to one flame graph per process
"""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perflab import page, waiting
from perflab.columns import Cell, Column, Table
from perflab.errors import DAMAGE, BadInput, PerflabError
from perflab.profile import flamegraph, perf_data, record, script, table
from perflab.profile.families import Families
from perflab.profile.perf_data import PerfData
from perflab.profile.record import Plan
from perflab.profile.script import Samples, ThreadStacks
from perflab.quantity import COUNT, PLAIN, SHARE
from perflab.units import format_confidence

SCHEMA = 1
FILE, FOLDED, INDEX = "profile.json", "folded.txt", "index.html"
PARQUET, CSV = "families.parquet", "families.csv"
KIND = "profile"

FEW_WHOLE, MANY_UNRESOLVED = 0.8, 0.2  # shares of samples from which on it is said

Json = dict[str, Any]


@dataclass(frozen=True)
class Recorded:
    """What was recorded, and when (CLOCK_MONOTONIC; None where it is that of the first or last sample)."""

    command: Sequence[str] | None = None
    pids: Sequence[int] = ()
    began_ns: int | None = None
    ended_ns: int | None = None
    perf_cpu_ns: int | None = None  # what perf itself used
    notes: Sequence[str] = ()


def analyse(directory: Path, plan: Plan, recorded: Recorded, families: Families, *, keep_raw: bool = True) -> Json:
    """Makes everything from perf.data; returns the document. Raises PerflabError where perf.data cannot be read."""
    rate = record.highest_frequency()
    notes = [*plan.counter.notes, *recorded.notes]
    if rate is not None and rate < plan.settings.frequency_hz:
        notes.append(f"the kernel has lowered the sampling rate to {rate} Hz, as samples took too much time")
    document: Json = {
        "schema": SCHEMA,
        "command": None if recorded.command is None else list(recorded.command),
        "pids": list(recorded.pids),
        "began_ns": recorded.began_ns,
        "ended_ns": recorded.ended_ns,
        "perf_cpu_ns": recorded.perf_cpu_ns,
        **plan.document(),
        "notes": notes,
    }
    return rebuild(directory, plan.perf, document, families, keep_raw=keep_raw)


def rebuild(directory: Path, perf: Path, known: Json, families: Families, *, keep_raw: bool = True) -> Json:
    """Likewise from a document that says how it was recorded, e.g. with other families."""
    data = directory / record.DATA
    facts = perf_data.read(data)
    samples = read_samples(perf, data)
    document = _document(known, facts, samples, families)
    _write_stacks(directory, document, samples)
    _write_pages(directory, document, samples, families)
    _write_tables(directory, document)
    if not keep_raw:
        data.unlink()
    text = json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    (directory / FILE).write_text(text, encoding="utf-8")
    return document


def load(directory: Path) -> Json:
    """The document of a folder that `analyse` wrote. Raises BadInput."""
    path = directory / FILE
    try:
        document: Json = json.loads(path.read_text(encoding="utf-8"))
        if document["schema"] != SCHEMA:
            raise BadInput(f"{path} is of another version: schema {document['schema']!r} instead of {SCHEMA}")
    except OSError as error:
        raise BadInput(f"{directory} holds no profile: {path.name}: {error.strerror}") from error
    except DAMAGE as error:
        raise BadInput(f"{path} is damaged: {type(error).__name__}: {error}") from error
    return document


def read_samples(perf: Path, data: Path) -> Samples:
    """Through `perf script`, line by line. Raises PerflabError where it ends with an error."""
    command = [str(perf), "script", "-f", "-i", str(data), "-F", script.FIELDS, "--ns", "--no-inline"]
    # Neither the user's settings nor the network change what is read.
    environment = {**os.environ, "PERF_CONFIG": "/dev/null", "LC_ALL": "C", "DEBUGINFOD_URLS": ""}
    with tempfile.TemporaryFile() as words:
        # It ends with us, whatever happens: nobody reads its pipe then.
        with subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=words, env=environment, text=True,
            encoding="utf-8", errors="replace",
        ) as reader:  # fmt: skip
            printed = reader.stdout
            assert printed is not None
            try:
                samples = waiting.work(lambda: script.parse(printed), f"perf to tell the samples of {data}")
            except BaseException:
                reader.kill()
                raise
        if reader.returncode:
            words.seek(0)
            lines = words.read().decode("utf-8", "replace").split("\n")
            said = next((line.strip() for line in lines if line.strip()), f"status {reader.returncode}")
            raise PerflabError(f"perf script cannot read {data}: {said}")
    return samples


def _document(known: Json, facts: PerfData, samples: Samples, families: Families) -> Json:
    threads = list(samples.threads.values())
    whole = table.group(threads, samples.frames, families)
    processes = []
    for pid in {thread.pid: None for thread in threads}:
        of_process = [thread for thread in threads if thread.pid == pid]
        name = facts.names.get(pid) or next((t.name for t in of_process if t.tid == pid), of_process[0].name)
        made = _group(table.group(of_process, samples.frames, families))
        of_threads = [
            {"tid": thread.tid, "name": thread.name, **_group(table.group([thread], samples.frames, families))}
            for thread in of_process
        ]
        of_threads.sort(key=lambda t: (-t["weight"], t["tid"]))
        processes.append({"pid": pid, "name": name, **made, "threads": of_threads})
    processes.sort(key=lambda p: (-p["weight"], p["pid"]))
    kept = {key: value for key, value in known.items() if key not in ("quality", "warnings", "processes", "families")}
    document = {
        **kept,
        "began_ns": known["began_ns"] if known["began_ns"] is not None else samples.first_ns,
        "ended_ns": known["ended_ns"] if known["ended_ns"] is not None else samples.last_ns,
        "quality": {
            "samples": whole.samples,
            "weight": whole.weight,
            "whole": whole.whole,
            "unresolved": whole.unresolved / whole.samples if whole.samples else None,
            "idle": samples.idle,
            "lost": facts.lost,
            "throttled": facts.throttled,
            "unreadable_lines": samples.unreadable,
            "complete": facts.complete,
        },
        "families": families.titles,
        "confidence": table.CONFIDENCE,
        "processes": processes,
    }
    document["warnings"] = _warnings(document)
    return document


def _group(found: table.Group) -> Json:
    return {
        "samples": found.samples,
        "weight": found.weight,
        "whole": found.whole,
        "unresolved": found.unresolved / found.samples if found.samples else None,
        "families": [{"family": row.family, **_share("self", row.self), **_share("inclusive", row.inclusive)}
                     for row in found.rows],
    }  # fmt: skip


def _share(prefix: str, share: table.Share) -> Json:
    return {f"{prefix}_{key}": getattr(share, key) for key in ("samples", "weight", "share", "low", "high")}


def _warnings(document: Json) -> list[str]:
    """What makes the figures less than they seem, each with the remedy."""
    quality, found = document["quality"], []
    n = quality["samples"]
    if not quality["complete"]:
        found.append("perf was ended before it could finish its file: what it had not written yet is missing")
    if quality["lost"]:
        found.append(
            f"{quality['lost']:,} records found no room in the buffers: lower the frequency, or take fewer bytes of "
            "each stack"
        )
    if quality["throttled"]:
        found.append(f"the kernel held sampling back {quality['throttled']:,} times: lower the frequency")
    if quality["unreadable_lines"]:
        found.append(f"{quality['unreadable_lines']:,} lines of perf script could not be understood")
    if n < table.LEAST_SAMPLES:
        found.append(f"only {n} samples: too few for shares; record for longer")
    elif quality["whole"] < FEW_WHOLE:
        remedy = {
            "dwarf": f"take more than {document['stack_bytes']} bytes of each stack",
            "fp": "use --call-graph dwarf, as programs and libraries are rarely built with frame pointers",
            "lbr": "use --call-graph dwarf, as the processor keeps only the last calls",
        }[document["call_graph"]]
        found.append(f"{1 - quality['whole']:.0%} of the stacks end too early, so that inclusive shares are too low: "
                     f"{remedy}")  # fmt: skip
    if n >= table.LEAST_SAMPLES and quality["unresolved"] > MANY_UNRESOLVED:
        found.append(
            f"{quality['unresolved']:.0%} of the samples are in functions without a name: install the libraries' "
            "debug symbols (packages -dbgsym or -dbg); families are known all the same"
        )
    return found


def _write_stacks(directory: Path, document: Json, samples: Samples) -> None:
    names = {process["pid"]: process["name"] for process in document["processes"]}
    words = [_folded_name(frame) for frame in samples.frames]
    with (directory / FOLDED).open("w", encoding="utf-8") as file:
        for thread in samples.threads.values():
            head = f"{_plain(names[thread.pid])} ({thread.pid});{_plain(thread.name)} ({thread.tid})"
            for stack, weight in thread.stacks.items():
                file.write(f"{';'.join([head, *(words[number] for number in stack)])} {weight.weight}\n")


def _folded_name(frame: script.Frame) -> str:
    """With the marks that tools for folded stacks know: [k] in the kernel, [i] inlined."""
    return _plain(frame.name) + ("_[k]" if frame.kernel else "_[i]" if frame.inlined else "")


def _plain(name: str) -> str:
    return name.replace(";", ":")


def _write_pages(directory: Path, document: Json, samples: Samples, families: Families) -> None:
    for old in directory.glob("flame_*"):
        old.unlink()
    shown = 0
    for process in document["processes"]:
        process["page"] = None
        if process["samples"] < table.LEAST_SAMPLES and shown:
            continue
        shown += 1
        process["page"] = f"flame_{process['pid']}_{_file_name(process['name'])}.html"
        threads = [thread for thread in samples.threads.values() if thread.pid == process["pid"]]
        stacks = _stacks(threads, samples, families)
        drawing = flamegraph.drawn(stacks, unit=document["unit"], families=families.titles)
        facts = [_facts(process, document), *document["warnings"], *document["notes"]]
        path = directory / process["page"]
        path.write_text(flamegraph.written(process_name(process), drawing, families.titles, facts), encoding="utf-8")
        drawing_of(path).write_text(json.dumps(drawing, ensure_ascii=False, separators=(",", ":")), encoding="utf-8")
    (directory / INDEX).write_text(_index(document), encoding="utf-8")


def drawing_of(page: Path) -> Path:
    """Where what a flame graph's page draws is by itself."""
    return page.with_suffix(".json")


def _file_name(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "_", name)[:40] or "process"


def _stacks(
    threads: Sequence[ThreadStacks], samples: Samples, families: Families
) -> Iterator[tuple[list[flamegraph.Frame | str], int]]:
    made: dict[tuple[int, str], flamegraph.Frame] = {}
    for thread in threads:
        first = flamegraph.Frame(f"{thread.name} ({thread.tid})")
        for stack, weight in thread.stacks.items():
            frames: list[flamegraph.Frame | str] = [first]
            for key in zip(stack, families.of_stack(samples.frames, stack), strict=True):
                if key not in made:
                    frame = samples.frames[key[0]]
                    where = "inlined" if frame.inlined else "kernel" if frame.kernel else frame.object or ""
                    made[key] = flamegraph.Frame(frame.name, key[1], where)
                frames.append(made[key])
            yield frames, weight.weight


def _facts(part: Json, document: Json) -> str:
    whole = "" if part["whole"] is None else f"; {part['whole']:.0%} of the stacks are whole"
    return (
        f"{amount(part['weight'], document['unit'])} in {part['samples']:,} samples of {document['event']} at "
        f"{document['frequency_hz']} Hz, stacks by {document['call_graph']}{whole}"
    )


def amount(weight: int, unit: str) -> str:
    """A weight for people."""
    steps = ((10**9, "s"), (10**6, "ms"), (1, "ns")) if unit == "ns" else ((10**9, "G cycles"), (10**6, "M cycles"))
    size, name = next((step for step in steps if weight >= step[0]), steps[-1])
    return f"{weight / size:.3g} {name}"


def title(document: Json) -> str:
    """What was profiled."""
    if document["command"]:
        return " ".join(document["command"])
    if document["system"]:
        return "the whole machine"
    pids = document["pids"]
    return f"process{'es' if len(pids) != 1 else ''} {', '.join(map(str, pids))}"


def _index(document: Json) -> str:
    graphs = [
        (process_name(process), process["page"], families_table("", process, document))
        for process in document["processes"]
        if process["page"] is not None
    ]
    facts = [_facts(document["quality"], document), *document["warnings"], *document["notes"]]
    title_ = f"CPU profile of {title(document)}"
    return page.render(
        "profile.html", title=title_, facts=facts, processes=processes_table("Processes", document), graphs=graphs
    )


def process_name(process: Json) -> str:
    return f"{process['name']} ({process['pid']})"


def processes_table(title: str, document: Json) -> Table[Json]:
    total, unit = document["quality"]["weight"], document["unit"]
    return Table(
        "processes",
        title,
        [
            Column("process", "process", process_name, rank=0),
            Column("cpu", "CPU", lambda p: Cell(amount(p["weight"], unit), p["weight"]), PLAIN, rank=0),
            Column("share", "share", lambda p: p["weight"] / total if total else None, SHARE, rank=0),
            Column("samples", "samples", None, COUNT, rank=2),
            Column("whole", "whole stacks", None, SHARE, rank=1, help="share of the samples whose stack is whole"),
            Column("unresolved", "without a name", None, SHARE, rank=3, help="share of the samples in such functions"),
        ],
        document["processes"],
    )


def families_table(title: str, part: Json, document: Json) -> Table[Json]:
    """Of a process or of a thread; without rows where it has too few samples for shares."""
    level = format_confidence(document["confidence"])
    return Table(
        "families",
        title,
        [
            Column("family", "family", lambda row: document["families"].get(row["family"], row["family"]), rank=0),
            Column(
                "self_share", "itself", None, SHARE, rank=0, help="share of the samples whose innermost frame is of it"
            ),
            Column("interval", f"{level} interval", lambda row: interval(row["self_low"], row["self_high"]), rank=1),
            Column("inclusive_share", "with what it calls", None, SHARE, rank=2),
            Column("self_samples", "samples", None, COUNT, rank=3),
        ],
        [row for row in part["families"] if row["self_share"] is not None],
        [f"The interval is what sampling alone leaves open in this recording (Wilson, {level})."],
    )


def percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f} %"


def interval(low: float | None, high: float | None) -> str:
    return "–" if low is None or high is None else f"{100 * low:.1f} to {100 * high:.1f} %"


_COLUMNS = ("pid", "process", "tid", "thread", "total_samples", "whole", "family")
_SHARE_COLUMNS = tuple(
    f"{prefix}_{key}" for prefix in ("self", "inclusive") for key in ("samples", "weight", "share", "low", "high")
)


def rows(document: Json) -> list[Json]:
    """The table of families: for each process all its threads together (tid null), then each thread."""
    found = []
    for process in document["processes"]:
        for part in (process, *process["threads"]):
            head = (
                process["pid"],
                process["name"],
                part.get("tid"),
                part["name"] if "tid" in part else None,
                part["samples"],
                part["whole"],
            )
            found += [
                dict(zip(_COLUMNS, (*head, row["family"]), strict=True)) | {key: row[key] for key in _SHARE_COLUMNS}
                for row in part["families"]
            ]
    return found


def _write_tables(directory: Path, document: Json) -> None:
    import polars as pl

    of_text, of_share = ("process", "thread", "family"), ("share", "low", "high", "whole")
    columns = (*_COLUMNS, *_SHARE_COLUMNS)
    schema = {
        name: pl.String if name in of_text else pl.Float64 if name.endswith(of_share) else pl.Int64 for name in columns
    }
    found = rows(document)
    pl.DataFrame(found, schema=schema, orient="row").write_parquet(directory / PARQUET)
    with (directory / CSV).open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(found)
