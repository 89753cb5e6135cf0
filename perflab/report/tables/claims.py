"""The claims that an experiment tests: each with its verdict and the evidence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from perflab.columns import Cell, Column, Table, Tone
from perflab.results.claim import DOES_NOT_HOLD, HOLDS, NOT_DECIDED, VERDICT_WORDS, Claim, ClaimVerdict
from perflab.units import plural

SIGNS: Mapping[ClaimVerdict, tuple[str, Tone]] = {
    HOLDS: ("✔", "good"),
    DOES_NOT_HOLD: ("✖", "bad"),
    NOT_DECIDED: ("?", "faint"),
}


def table(claims: Sequence[Claim]) -> Table[Claim]:
    """In text, i.e. Markdown."""
    columns: list[Column[Claim]] = [
        Column("verdict", "verdict", _verdict, rank=0),
        Column("claim", "claim", lambda claim: claim.says, rank=0),
        Column("found", "found", lambda claim: claim.words, rank=0),
        Column("where", "where", where, rank=1),
        Column("expects", "holds if", lambda claim: claim.expects, rank=2),
        Column("source", "source", lambda claim: claim.source, rank=3),
    ]
    return Table("claims", "Claims", columns, claims)


def _verdict(claim: Claim) -> Cell:
    sign, tone = SIGNS[claim.verdict]
    return Cell(f"{sign} {VERDICT_WORDS[claim.verdict]}", VERDICT_WORDS[claim.verdict], tone)


def where(claim: Claim) -> str:
    """ "load", "cyclonedds, workload.threads=usual: busy"."""
    return f"{claim.variant}: {claim.treatment}" if claim.variant else claim.treatment


def basis(claim: Claim) -> str:
    """The deciding rule, the place, and the source of the claim."""
    source = f"; source: {claim.source}" if claim.source else ""
    return f"holds if `{claim.expects}` ({where(claim)}){source}"


def in_words(claims: Sequence[Claim]) -> str:
    """ "Of 4 claims 1 holds, 2 do not hold, 1 is not decided"; empty if there are none."""
    if not claims:
        return ""
    counts = {verdict: sum(claim.verdict == verdict for claim in claims) for verdict in SIGNS}
    return f"Of {plural(len(claims), 'claim')} {', '.join(_counted(counts))}"


def _counted(counts: Mapping[ClaimVerdict, int]) -> Iterator[str]:
    for verdict, one, several in (
        (HOLDS, "holds", "hold"),
        (DOES_NOT_HOLD, "does not hold", "do not hold"),
        (NOT_DECIDED, "is not decided", "are not decided"),
    ):
        if n := counts[verdict]:
            yield f"{n} {one if n == 1 else several}"
