"""The claims of five documents, tested: runs the experiments that have them and writes docs/claims.

docs/claims/DOCUMENT.yaml names the experiments of the catalog that test a document's claims, and has the claims that no
trial decides, with the evidence for or against them. Each claim and its condition are written in the experiment's file
only. The verdicts of its trials are stored in docs/claims/results/EXPERIMENT.json; docs/claims/DOCUMENT.md and index.md
are generated from these three. A test compares the pages with what would be written.

    python benchmarks/claims.py                          # every experiment without a result of its present file
    python benchmarks/claims.py realtime_wakeup          # these, again
    python benchmarks/claims.py --fresh                  # also those whose result is not of today
    python benchmarks/claims.py --take RUN realtime_wakeup   # the verdicts of a run that there is
    python benchmarks/claims.py --pages                  # the pages alone

A result that was measured while others used the machine is measured again. An interrupted run resumes. If this machine
cannot run an experiment, the reason is stored instead of verdicts, unless the experiment has verdicts already.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import yaml

from perflab.catalog import experiments
from perflab.design import document as documents
from perflab.host import Host
from perflab.report import inventory
from perflab.report.tables.plain import markdown_rows
from perflab.results.claim import DOES_NOT_HOLD, HOLDS, NOT_DECIDED, VERDICT_WORDS, Claim
from perflab.results.summary import read as read_summary
from perflab.runs.rundir import RunDirectory

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "docs/claims"
RESULTS = PAGES / "results"
RUNS = ROOT / "runs/claims"
QUIET = 0.5  # load average for each CPU, before a run
FAILED, UNAVAILABLE = 1, 3  # exit codes of perflab run

Known = Literal["holds", "does_not_hold", "cannot_be_tested"]
CANNOT: Known = "cannot_be_tested"
NOT_RUN = "not_run"
WORDS: dict[str, str] = {
    **{str(verdict): words for verdict, words in VERDICT_WORDS.items()},
    CANNOT: "cannot be tested here",
    NOT_RUN: "not run yet",
}


@dataclass(frozen=True, kw_only=True)
class Otherwise:
    """A claim that no trial decides: by what the document's own figures, a test or a source say; or not at all."""

    says: str
    source: str
    verdict: Known
    found: str
    """The evidence for or against it, or why it cannot be tested."""
    command: str | None = None


@dataclass(frozen=True, kw_only=True)
class Described:
    """A document as docs/claims/DOCUMENT.yaml has it."""

    title: str
    document: str
    about: str
    experiments: tuple[str, ...]
    otherwise: tuple[Otherwise, ...]


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What the trials of one place say of a claim; figures as in summary.json."""

    says: str
    where: str | None
    verdict: str
    words: str
    """What was found, with interval and numbers of trials."""
    value: float | None
    low: float | None
    high: float | None
    scale: str
    unit: str
    n: int
    n_baseline: int | None


@dataclass(frozen=True, kw_only=True)
class Stored:
    """The result of an experiment. `unavailable`: why this machine cannot do it."""

    experiment: str
    file_sha256: str | None
    """Of the experiment's file when it ran; null of results that were taken from an older page."""
    date: str
    machine: str
    load: float | None
    """The machine's load average before the run, of one minute; null where nobody wrote it down."""
    took_s: int | None
    """Null of a run that was interrupted, and of one whose start is not known."""
    verdicts: tuple[Verdict, ...]
    unavailable: str | None = None


# -- what there is -----------------------------------------------------------------------------------------------------


def described() -> dict[str, Described]:
    found = {}
    for path in sorted(PAGES.glob("*.yaml")):
        read = yaml.safe_load(path.read_text(encoding="utf-8"))
        otherwise = tuple(Otherwise(**entry) for entry in read.pop("otherwise"))
        found[path.stem] = Described(**{**read, "experiments": tuple(read["experiments"])}, otherwise=otherwise)
    return found


@functools.cache
def _files() -> dict[str, Path]:
    return {entry.name: Path(entry.path) for entry in experiments()}


def experiment_file(experiment: str) -> Path:
    return _files()[experiment]


def claims_of(experiment: str) -> list[documents.Claim]:
    return documents.validate(documents.read(experiment_file(experiment))).claims


def _sha256(experiment: str) -> str:
    return hashlib.sha256(experiment_file(experiment).read_bytes()).hexdigest()


def stored(experiment: str) -> Stored | None:
    path = RESULTS / f"{experiment}.json"
    if not path.exists():
        return None
    read = json.loads(path.read_text(encoding="utf-8"))
    return Stored(**{**read, "verdicts": tuple(Verdict(**entry) for entry in read["verdicts"])})


def store(result: Stored) -> None:
    before = stored(result.experiment)
    if result.unavailable and before is not None and not before.unavailable:
        print(f"claims: {result.experiment} cannot run here, its verdicts of {before.date} stay", file=sys.stderr)
        return
    RESULTS.mkdir(exist_ok=True)
    text = json.dumps(asdict(result), indent=2, ensure_ascii=False) + "\n"
    (RESULTS / f"{result.experiment}.json").write_text(text, encoding="utf-8")


def _is_quiet(load: float | None) -> bool:
    return load is None or load <= QUIET * (os.cpu_count() or 1)


def is_done(experiment: str) -> bool:
    """Whether there are verdicts of the experiment as it is, of a machine that nobody else used."""
    have = stored(experiment)
    if have is None or have.unavailable:
        return False
    return have.file_sha256 in (None, _sha256(experiment)) and _is_quiet(have.load)


def _is_old(experiment: str) -> bool:
    have = stored(experiment)
    return have is None or have.date != _today()


# -- measured ----------------------------------------------------------------------------------------------------------


def measure(experiment: str) -> None:
    """Runs it, or goes on with a run of it that did not end, and stores what it says. SystemExit where it cannot."""
    sha256 = _sha256(experiment)
    run = RUNS / f"{experiment}-{sha256[:8]}"
    goes_on = (run / "manifest.json").exists()
    load, begun = os.getloadavg()[0], time.monotonic()
    command = ["run", "--resume", str(run)] if goes_on else ["run", experiment, "--output", str(run)]
    done = subprocess.run(
        [sys.executable, "-m", "perflab", *command], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        text=True, check=False,
    )  # fmt: skip
    said = [line for line in done.stderr.splitlines() if line.startswith("perflab: ")]
    if done.returncode == UNAVAILABLE:
        machine = inventory.in_words(dict(Host().facts()))
        reason = said[-1].removeprefix("perflab: ") if said else "it says no reason"
        store(
            Stored(
                experiment=experiment, file_sha256=_sha256(experiment), date=_today(), machine=machine, load=load,
                took_s=None, verdicts=(), unavailable=reason,
            )
        )  # fmt: skip
        return
    if done.returncode not in (0, FAILED):
        raise SystemExit(f"claims: perflab {' '.join(command)} ended with {done.returncode}: {' '.join(said[-1:])}")
    if not _is_complete(run):
        raise SystemExit(f"claims: {experiment} was interrupted; the next time it goes on where it was")
    took = None if goes_on else round(time.monotonic() - begun)
    take(run, experiment, load, took, sha256)
    # What has a name without a time goes on the next time; this one is done.
    run.rename(run.with_name(f"{run.name}-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}"))


def _is_complete(run: Path) -> bool:
    """Whether all trials that were planned have run; an interrupted one runs again."""
    results = read_summary(json.loads((run / "summary.json").read_text(encoding="utf-8"))).results
    done = sum(not trial.interrupted for result in results for trial in result.trials_detail)
    return done >= len(RunDirectory(run, created=False).read_manifest().trials)


def take(run: Path, experiment: str, load: float | None, took_s: int | None, sha256: str) -> None:
    """Stores the verdicts of a run of the experiment whose file was this one."""
    manifest = RunDirectory(run, created=False).read_manifest()
    summary = read_summary(json.loads((run / "summary.json").read_text(encoding="utf-8")))
    store(
        Stored(
            experiment=experiment,
            file_sha256=sha256,
            date=(manifest.created_utc or _today())[:10],
            machine=inventory.in_words({**manifest.host, **manifest.inventory}),
            load=load,
            took_s=took_s,
            verdicts=tuple(map(_verdict, summary.claims)),
        )
    )


def _today() -> str:
    return time.strftime("%Y-%m-%d", time.gmtime())


def _verdict(claim: Claim) -> Verdict:
    figure = claim.figure
    return Verdict(
        says=claim.says, where=claim.variant, verdict=claim.verdict, words=claim.words, value=figure.value,
        low=figure.low, high=figure.high, scale=claim.scale, unit=claim.unit, n=claim.n, n_baseline=claim.n_baseline,
    )  # fmt: skip


# -- written -----------------------------------------------------------------------------------------------------------

_MADE = "<!-- `make claims` writes this page; what it says comes from {} -->"


def pages() -> dict[str, str]:
    """The text of every page, by its name."""
    found = described()
    made = {f"{name}.md": _page(name, one) for name, one in found.items()}
    return {**made, "index.md": _index(found)}


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ").strip()


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return markdown_rows(head, ([_cell(text) for text in row] for row in rows))


@dataclass(frozen=True)
class _Row:
    """A claim of an experiment. `reason`: why there are no verdicts."""

    claim: documents.Claim
    experiment: str
    verdicts: tuple[Verdict, ...]
    reason: str | None

    @property
    def kinds(self) -> list[str]:
        """Of each place. What this machine does not tell has no value and is not decided."""
        if not self.verdicts:
            return [NOT_RUN if self.reason is None else CANNOT]
        return [CANNOT if v.verdict == NOT_DECIDED and v.value is None else v.verdict for v in self.verdicts]

    @property
    def counted(self) -> str:
        return self.kinds[0] if len(set(self.kinds)) == 1 else NOT_DECIDED

    @property
    def verdict(self) -> str:
        if len(set(self.kinds)) == 1:
            return _strong(self.kinds[0])
        return "<br>".join(f"{_strong(kind)}: {v.where}" for kind, v in zip(self.kinds, self.verdicts, strict=True))

    @property
    def found(self) -> str:
        places = [f"{v.where}: " if len(self.verdicts) > 1 and v.where else "" for v in self.verdicts]
        told = [f"{place}{v.words}" for place, v in zip(places, self.verdicts, strict=True)]
        return "<br>".join(told) or self.reason or ""


def _strong(kind: str) -> str:
    return WORDS[kind] if kind in (CANNOT, NOT_RUN) else f"**{WORDS[kind]}**"


def _rows(one: Described) -> list[_Row]:
    rows = []
    for experiment in one.experiments:
        result = stored(experiment)
        for claim in claims_of(experiment):
            mine = () if result is None else tuple(v for v in result.verdicts if v.says == claim.says)
            rows.append(_Row(claim, experiment, mine, None if result is None else result.unavailable))
    return rows


def _page(name: str, one: Described) -> str:
    rows = _rows(one)
    tested = [
        (row.claim.says, row.claim.source or "", row.verdict, row.found, f"`perflab run {row.experiment}`")
        for row in rows
    ]
    lines = [
        _MADE.format(f"{name}.yaml, the experiments that it names, and results/"),
        f"# {one.title}",
        "",
        f"{one.document}. {one.about}",
        "",
        _counts_in_words(rows, one),
        "",
        "## What trials say",
        "",
        "Figures are with the interval that decides, and the numbers of trials `n` (of two: of the treatment and of "
        "what it is compared with). How a verdict is made: [findings.md](../findings.md#claims).",
        "",
        _table(("claim", "source", "verdict", "what perflab found", "command"), tested),
        "",
        _table(
            ("run", "date", "machine", "load before it", "took"),
            (_run_cells(experiment) for experiment in one.experiments),
        ),
        "",
    ]
    for title, verdicts in (
        ("## What needs no trial", ("holds", "does_not_hold")),
        ("## What cannot be tested here", (CANNOT,)),
    ):
        mine = [entry for entry in one.otherwise if entry.verdict in verdicts]
        if not mine:
            continue
        told = "evidence" if verdicts != (CANNOT,) else "why"
        lines += [title, ""]
        table = _table(
            ("claim", "source", "verdict", told, "command"),
            [(e.says, e.source, _strong(e.verdict), e.found, f"`{e.command}`" if e.command else "") for e in mine],
        )
        lines += [table, ""]
    return "\n".join(lines)


def _run_cells(experiment: str) -> Sequence[str]:
    result = stored(experiment)
    if result is None:
        return f"`{experiment}`", WORDS[NOT_RUN], "", "", ""
    load = "not recorded" if result.load is None else f"{result.load:.2f}"
    if not _is_quiet(result.load):
        load += ", others used the machine"
    took = "" if result.took_s is None else f"{result.took_s // 60} min {result.took_s % 60:02} s"
    return f"`{experiment}`", result.date, result.machine, load, took


def _counts(rows: Sequence[_Row], one: Described) -> Counter[str]:
    return Counter([row.counted for row in rows] + [entry.verdict for entry in one.otherwise])


def _counts_in_words(rows: Sequence[_Row], one: Described) -> str:
    counts = _counts(rows, one)
    said: dict[str, str] = {HOLDS: "hold", DOES_NOT_HOLD: "do not hold", NOT_DECIDED: "are not decided"}
    told = [f"{counts[kind]} {said.get(kind, words)}" for kind, words in WORDS.items() if counts[kind]]
    mixed = " Where the places of a claim differ, it is counted as not decided."
    differ = any(len(set(row.kinds)) > 1 for row in rows)
    return f"Of {sum(counts.values())} claims {', '.join(told)}.{mixed if differ else ''}"


def _index(found: dict[str, Described]) -> str:
    lines = [
        _MADE.format("the files beside it"),
        "# Claims of five documents, tested",
        "",
        "Five documents say what ROS 2 and DDS do. Each claim in them is tested by an experiment of the catalog where "
        "one can, and stands with its figure, interval, numbers of trials, machine and date. What perflab adds to "
        "explain a claim has the source perflab.",
        "",
    ]
    counted = {name: _counts(_rows(one), one) for name, one in found.items()}
    kinds = [kind for kind in WORDS if kind != NOT_RUN or any(counts[kind] for counts in counted.values())]
    rows = [
        (f"[{found[name].title}]({name}.md)", str(sum(counts.values())), *(str(counts[kind]) for kind in kinds))
        for name, counts in counted.items()
    ]
    lines.append(_table(("document", "claims", *(WORDS[kind] for kind in kinds)), rows))
    results = [stored(experiment) for one in found.values() for experiment in one.experiments]
    known = [result.took_s for result in results if result is not None and result.took_s is not None]
    lines += [
        "",
        "```sh",
        "make claims                              # runs each experiment that has no verdicts of its present file yet",
        "make claims ONLY='realtime_wakeup'       # these, again",
        "make claims FRESH=1                      # also those whose verdicts are not of today",
        "perflab run realtime_wakeup              # one, with its whole report",
        "```",
        "",
        "A run that is interrupted goes on where it was. Two CPUs are enough; the real-time ones need root or "
        "`rtprio 98`, those of the arm `make manipulation`, those of rclcpp a ROS 2 that is sourced. Measure on a "
        "machine that does nothing else: verdicts of a machine that others used are marked, and measured again.",
    ]
    if known:
        lines.append(f"The {len(known)} runs whose time is known took {round(sum(known) / 60)} minutes in all.")
    return "\n".join([*lines, ""])


def write_pages() -> None:
    for name, text in pages().items():
        (PAGES / name).write_text(text, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("experiments", nargs="*", help="these, again; default: all without a result")
    parser.add_argument("--fresh", action="store_true", help="also those whose result is not of today")
    parser.add_argument("--pages", action="store_true", help="runs nothing")
    parser.add_argument("--take", type=Path, metavar="RUN", help="takes the verdicts of this run of the experiment")
    asked = parser.parse_args()
    known = [experiment for one in described().values() for experiment in one.experiments]
    if unknown := sorted(set(asked.experiments) - set(known)):
        raise SystemExit(f"claims: {unknown[0]} tests no claim of docs/claims; there are {', '.join(known)}")
    if asked.take is not None:
        if len(asked.experiments) != 1:
            raise SystemExit("claims: --take RUN takes the name of one experiment")
        take(asked.take, asked.experiments[0], None, None, _sha256(asked.experiments[0]))
    elif not asked.pages:
        left = asked.experiments or [e for e in known if not is_done(e) or (asked.fresh and _is_old(e))]
        for number, experiment in enumerate(left, 1):
            print(f"claims: {number} of {len(left)}: {experiment}", flush=True)
            measure(experiment)
            write_pages()
    write_pages()


if __name__ == "__main__":
    main()
