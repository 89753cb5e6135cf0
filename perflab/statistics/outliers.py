"""Trials far from the others of their sample. They are named and stay in: a slow trial is a result too."""

from __future__ import annotations

from typing import Literal

import numpy as np

from perflab.results.comparison import Outlier
from perflab.statistics.estimate import mad
from perflab.statistics.sample import Sample

MIN_VALUES = 5
MAD_LIMIT = 3.5  # of the modified z score 0.6745 |x - median| / MAD (Iglewicz and Hoaglin 1993)
FENCE, FAR_FENCE = 1.5, 3.0  # interquartile ranges beyond the quartiles (Tukey 1977)


def find_outliers(sample: Sample) -> tuple[Outlier, ...]:
    """What the rule of the MAD or Tukey's fences name; nothing for fewer than MIN_VALUES values."""
    if sample.n < MIN_VALUES:
        return ()
    values = sample.array
    centre, deviation = float(np.median(values)), mad(values)
    lower, upper = (float(q) for q in np.quantile(values, (0.25, 0.75)))
    found = []
    for label, value in zip(sample.labels, sample.values, strict=True):
        z = 0.6745 * (value - centre) / deviation if deviation else None
        beyond = max(lower - value, value - upper)
        width = upper - lower
        fence: Literal["inner", "outer"] | None = None
        if width > 0 and beyond > FENCE * width:
            fence = "outer" if beyond > FAR_FENCE * width else "inner"
        by_mad = z is not None and abs(z) > MAD_LIMIT
        if by_mad or fence:
            found.append(Outlier(sample.name, label, value, z, by_mad, fence))
    return tuple(found)
