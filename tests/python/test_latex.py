"""Tables, numbers and the document for papers: what stands in them is what the summary says, and LaTeX can read it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from made_experiment import Effect, Made, with_findings, write_run
from made_run import MadeTrial, Stream, arrivals, make_run

from perflab import columns as columns_of
from perflab.columns import Cell, Column
from perflab.errors import BadInput, PerflabError
from perflab.models import as_json
from perflab.quantity import COUNT, FACTOR, PLAIN, TIME
from perflab.report import latex
from perflab.report.latex.table import Table, Value
from perflab.report.latex.text import aligned, breakable, decimals, escape, number
from perflab.results.comparison import CONDITION, Remark
from perflab.results.curve import Bounds, BreakingPoint, Curve, CurveLevel, CurveMetric, Knee, LeftOutTrials, State
from perflab.results.figure import Median
from perflab.results.files import DesignedTrial
from perflab.results.run import RunData
from perflab.results.summary import Summary
from perflab.runs.rundata import open_run
from perflab.statistics.metrics import METRICS

HOSTILE = r"""100% _of_ #{\x$y^2}~&<a|b>"µ×–…é中☃ --opt ?` \end{document} \input{/etc/passwd}"""
PDFLATEX = shutil.which("pdflatex")


@pytest.fixture
def drawn() -> None:
    """Asked for by tests that look at pictures; the others need not wait for them."""


@pytest.fixture(autouse=True)
def _undrawn(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "drawn" not in request.fixturenames:
        monkeypatch.setattr(latex, "pictures", lambda runs: {})


def with_curves(summary: Summary) -> Summary:
    """With one curve and three searches, as sweeps and searches write them."""
    levels = tuple(
        CurveLevel(
            level=level,
            treatment=f"message_flood.rate={level}",
            n=8,
            successes=6,
            judged=8,
            success_low=0.409,
            success_high=0.929,
            invalid=1 if level == 2500.5 else 0,
            harness_errors=0,
        )
        for level in (0, 100, 2500.5)
    )
    points = (
        Median(value=45_000.0, low=44_000.0, high=46_500.0, n=8),
        Median(value=145_000.0, low=120_000.0, high=200_000.0, n=8),
        None,
    )
    latency = CurveMetric(
        unit="ns",
        points=points,
        confidence=0.95,
        knee=Knee(640.0, 410.0, 880.0, 0.95),
        knee_reason=None,
        saturation=None,
        saturation_reason="it rises to the last level",
        words=("latency p50 rises from 640 [410, 880] on.",),
    )
    curve = Curve(
        variant="cyclonedds",
        factor="message_flood.rate",
        others={"cpu_load.load": 80},
        scale="log",
        levels=levels,
        metrics={"latency.p50": latency},
    )
    searches = (
        search(integer=False, state="found", value=1834.2, interval=Bounds(1650.0, 1990.0, 0.95)),
        search(integer=True, state="found", value=12, interval=Bounds(11, 14, 0.95)),
        search(integer=False, state="not_reached", value=None, interval=None),
    )
    return replace(summary, curves=(curve,), breaking_points=searches)


def search(*, integer: bool, state: State, value: float | None, interval: Bounds | None) -> BreakingPoint:
    return BreakingPoint(
        variant="cyclonedds",
        treatment="message_flood",
        factor="message_flood.rate",
        others={},
        criterion="latency.p99 <= 5ms",
        share=0.5,
        low=100,
        high=3000,
        scale="log",
        integer=integer,
        falls=False,
        state=state,
        value=value,
        interval=interval,
        precision=0.1,
        max_trials=60,
        stopped="precise enough",
        trials=41,
        left_out=LeftOutTrials(2, 0),
        levels=(),
        course=(),
        fit=None,
        monotone_p=None,
        words=(f"{state} & so on",),
    )


def two_variants() -> Summary:
    made = Made(
        treatments={"cpu_load": Effect(latency=1.8), "message_flood": Effect(lost=3)},
        variants={"cyclonedds": Effect(), "fastdds": Effect(latency=1.3)},
        blocks=6,
    )
    return with_curves(with_findings(made.summary()))


@pytest.fixture
def run(tmp_path: Path) -> RunData:
    return open_run(write_run(tmp_path / "run", two_variants()))


@pytest.fixture
def measured(tmp_path: Path) -> RunData:
    """A run with trials, of which there are pictures; its names are what a user may choose."""
    streams = [Stream("a_b", "x_%", "c", 10, 200, arrivals([50.0 + i % 40 for i in range(200)]))]
    path = make_run(tmp_path / "100%_of#it", {"one_and_only": ["a_b", "c"]}, [MadeTrial(streams)], workload="w_%&{")
    return open_run(path)


# -- text ------------------------------------------------------------------------------------------------------------


def test_specials_are_escaped() -> None:
    assert escape("_ % & # $ { }") == r"\_ \% \& \# \$ \{ \}"
    assert escape("~^\\") == r"\textasciitilde{}\textasciicircum{}\textbackslash{}"
    assert escape("45 µs × 3 – …") == r"45 \ensuremath{\mu}s \ensuremath{\times} 3 -- \ldots{}"
    assert escape("4/4 [51, 100] %, 95 %") == r"4/4 [51, 100]\,\%, 95\,\%"  # no line ends before the sign
    assert breakable("50 %") == r"50\,\%"
    assert escape("--opt") == "-{}-opt"  # two hyphens, no dash
    assert escape("é ł λ") == r"\'{e} \l{} \ensuremath{\lambda}"
    assert escape("中\u200b\x07") == "[U+4E2D] "


@pytest.mark.parametrize("text", [HOSTILE, "µs", "a\nb", "", "−1", "Ä Ö ü ß", "x" * 99, "\U0001f600"])
def test_what_is_escaped_is_plain_ascii_without_specials(text: str) -> None:
    for made in (escape(text), breakable(text)):
        assert made.isascii()
        assert not bare_specials(made)
        assert balanced(made)


def test_long_names_may_be_broken_but_not_within_numbers() -> None:
    made = breakable("message_flood.rate=1000.5+cpu_load.load=80")
    assert r"message\_\allowbreak{}flood.\allowbreak{}rate=" in made
    assert "1000.5" in made
    assert r"\allowbreak" not in breakable("cpu_load")


@pytest.mark.parametrize(
    ("value", "low", "high", "places"),
    [
        (45.1234, 44.9, 46.2, 1),
        (45.1234, None, None, 1),
        (27231.0, 16000.0, 32000.0, 0),
        (0.012345, 0.0121, 0.0126, 5),
        (0.0, None, None, 0),
        (10.0, 9.9, 10.0, 2),
        (5.0, 5.0, 5.0, 2),
        (99.96, None, None, 0),
    ],
)
def test_decimals_follow_the_width_of_the_interval(
    value: float, low: float | None, high: float | None, places: int
) -> None:
    assert decimals(value, low, high) == places


def test_numbers_have_thin_spaces_and_true_signs() -> None:
    assert number(1234567.891, 1) == r"1\,234\,567.9"
    assert number(1234, 0) == "1234"
    assert number(-0.5, 1) == r"\ensuremath{-}0.5"
    assert number(-0.01, 1) == "0.0"
    assert number(float("inf"), 0) == r"\ensuremath{\infty}"


def test_points_stand_below_each_other() -> None:
    assert aligned([("1.25", 2), ("10", 0), ("3.5", 1)]) == ["1.25", r"10\phantom{.00}", r"3.5\phantom{0}"]


def test_a_value_and_its_interval_have_the_same_decimals() -> None:
    assert Value(45.1234, 44.9, 46.2).texts() == ("45.1", "[44.9, 46.2]")
    assert Value(2.0, 0.04, 30.0).texts() == ("2.00", "[0.04, 30.00]")  # a low end is not rounded to 0
    assert Value(6, 5.75, 6.25, COUNT.change).texts() == ("+6.00", "[+5.75, +6.25]")
    assert Value(None).texts() == ("--", "")


def test_a_unit_suits_most_values_of_a_column() -> None:
    p99 = METRICS["latency.p99"]
    assert p99.quantity.scale([45_000.0, 91_000.0, 2_500_000.0]) == (1e3, "µs")
    assert p99.quantity.scale([800.0, 900.0]) == (1.0, "ns")
    assert p99.quantity.scale([None, 0.0]) == (1.0, "ns")
    assert METRICS["rss_kb"].quantity.scale([2048.0]) == (1024.0, "MiB")


# -- tables ----------------------------------------------------------------------------------------------------------


def test_wide_tables_are_set_below_each_other_and_repeat_the_names() -> None:
    columns: list[Column[str]] = [
        Column("name", "name", lambda row: row, rank=0),
        *(
            Column(f"{i}", f"metric {i}", lambda _: Cell("1", 1000.0, low=900.0, high=1100.0), TIME, rank=0)
            for i in range(9)
        ),
    ]
    text = Table(columns_of.Table("t", "T", columns, ["a", "b"]), "c").floats("l")
    check(text)
    assert text.count(r"\begin{tabular}") == 2
    assert text.count("name &") == 2
    assert all(text.count(f"metric {i}}}") == 1 for i in range(9))


def test_long_tables_become_several_floats_that_repeat_the_group() -> None:
    columns: list[Column[int]] = [
        Column("name", "name", lambda row: f"row {row}", rank=0),
        Column("x", "x", lambda _: 1, PLAIN, rank=0),
    ]
    rows = list(range(100))
    table = Table(columns_of.Table("t", "T", columns, rows, grouped=lambda _: "all"), "c")
    text = table.floats("l")
    check(text)
    floats = text.count(r"\begin{\perflabfloat}")
    assert floats == 3
    assert text.count(r"\emph{all}") == floats
    assert re.findall(r"\\label\{(.*?)\}", text) == ["l", "l-2", "l-3"]
    assert re.findall(r"row (\d+)", text) == [str(i) for i in range(100)]


def test_tables_say_what_the_summary_says(run: RunData, tmp_path: Path) -> None:
    files = texts(latex.write([run], tmp_path / "out"))
    median = next(r for r in run.summary.results if r.treatment == "cpu_load").intervals["latency.p50"]
    assert median.value is not None and median.low is not None and median.high is not None
    value = Value(median.value / 1e3, median.low / 1e3, median.high / 1e3).texts()
    row = next(line for line in files["results.tex"].splitlines() if line.startswith(r"cpu\_load &"))
    assert value[0] in row
    assert value[1] in row
    assert "6/6 [61, 100]" in row
    assert run.summary.findings is not None
    compared = next(
        c
        for c in run.summary.findings.comparisons
        if c.kind == CONDITION and c.treatment.name == "cpu_load" and c.metric == "latency.p50"
    )
    assert compared.verdict == "higher"
    line = next(line for line in files["comparisons.tex"].splitlines() if line.startswith(r"cpu\_load &"))
    interval = compared.estimate.interval
    assert interval is not None
    shown = Value(compared.estimate.value, interval.low, interval.high, FACTOR).texts()
    assert [cell.replace(r"\phantom{0}", "") for cell in line.split(" & ")[2:4]] == list(shown)
    assert r"\textbf{higher}" in line
    assert "2500.5" in files["curve.tex"]
    assert r"6/8 [41, 93\,\%]" in files["curve.tex"]
    assert "1 invalid" in files["curve.tex"]
    assert "640 [410, 880]" in files["curve.tex"]
    assert "1834 & [1650, 1990]" in files["breaking_points.tex"]
    assert "12 & [11, 14]" in files["breaking_points.tex"]
    assert "not reached" in files["breaking_points.tex"]
    assert "Test CPU" in files["machine.tex"]


def test_values_are_named(run: RunData, tmp_path: Path) -> None:
    text = texts(latex.write([run], tmp_path / "out"))["values.tex"]
    found = dict(re.findall(r"^\\perflabvalue\{(.*?)\}\{(.*)\}$", text, re.MULTILINE))
    assert found["cyclonedds/cpu_load/trials"] == "6"
    assert found["cyclonedds/cpu_load/latency.p50"].endswith(r"~\ensuremath{\mu}s")
    assert found["cyclonedds/cpu_load/latency.p50/verdict"] == "higher"
    assert re.match(r"1\.[78]\d+\\ensuremath", found["cyclonedds/cpu_load/latency.p50/effect"])
    assert found["cyclonedds,cpu_load.load=80/message_flood.rate/latency.p50/knee"] == "640"
    assert found["cyclonedds/message_flood.rate/latency.p99-at-most-5ms/breaking-point"] == "1834"
    assert found["machine/CPU"] == "Test CPU"


def test_names_of_values_stay_when_a_run_is_repeated(tmp_path: Path) -> None:
    def names(seed: int, folder: str) -> list[str]:
        made = Made(treatments={"cpu_load": Effect(latency=1.8)}, blocks=3, seed=seed)
        opened = open_run(write_run(tmp_path / folder, with_findings(made.summary())))
        text = texts(latex.write([opened], tmp_path / f"{folder}_out"))["values.tex"]
        return re.findall(r"^\\perflabvalue\{(.*?)\}", text, re.MULTILINE)

    assert names(1, "first") == names(2, "second")


def test_several_runs_have_files_labels_and_values_of_their_own(
    run: RunData, measured: RunData, tmp_path: Path
) -> None:
    files = texts(latex.write([run, measured], tmp_path / "out"))
    assert {"a_results.tex", "b_results.tex", "a_machine.tex", "b_machine.tex"} <= set(files)
    labels = [label for text in files.values() for label in re.findall(r"\\label\{(.*?)\}", text)]
    assert len(labels) == len(set(labels))
    assert r"\perflabvalue{a/cyclonedds/cpu_load/trials}" in files["values.tex"]
    assert r"\perflabvalue{b/baseline/trials}{1}" in files["values.tex"]


def test_the_document_reads_everything_that_was_written(run: RunData, tmp_path: Path) -> None:
    paths = latex.write([run], tmp_path / "out")
    document = texts(paths)["report.tex"]
    read = set(re.findall(r"^\\input\{(.*?)\}$", document, re.MULTILINE))
    assert read == {p.stem for p in paths if p.suffix == ".tex"} - {"report"}


def test_a_run_with_invalid_trials_says_so_first(tmp_path: Path) -> None:
    summary = with_findings(Made(treatments={"cpu_load": Effect()}, blocks=3).summary())
    first, *others = summary.results
    invalid = replace(first, outcomes=replace(first.outcomes, invalid=2))
    summary = replace(summary, results=(invalid, *others))
    files = texts(latex.write([open_run(write_run(tmp_path / "run", summary))], tmp_path / "out"))
    body = files["report.tex"].partition(r"\end{center}")[2].strip()
    assert body.startswith(r"\textbf{Not every trial was a success: 2 invalid.}")
    assert "2 invalid" in files["results.tex"]


def test_a_run_that_was_not_finished_says_so_first(measured: RunData, tmp_path: Path) -> None:
    planned = replace(measured, manifest=replace(measured.manifest, trials=(DesignedTrial(),) * 8))
    body = texts(latex.write([planned], tmp_path / "out"))["report.tex"].partition(r"\end{center}")[2].strip()
    assert body.startswith(r"\textbf{The run was not finished: 1 of 8 planned trials are in it.}")


@pytest.mark.usefixtures("drawn")
def test_pictures_are_drawn_as_pdf(measured: RunData, tmp_path: Path) -> None:
    paths = latex.write([measured], tmp_path / "out")
    pictures = [p for p in paths if p.suffix == ".pdf"]
    assert pictures
    assert all(p.read_bytes().startswith(b"%PDF-") for p in pictures)
    figures = texts(paths)["figures.tex"]
    assert re.findall(r"\\includegraphics\[.*?\]\{(.*?)\}", figures) == [p.stem for p in pictures]


def test_a_single_trial_has_values_without_intervals(measured: RunData, tmp_path: Path) -> None:
    table = texts(latex.write([measured], tmp_path / "out"))["results.tex"]
    assert "too few trials for their intervals" in table
    assert "latency p50" in table


@pytest.mark.usefixtures("drawn")
def test_the_same_run_gives_the_same_files(measured: RunData, tmp_path: Path) -> None:
    first, second = (latex.write([measured], tmp_path / name) for name in ("one", "two"))
    assert [p.read_bytes() for p in first] == [p.read_bytes() for p in second]


def test_foreign_runs_have_tables_too(tmp_path: Path) -> None:
    source = Path(__file__).resolve().parent.parent / "data/irobot/two"
    for text in texts(latex.write([open_run(source)], tmp_path / "out")).values():
        check(text)


def test_nothing_to_tell_is_bad_input(tmp_path: Path) -> None:
    opened = open_run(write_run(tmp_path / "run", Summary(run="run", valid=False, results=())))
    with pytest.raises(BadInput, match="recorded no trial"):
        latex.write([opened], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_damaged_manifest_is_bad_input(run: RunData, tmp_path: Path) -> None:
    document = {**as_json(run.manifest), "middlewares": [{"version": "1.0"}]}
    (run.path / "manifest.json").write_text(json.dumps(document))
    with pytest.raises(BadInput, match=r"is damaged: it lacks middlewares\.0\.name"):
        latex.write([open_run(run.path)], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_made_is_told(run: RunData, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(PerflabError, match="--latex"):
        latex.write([run], tmp_path / "file" / "out")


# -- LaTeX -----------------------------------------------------------------------------------------------------------


def hostile(summary: Summary) -> Summary:
    """The same with a name that has everything in it in place of a treatment's, and as workload, remark and run."""
    assert summary.findings is not None

    def renamed(name: str) -> str:
        return HOSTILE if name == "message_flood" else name

    results = tuple(replace(r, workload=HOSTILE, treatment=renamed(r.label)) for r in summary.results)
    comparisons = tuple(
        replace(
            c,
            baseline=replace(c.baseline, name=renamed(c.baseline.name)),
            treatment=replace(c.treatment, name=renamed(c.treatment.name)),
        )
        for c in summary.findings.comparisons
    )
    remarks = (*summary.findings.remarks, Remark("x", HOSTILE))
    findings = replace(summary.findings, comparisons=comparisons, remarks=remarks)
    return replace(summary, results=results, findings=findings)


@pytest.fixture
def nasty(run: RunData) -> RunData:
    manifest = replace(
        run.manifest,
        command_line=("perflab", "run", HOSTILE),
        created_utc="2026-01-02T03:04:05",
        inventory={"cpu_model": HOSTILE, "environment": {"ROS_%_": HOSTILE}, "hypervisor": None},
    )
    return RunData(HOSTILE, run.path, run.origin, hostile(run.summary), manifest, run.trials, (HOSTILE,))


def test_every_file_is_well_formed(nasty: RunData, measured: RunData, tmp_path: Path) -> None:
    for text in texts(latex.write([nasty, measured], tmp_path / "out")).values():
        check(text)


@pytest.mark.long
@pytest.mark.skipif(PDFLATEX is None, reason="no pdflatex; install it with `apt install texlive-latex-recommended`")
@pytest.mark.usefixtures("drawn")
@pytest.mark.parametrize("names", [("run",), ("nasty", "measured")], ids="+".join)
def test_pdflatex_compiles_it(names: tuple[str, ...], tmp_path: Path, request: pytest.FixtureRequest) -> None:
    folder = tmp_path / "out"
    latex.write([request.getfixturevalue(name) for name in names], folder)
    assert compiled(folder, "report.tex") == []
    assert (folder / "report.pdf").read_bytes().startswith(b"%PDF-")


@pytest.mark.long
@pytest.mark.skipif(PDFLATEX is None, reason="no pdflatex; install it with `apt install texlive-latex-recommended`")
def test_each_table_compiles_with_booktabs_alone_and_values_in_a_paper(run: RunData, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    tables = [p.stem for p in latex.write([run], folder) if p.suffix == ".tex"]
    inputs = "".join(rf"\input{{{name}}}" for name in tables if name not in ("report", "values", "figures"))
    paper = (
        r"\documentclass[twocolumn]{article}\usepackage{booktabs}\newcommand{\perflabfloat}{table*}"
        rf"\input{{values}}\begin{{document}}\section{{p50 \perflab{{cyclonedds/cpu_load/latency.p50}}}}"
        rf"{inputs}\end{{document}}"
    )
    (folder / "paper.tex").write_text(paper)
    assert [line for line in compiled(folder, "paper.tex") if not line.startswith("Overfull")] == []
    (folder / "paper.tex").write_text(paper.replace("cpu_load/latency.p50}", "no_such/latency.p50}"))
    assert compiled(folder, "paper.tex")[0].startswith("perflab: no value named cyclonedds/no_such/latency.p50")


def compiled(folder: Path, name: str) -> list[str]:
    """What LaTeX complains of, in its second pass."""
    assert PDFLATEX is not None
    for _ in range(2):
        done = subprocess.run(
            [PDFLATEX, "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", name],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=240,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-3000:]
    wanted = r"^(?:Overfull \\hbox \((?:[5-9]|\d\d+)\.|LaTeX Warning: (?!Float too large)|perflab: )"
    return [line for line in done.stdout.splitlines() if re.match(wanted, line)]


def texts(paths: list[Path]) -> dict[str, str]:
    return {p.name: p.read_text() for p in paths if p.suffix == ".tex"}


def bare_specials(text: str) -> list[str]:
    """Characters that mean something to LaTeX and are not escaped."""
    rest = re.sub(r"\\(?:[A-Za-z]+|.)", "", text)
    return re.findall(r"[%&#$_^~\\]", rest)


def balanced(text: str) -> bool:
    depth = 0
    for brace in re.findall(r"[{}]", re.sub(r"\\[{}]", "", text)):
        depth += 1 if brace == "{" else -1
        if depth < 0:
            return False
    return depth == 0


def check(text: str) -> None:
    """Braces and environments are balanced, every row has as many cells as its table, nothing is unescaped."""
    text = "\n".join(line for line in text.splitlines() if not line.startswith("%"))
    assert text.isascii()
    stripped = text.replace("\\\\", "\n")
    assert balanced(stripped)
    stack: list[str] = []
    for kind, name in re.findall(r"\\(begin|end)\{([^}]*)\}", stripped):
        if kind == "begin":
            stack.append(name)
        else:
            assert stack.pop() == name
    assert not stack
    for tabular in re.findall(r"\\begin\{tabular\}(.*?)\\end\{tabular\}", text, re.DOTALL):
        check_tabular(tabular)
    definitions = re.sub(r"\\providecommand.*?(?=\n\\perflabvalue\{|\Z)", "", text, flags=re.DOTALL)
    outside = re.sub(r"\\begin\{tabular\}.*?\\end\{tabular\}", "", definitions, flags=re.DOTALL)
    outside = re.sub(r"\\(?:perflabvalue|label|input|includegraphics\[.*?\]|ensuremath)\{[^}]*\}", "", outside)
    assert not [c for c in bare_specials(outside) if c != "~"], outside


def check_tabular(tabular: str) -> None:
    spec, _, body = tabular.partition("\n")
    columns = re.sub(r"@\{[^}]*\}|p\{[^}]*\}", lambda m: "l" if m.group().startswith("p") else "", spec[1:-1])
    assert re.fullmatch("[lr]+", columns), spec
    for row in re.split(r"\\\\|\\tabularnewline", body):
        cells = re.sub(r"\\(?:toprule|midrule|bottomrule|addlinespace)", "", row).strip()
        if not cells:
            continue
        parts = re.split(r"(?<!\\)&", cells)
        spans = [int(m.group(1)) if (m := re.match(r"\s*\\multicolumn\{(\d+)\}", p)) else 1 for p in parts]
        assert sum(spans) == len(columns), (cells, spec)
        for part in parts:
            plain = re.sub(r"\\multicolumn\{\d+\}\{(?:@\{\}|[lrc]|p\{\d+pt\})*\}", "", part)
            assert not [c for c in bare_specials(re.sub(r"\\ensuremath\{[^}]*\}", "", plain)) if c != "~"], part
