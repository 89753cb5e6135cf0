"""Repetitions until all is decided: what the course does, and that claims stay as rare as they are said to be.

The error rates are those of experiments that are made of random numbers and go the way of real ones: the course adds
blocks, the findings judge them.
"""

from __future__ import annotations

import functools
import itertools
import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from test_design import NATIVE, needs_native

from perflab import models
from perflab.design.document import with_options
from perflab.design.settings import Experiment
from perflab.design.treatments import Planned, designed
from perflab.design.until_decided import Foreseen, Judged, UntilDecided, looks_of, next_look
from perflab.experiment.build import asked
from perflab.experiment.deciding import enough, judged, too_few
from perflab.results.comparison import CLAIMS, EarlierLook, Finding, Looks, Verdict
from perflab.results.files import StoppingRule
from perflab.results.outcome import SUCCESS
from perflab.results.trial import ProcessResources
from perflab.statistics import findings
from perflab.statistics.accounting import Accounts
from perflab.statistics.comparison import compare_all, verdicts_alone
from perflab.statistics.metrics import METRICS, Metric
from perflab.statistics.sample import Sample
from perflab.statistics.summary import TrialData, summarize

pytestmark = needs_native

METRIC = "cpu_percent"
CONDITIONS = ("cpu_load:load=10", "cpu_load:load=20", "cpu_load:load=30")
FROM_START = StoppingRule(from_start=True, at_most_s=60)
ADDED = StoppingRule(from_start=False, at_most_s=60)


@functools.cache
def experiment(conditions: int = 1, trials: int = 2, **more: Any) -> Experiment:
    keys = {"workload": "sierra_nevada", "middlewares": "virtual", "conditions": list(CONDITIONS[:conditions])}
    statistics = {"statistics": {"metrics": [METRIC]}}
    return asked(
        with_options(None, {**keys, **statistics, "trials": trials, **more}), NATIVE, output=None, command_line=()
    )


def trial(planned: Planned, value: float) -> TrialData:
    """One that measured this."""
    return TrialData(
        **models.shared(TrialData, designed(planned.treatment)),
        workload="made",
        outcome=SUCCESS,
        order=planned.order,
        number=planned.order,
        block=planned.block,
        after=planned.after,
        duration_s=1.0,
        started_ns=0,
        accounts=Accounts((), (), True, (), 0, 0),
        resources=(ProcessResources(process="p", cpu_percent_mean=value, rss_kb_max=1),),
    )


# -- the course ------------------------------------------------------------------------------------------------------


class Watched:
    """A course in which each trial takes a second, with the looks that it made; `says` of so many trials."""

    def __init__(
        self,
        says: Callable[[int], Sequence[Verdict]],
        rule: StoppingRule = FROM_START,
        trials: Sequence[TrialData] = (),
        plan: Experiment | None = None,
        needed: int = 1,
        block_s: float = 0.0,
        trial_s: float = 1.0,
        counts: int = 0,
    ) -> None:
        self.now_s = 0.0
        self.trial_s = trial_s
        self.foreseen: list[Foreseen] = []
        self.looks: list[int] = []
        self.blocks: list[list[int]] = []
        self.trials = list(trials)
        self.plan = plan or experiment()

        def judge(told: Sequence[TrialData], judged_by: StoppingRule) -> Sequence[Judged]:
            assert judged_by.looks[-1] == len(told)
            self.looks.append(len(told))
            waited_for = [Judged(verdict, verdict == "too_few_trials") for verdict in says(len(told))]
            return [*waited_for, *[Judged("not_shown", decidable=False)] * counts]

        self.course = UntilDecided(
            self.plan.document,
            self.plan.treatments,
            self.plan.order,
            replace(rule, ended=None),
            judge,
            block_s=block_s,
            seen=len(trials),
            enough=lambda looks, compared: needed,
            begins=self.foreseen.append,
            added=lambda block: self.blocks.append([p.order for p in block]),
            clock=lambda: self.now_s,
        )

    def run(self, most: int = 1000) -> StoppingRule:
        """Until it ends or so many trials are there; then the run is interrupted."""
        before = len(self.trials)
        for _ in range(before):
            planned = self.course.next()
            assert planned is not None
            self.course.ended(planned, self.trials[planned.order - 1])
        while len(self.trials) < most and (planned := self.course.next()) is not None:
            assert planned == self.course.next()
            self.now_s += self.trial_s
            self.trials.append(trial(planned, 1.0))
            self.course.ended(planned, self.trials[-1])
        return self.course.close()


def not_before(trials: int, least: int = 0) -> Callable[[int], Sequence[Verdict]]:
    """Two comparisons: of fewer trials than `least` nothing can be shown; `trials` of them decide both."""
    return lambda n: ["too_few_trials"] * 2 if n < least else ["higher", "equivalent" if n >= trials else "not_shown"]


def test_blocks_are_added_until_all_is_decided_and_looks_become_rare() -> None:
    made = Watched(not_before(40))
    rule = made.run()
    assert (rule.ended, rule.looks) == ("decided", (6, 9, 15, 24, 36, 54))
    assert all(b >= next_look(a) for a, b in zip(rule.looks, rule.looks[1:], strict=False))
    assert made.blocks[:2] == [[7, 8, 9], [10, 11, 12]]
    assert len(made.trials) == 54 == made.course.most


def test_what_can_show_nothing_is_no_look() -> None:
    rule = Watched(not_before(12, least=11)).run()
    assert (rule.ended, rule.looks) == ("decided", (12,))


def test_time_that_is_up_ends_it_with_a_last_look() -> None:
    made = Watched(not_before(10_000), replace(FROM_START, at_most_s=20))
    rule = made.run()
    assert rule.ended == "time_up"
    assert len(made.trials) == rule.looks[-1] == 24  # another block would take 3 s, and 18 are over
    assert Watched(not_before(10_000), replace(FROM_START, at_most_s=2)).run().looks == (6, 9)


def test_one_that_is_decided_by_the_plan_adds_nothing_and_one_that_was_resumed_neither() -> None:
    first = Watched(not_before(0))
    rule = first.run()
    assert (rule.ended, rule.looks, first.blocks) == ("decided", (6,), [])
    again = Watched(not_before(0), rule, first.trials)
    assert (again.run(), again.blocks) == (rule, [])


@pytest.mark.parametrize("killed", [2, 6, 7, 8, 9, 10, 14])
def test_one_that_was_interrupted_goes_on_where_it_was_with_one_more_look(killed: int) -> None:
    first = Watched(not_before(10_000))
    cut = first.run(most=killed)
    assert cut.ended == "interrupted" and cut.looks[-1] == killed
    again = Watched(not_before(30), cut, first.trials)
    rule = again.run()
    assert rule.ended == "decided" and rule.looks[: len(cut.looks)] == cut.looks
    whole = Watched(not_before(30))
    whole.run()
    assert [(t.order, t.block, t.treatment) for t in again.trials[:30]] == [
        (t.order, t.block, t.treatment) for t in whole.trials[:30]
    ]


@pytest.mark.parametrize("killed", [7, 8, 10])
def test_one_that_was_killed_has_had_a_look_for_somebody_may_have_reported_it(killed: int) -> None:
    first = Watched(not_before(10_000))
    first.run(most=killed)
    kept = replace(FROM_START, looks=tuple(n for n in (6, 9) if n < killed))  # as the manifest has it
    assert looks_of(kept, killed).number == len(kept.looks) + 1
    again = Watched(not_before(30), kept, first.trials)
    assert killed in again.run().looks


def test_a_rule_that_is_added_counts_what_was_seen() -> None:
    plan = experiment(trials=5)
    seen = [trial(p, 1.0) for p in plan.order]
    rule = Watched(not_before(20), ADDED, seen, plan).run()
    assert (rule.from_start, rule.looks, rule.ended) == (False, (15, 24), "decided")
    halves = Watched(not_before(20), ADDED, seen[:7], plan).run()
    assert halves.looks == (7, 15, 24)


def test_twice_in_a_row_goes_on_from_the_last_look() -> None:
    first = Watched(not_before(10_000), replace(FROM_START, at_most_s=20))
    rule = first.run()
    again = Watched(not_before(10_000), rule, first.trials)
    assert again.run().looks == (*rule.looks, 36, 42)
    assert again.looks[0] == rule.looks[-1]  # judged anew, at the same look


# -- what an earlier look has shown -----------------------------------------------------------------------------------

BLOCK = 7  # trials of three conditions, with a baseline after each


def measured(blocks: Mapping[int, float], trials: int) -> list[TrialData]:
    """Three conditions that take longer by the factor of their block; the last one changes nothing at all."""
    plan = experiment(conditions=3, trials=len(blocks))
    labels = sorted({p.treatment.label for p in plan.order if p.treatment.conditions})
    longer = set(labels[:2])

    def value(planned: Planned) -> float:
        factor = blocks[planned.block] if planned.treatment.label in longer else 1.0
        return 20 * factor * (1 + (planned.order * 7 % 11) / 20)

    return [trial(planned, value(planned)) for planned in plan.order[:trials]]


def found_at(trials: Sequence[TrialData], looks: Looks) -> list[Finding]:
    made = findings.find(summarize("", trials).results, metrics=[METRICS[METRIC]], looks=looks)
    return [c for c in made.comparisons if c.kind == "condition"]


def test_what_a_look_has_shown_stays_shown_where_the_next_can_show_less() -> None:
    trials = measured(dict.fromkeys(range(1, 6), 3.0), 5 * BLOCK)
    at_first = found_at(trials[: 4 * BLOCK], Looks())
    assert [c.verdict for c in at_first].count("higher") == 2
    alone = found_at(trials, Looks(number=2))
    assert {c.verdict for c in alone} == {"too_few_trials"}  # at a level that these numbers cannot reach
    looks = looks_of(replace(ADDED, looks=(4 * BLOCK,)), len(trials))
    assert looks == Looks(number=2, earlier=(4 * BLOCK,))
    again = found_at(trials, looks)
    at = EarlierLook(1, 4 * BLOCK)
    for before, now in zip(at_first, again, strict=True):
        assert now.look == at
        assert (now.verdict, now.estimate, now.p_adjusted) == (before.verdict, before.estimate, before.p_adjusted)
    said = [c.words for c in again if c.verdict == "higher"]
    assert all(words.endswith("; shown at look 1, after 28 trials.") for words in said)
    (other,) = (c for c in again if c.verdict != "higher")
    assert "; judged at look 1, after 28 trials, since later trials are too few for another look" in other.words
    run = experiment(conditions=3, trials=5)
    assert [(j.verdict, j.too_few) for j in judged(run, trials, looks)] == [(c.verdict, True) for c in again]


def test_a_later_look_says_what_it_shows_itself_and_what_an_earlier_one_did() -> None:
    """The effect is gone in later blocks: the first look has shown it, and the second cannot."""
    trials = measured({b: 3.0 if b <= 4 else 1.0 for b in range(1, 13)}, 12 * BLOCK)
    again = found_at(trials, Looks(number=2, earlier=(4 * BLOCK,)))
    shown = [c for c in again if c.verdict == "higher"]
    assert len(shown) == 2 and all(c.look == EarlierLook(1, 4 * BLOCK) for c in shown)
    (other,) = (c for c in again if c.verdict != "higher")
    assert other.look is None and other.treatment.n == 12
    lasting = measured(dict.fromkeys(range(1, 13), 3.0), 12 * BLOCK)
    assert all(c.look is None for c in found_at(lasting, Looks(number=2, earlier=(4 * BLOCK,))))


def test_a_look_is_spent_where_only_what_cannot_be_decided_could_be_shown() -> None:
    """Counts may be claimed to differ, though nobody waits for them."""
    seen = [trial(p, 1.0) for p in experiment().order]
    rule = replace(ADDED, at_most_s=2.0)
    assert Watched(lambda n: ["too_few_trials"], rule, seen, counts=1, block_s=3.0).run().looks == (6,)
    assert Watched(lambda n: ["too_few_trials"], rule, seen, block_s=3.0).run().looks == ()


# -- what is foreseen ------------------------------------------------------------------------------------------------


def words(needed: int, at_most_s: float, looks: tuple[int, ...] = (), seen: int = 0) -> str:
    plan = experiment(trials=2)  # of three trials each
    trials = [trial(p, 1.0) for p in plan.order][:seen]
    rule = replace(ADDED if seen else FROM_START, at_most_s=at_most_s, looks=looks)
    made = Watched(not_before(10_000), rule, trials, plan, needed, block_s=40.0)
    assert made.foreseen == []
    made.run(most=seen + 1)
    (foreseen,) = made.foreseen
    return foreseen.words


def test_it_says_before_the_first_trial_when_it_looks_and_whether_there_is_time_for_it() -> None:
    assert words(2, 600) == "look 1 comes with 2 repetitions, which are planned"
    assert words(5, 600) == "look 1 comes with 5 repetitions, 3 more than now: about 2 min"
    assert words(3, 600, seen=6) == "look 2 comes with 3 repetitions, 1 more than now: about 40 s"
    assert words(7, 60, seen=6) == (
        "look 2 comes with 7 repetitions, 5 more than now: about 3 min 20 s, but --at-most 1 min is shorter: "
        "nothing more can be shown until then"
    )
    # half as many more as at the last look, though fewer could show it
    assert words(3, 130, looks=(18,), seen=6).startswith("look 2 comes with 9 repetitions")
    assert words(3, 130, looks=(18,), seen=6).endswith("is shorter: the look comes when that time is up, with about 5")


def test_of_one_that_was_resumed_the_blocks_count_that_were_added_before() -> None:
    first = Watched(not_before(10_000), replace(FROM_START, at_most_s=20), block_s=3.0)
    rule = first.run()
    again = Watched(not_before(10_000), rule, first.trials, block_s=3.0)
    again.run()
    (foreseen,) = again.foreseen
    assert (foreseen.number, foreseen.there, foreseen.repetitions) == (len(rule.looks) + 1, 8, 12)


def test_as_many_as_are_foreseen_can_show_it_and_one_less_cannot() -> None:
    plan = experiment(conditions=3, trials=9)
    looks = Looks(number=2)
    needed = enough(plan, looks)
    made = [trial(p, 1.0 + p.order % 3) for p in plan.order]
    assert not any(one.too_few for one in judged(plan, made[: needed * BLOCK], looks))
    assert all(one.too_few for one in judged(plan, made[: (needed - 1) * BLOCK], looks))


def test_a_block_that_does_not_fit_into_the_time_does_not_begin() -> None:
    """What trials took counts, with start, end and the wait for a quiet machine."""
    plan = experiment(trials=2)
    slow = [replace(trial(p, 1.0), took_s=20.0) for p in plan.order]
    made = Watched(not_before(10_000), replace(ADDED, at_most_s=50), slow, plan, block_s=9.0)
    assert made.run().ended == "time_up"
    assert made.blocks == []
    fits = Watched(not_before(10_000), replace(ADDED, at_most_s=70), slow, plan, block_s=9.0, trial_s=20.0)
    assert fits.run().ended == "time_up"
    assert len(fits.blocks) == 1


# -- before the run --------------------------------------------------------------------------------------------------


def test_a_plan_of_too_few_trials_says_so_and_with_how_many_there_is_something_to_see() -> None:
    said = too_few(experiment(conditions=3, trials=2))
    assert said == [
        "with 2 repetitions nothing can be shown among 3 comparisons, with 4 it can: use --trials 4, or "
        "--until-decided, which adds repetitions as needed"
    ]
    assert too_few(experiment(conditions=3, trials=4)) == []
    assert too_few(experiment(conditions=3, trials=1)) == []


@pytest.mark.parametrize(("trials", "shown"), [(3, False), (4, True)])
def test_as_many_as_it_says_can_show_it_and_one_less_cannot(trials: int, shown: bool) -> None:
    plan = experiment(conditions=3, trials=trials)
    far = {"baseline": 1.0}
    made = [trial(p, far.get(p.treatment.label, 100.0) * (1 + p.order / 1000)) for p in plan.order]
    assert {one.verdict for one in judged(plan, made, Looks())} == {"higher" if shown else "too_few_trials"}
    assert (too_few(plan) == []) is shown


# -- how many more trials ---------------------------------------------------------------------------------------------

HAD = 6  # blocks, of two trials of the baseline and one of the treatment


def forecast_and_needed(effect: float, sd: float, seed: int) -> tuple[int, int] | None:
    """More blocks that decide a comparison: as forecast, and at which of its looks the course finds it decided; None
    where it was decided already, or nothing is forecast."""
    rng = np.random.default_rng(seed)
    looks = [n for n in itertools.accumulate(range(8), lambda n, _: next_look(n), initial=HAD) if n <= 21 * HAD]
    blocks = np.arange(1, looks[-1] + 1)
    logs = rng.normal(0, sd, (len(blocks), 3))
    logs[:, 2] += math.log(effect)
    values = 20 * np.exp(logs + rng.normal(0, sd, (len(blocks), 1)))

    def samples(n: int) -> tuple[Sample, Sample]:
        return (
            Sample.of(values[:n, :2].ravel().tolist(), blocks=np.repeat(blocks[:n], 2).tolist()),
            Sample.of(values[:n, 2].tolist(), blocks=blocks[:n].tolist()),
        )

    metric, share = METRICS[METRIC], Looks().next.share
    (found,) = compare_all([("", metric, *samples(HAD), None)], share=Looks().share, next_share=share)
    forecast = found.comparison.more_trials
    if forecast is None:
        return None
    decided = (n for n in looks[1:] if _verdict(metric, *samples(n), share) in CLAIMS)
    return forecast, next(decided, looks[-1]) - HAD


def _verdict(metric: Metric, baseline: Sample, treatment: Sample, share: float) -> Verdict:
    return verdicts_alone([(metric, baseline, treatment, lambda: None)], ALPHA, 0.05, 1 / share)[0]


@pytest.mark.parametrize(("effect", "sd"), [(1.1, 0.1), (1.3, 0.25), (1.0, 0.05)])
def test_the_forecast_of_further_trials_is_of_the_right_size(effect: float, sd: float) -> None:
    made = [found for seed in range(40) if (found := forecast_and_needed(effect, sd, seed)) is not None]
    assert len(made) >= 20
    forecast, needed = np.median(made, axis=0)
    assert needed / 2 <= forecast <= 2 * needed, (forecast, needed)


ALPHA = 0.05

# -- error rates -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class World:
    """`effects` are the true factors of the conditions; `sd` is of the logarithm of a trial, `drift` of a block."""

    effects: tuple[float, ...]
    sd: float
    skewed: bool = False
    drift: float = 0.02

    def noise(self, rng: np.random.Generator) -> float:
        return float(rng.exponential(self.sd) if self.skewed else rng.normal(0, self.sd))


WORLDS = {
    "nothing": World((1.0, 1.0, 1.0), 0.02),
    "nothing, skewed": World((1.0, 1.0, 1.0), 0.1, skewed=True),
    "small effects": World((1.02, 1.0, 0.98), 0.02),
    "large effects": World((1.5, 1.2, 1.0), 0.03),
    "at the margin": World((1.05, 1 / 1.05, 1.05), 0.02),
    "at the margin, skewed": World((1.05, 1 / 1.05, 1.05), 0.03, skewed=True),
}
BLOCKS = 14  # that there are at most


@dataclass(frozen=True)
class Ended:
    false: bool  # whether any look made a false claim
    false_equivalence: bool
    decided: bool  # everything, at the end
    trials: int


def simulated(world: World, seed: int, *, from_start: bool) -> Ended:
    """One experiment: by a rule from the start; or six blocks, after which the user looks and continues only if they
    do not decide everything, twice."""
    rng = np.random.default_rng([seed, from_start])
    plan = experiment(len(world.effects), trials=2 if from_start else 6)
    labels = list(dict.fromkeys(p.treatment.label for p in plan.order if p.treatment.conditions))
    truth = dict(zip(sorted(labels), world.effects, strict=True))
    per_block = 2 * len(world.effects) + 1
    trials: list[TrialData] = []
    drifts: dict[int, float] = {}
    told: list[tuple[str, Verdict]] = []

    def measured(planned: Planned) -> TrialData:
        drift = drifts.setdefault(planned.block, rng.normal(0, world.drift))
        return trial(planned, 20 * truth.get(planned.treatment.label, 1.0) * math.exp(drift + world.noise(rng)))

    def look(some: Sequence[TrialData], looks: Looks) -> list[Judged]:
        results = summarize("", some).results
        found = findings.verdicts(results, [METRICS[METRIC]], alpha=ALPHA, margin=0.05, seed=0, looks=looks)
        told.extend((quick.pair.treatment.treatment, quick.verdict) for quick in found)
        judgements = [Judged(quick.verdict, quick.too_few, quick.decidable) for quick in found]
        if seed % 20 == 0:  # which is what a run asks
            assert judgements == judged(plan, some, looks)
        return judgements

    def session(rule: StoppingRule) -> StoppingRule:
        clock = [0.0]
        course = UntilDecided(
            plan.document, plan.treatments, plan.order, replace(rule, ended=None),
            lambda some, by: look(some, looks_of(by, len(some))), seen=len(trials), clock=lambda: clock[0],
        )  # fmt: skip
        for data in list(trials):
            planned = course.next()
            assert planned is not None
            course.ended(planned, data)
        while (planned := course.next()) is not None:
            clock[0] += 1
            trials.append(measured(planned))
            course.ended(planned, trials[-1])
        return course.close()

    if from_start:
        rule = session(replace(FROM_START, at_most_s=(BLOCKS - 2) * per_block))
    else:
        trials += [measured(p) for p in plan.order]
        rule = replace(ADDED, at_most_s=(BLOCKS - 6) / 2 * per_block)
        if any(one.verdict not in CLAIMS for one in look(trials, Looks())):
            rule = session(rule)
            if rule.ended != "decided":
                rule = session(rule)
    last = look(trials, looks_of(rule, len(trials)))
    wrong = [(truth[name], verdict) for name, verdict in told if not _is_so(truth[name], verdict)]
    return Ended(
        bool(wrong),
        any(verdict == "equivalent" for _, verdict in wrong),
        all(one.verdict in CLAIMS for one in last),
        len(trials) // per_block,
    )


def _is_so(true: float, verdict: Verdict) -> bool:
    claims: dict[Verdict, bool] = {
        "higher": true > 1,
        "lower": true < 1,
        "equivalent": abs(math.log(true)) < math.log(1.05) - 1e-9,
    }
    return claims.get(verdict, True)


def _of(name: str, from_start: bool, seed: int) -> Ended:
    return simulated(WORLDS[name], seed, from_start=from_start)


def rates(name: str, experiments: int, *, from_start: bool) -> dict[str, float]:
    with ProcessPoolExecutor(max_workers=min(2, os.cpu_count() or 1)) as pool:
        done = list(pool.map(functools.partial(_of, name, from_start), range(experiments), chunksize=10))
    return {
        "experiments": experiments,
        "false": sum(e.false for e in done),
        "false_equivalence": sum(e.false_equivalence for e in done),
        "decided": sum(e.decided for e in done),
        "median_blocks": float(np.median([e.trials for e in done])),
    }


def surprising(found: int, of: int) -> float:
    """The chance of so many false claims or more, were each made with the chance alpha."""
    from scipy import stats

    return float(stats.binom.sf(found - 1, of, ALPHA))


@pytest.mark.parametrize("from_start", [True, False])
@pytest.mark.parametrize("name", ["nothing", "at the margin"])
def test_false_claims_stay_rare_under_optional_stopping(name: str, from_start: bool) -> None:
    found = rates(name, 40, from_start=from_start)
    assert surprising(int(found["false"]), 40) > 1e-3, found


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("from_start", [True, False])
@pytest.mark.parametrize("name", WORLDS)
def test_false_claims_stay_rare_in_a_thousand_experiments(name: str, from_start: bool) -> None:
    found = rates(name, 1000, from_start=from_start)
    print(f"RATES {name} {'from the start' if from_start else 'added'} {json.dumps(found)}", flush=True)
    assert surprising(int(found["false"]), 1000) > 1e-3, found
    if "effects" in name:
        assert found["decided"] > 0.5 * found["experiments"]
