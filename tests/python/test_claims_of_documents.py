"""docs/claims: pages, results and experiments say the same."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import claims
import pytest

from perflab import catalog
from perflab.results.claim import VERDICT_WORDS

DESCRIBED = claims.described()


def test_every_claim_of_the_catalog_is_of_one_document() -> None:
    named = [experiment for one in DESCRIBED.values() for experiment in one.experiments]
    assert len(set(named)) == len(named)
    assert set(named) == {entry.name for entry in catalog.experiments() if claims.claims_of(entry.name)}


@pytest.mark.parametrize("experiment", [e for one in DESCRIBED.values() for e in one.experiments])
def test_results_are_of_claims_that_there_are(experiment: str) -> None:
    result = claims.stored(experiment)
    if result is None or result.unavailable is not None:
        return  # nothing is claimed of it
    assert result.experiment == experiment
    assert {verdict.verdict for verdict in result.verdicts} <= VERDICT_WORDS.keys()
    asked = {claim.says for claim in claims.claims_of(experiment)}
    assert {verdict.says for verdict in result.verdicts} == asked


def test_pages_are_as_they_would_be_written() -> None:
    written = {path.name: path.read_text(encoding="utf-8") for path in claims.PAGES.glob("*.md")}
    assert written == claims.pages(), "python benchmarks/claims.py --pages writes them anew"


def test_a_result_stays_where_the_machine_cannot_measure_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "RESULTS", tmp_path)
    name = "realtime_wakeup"
    sha256 = hashlib.sha256(claims.experiment_file(name).read_bytes()).hexdigest()
    verdict = claims.Verdict(
        says="It is so.", where="cyclonedds", verdict="holds", words="0.5x", value=0.5, low=0.4, high=0.6,
        scale="ratio", unit="", n=8, n_baseline=8,
    )  # fmt: skip
    cannot = claims.Stored(
        experiment=name, file_sha256=sha256, date="2026-01-02", machine="a machine", load=0.1, took_s=None,
        verdicts=(), unavailable="no right",
    )  # fmt: skip
    measured = replace(cannot, verdicts=(verdict,), unavailable=None)
    claims.store(cannot)
    assert not claims.is_done(name)
    claims.store(measured)
    claims.store(cannot)
    assert claims.stored(name) == measured
    assert claims.is_done(name)
    # Measured again: beside others, and of another form of the experiment.
    for other in (replace(measured, load=64.0), replace(measured, file_sha256="0" * 64)):
        claims.store(other)
        assert not claims.is_done(name)
