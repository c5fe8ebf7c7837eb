"""Rules for the level of a run, beside adaptive conformal inference (`benchmarks.drift_levels`).

The sets of run t hold the classes with p > a_t. A rule says a_t, and hears of each earlier run
once, when its classes are known: the p-values of the true classes, of its known nodes. e_s is the
share of them that is <= the level that run s used.

- AdaptiveRule: the product's (`models.calibration.adaptive_level`), Gibbs and Candès 2021.
- AggregatedRule: DtACI (Gibbs and Candès 2024, JMLR 25): several steps at once, weighted by the
  pinball loss of what each would have used; the paper's steps, eta and sigma.
- IntegratedRule: conformal PID control (Angelopoulos, Candès, Tibshirani 2023): a step on every
  error and a saturating integrator of all errors, on the score 1 - p, whose bound B is 1.
- ForecastRule: any of these plus a forecast of what the run needs, known before its classes (PID's
  scorecaster).
- RejudgedRule: counts the misses of an answered run at the level of today, not at the one it used.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ringfence.models.calibration.adaptive_level import AdaptiveLevel

Floats = NDArray[np.float64]

DTACI_STEPS = (0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128)
DTACI_ETA, DTACI_SIGMA = 2.72, 0.001
PID_STEP, PID_GAIN, PID_DELTA = 0.1, 1.0, 0.01
RIDGE_RUNS = 10.0
"""Runs of evidence against which a forecast is shrunk."""

WEEK, WEEKS_BACK = 7, 4


class LevelRule(Protocol):
    """What a replay asks: a level for each run in order, and the answer of each, once."""

    def level_of(self, run: int, surprise: float) -> float:
        """Return the level of a run, 0 for the first; surprise is known before any class."""

    def answer(self, run: int, p_true: Floats) -> None:
        """Take in the p-values of the true classes of an earlier run."""


def miss_rate(p_true: Floats, level: float) -> float:
    """Return the share of true classes that a level leaves out."""
    return float((p_true <= level).mean())


@dataclass(slots=True)
class FixedRule:
    """The level is alpha itself."""

    alpha: float = 0.1

    def level_of(self, _run: int, _surprise: float) -> float:
        return self.alpha

    def answer(self, run: int, p_true: Floats) -> None:
        pass


@dataclass(slots=True)
class AdaptiveRule:
    """Adaptive conformal inference with one step, as the product has it."""

    step: float = 0.05
    alpha: float = 0.1
    used: dict[int, float] = field(default_factory=dict)
    state: AdaptiveLevel = field(init=False)

    def __post_init__(self) -> None:
        self.state = AdaptiveLevel.start(self.alpha, self.step)

    def level_of(self, run: int, _surprise: float) -> float:
        return self.used.setdefault(run, self.state.level)

    def answer(self, run: int, p_true: Floats) -> None:
        self.state = self.state.after([miss_rate(p_true, self.used[run])])


@dataclass(slots=True)
class RejudgedRule:
    """A step on the misses that an answered run would have at the newest level."""

    step: float = 0.05
    alpha: float = 0.1
    level: float = field(init=False)

    def __post_init__(self) -> None:
        self.level = self.alpha

    def level_of(self, _run: int, _surprise: float) -> float:
        return self.level

    def answer(self, run: int, p_true: Floats) -> None:
        self.level += self.step * (self.alpha - miss_rate(p_true, self.level))


@dataclass(slots=True)
class AggregatedRule:
    """DtACI: the mean of the levels of several steps, by weights that follow their losses."""

    steps: tuple[float, ...] = DTACI_STEPS
    eta: float = DTACI_ETA
    sigma: float = DTACI_SIGMA
    alpha: float = 0.1
    used: dict[int, Floats] = field(default_factory=dict)
    levels: Floats = field(init=False)
    weights: Floats = field(init=False)

    def __post_init__(self) -> None:
        self.levels = np.full(len(self.steps), self.alpha)
        self.weights = np.full(len(self.steps), 1.0 / len(self.steps))

    def level_of(self, run: int, _surprise: float) -> float:
        self.used[run] = self.levels.copy()
        return float(self.weights @ self.levels)

    def answer(self, run: int, p_true: Floats) -> None:
        used = self.used[run]
        over = p_true[:, None] - used
        losses = (self.alpha * over - np.minimum(over, 0.0)).mean(axis=0)
        rates = np.array([miss_rate(p_true, level) for level in used])
        self.levels += np.array(self.steps) * (self.alpha - rates)
        trusted = self.weights * np.exp(-self.eta * (losses - losses.min()))
        mixed = (1.0 - self.sigma) * trusted / trusted.sum() + self.sigma / len(self.steps)
        self.weights = mixed / mixed.sum()


@dataclass(slots=True)
class IntegratedRule:
    """Conformal PID without a forecast: a = alpha - step S - gain tan(S log(t+1) / (C (t+1))).

    S is the sum of e_s - alpha over the t answered runs. C = 2 / pi (ceil(delta log T) - 1 / T) for
    T = `runs` and delta = .01; step and gain are shares of B. With step 0 the integrator is alone.
    """

    step: float = PID_STEP
    gain: float = PID_GAIN
    runs: int = 275
    alpha: float = 0.1
    used: dict[int, float] = field(default_factory=dict)
    errors: float = 0.0
    answered: int = 0

    def level_of(self, run: int, _surprise: float) -> float:
        return self.used.setdefault(run, self.alpha - self.step * self.errors - self._saturated())

    def answer(self, run: int, p_true: Floats) -> None:
        self.errors += miss_rate(p_true, self.used[run]) - self.alpha
        self.answered += 1

    def _saturated(self) -> float:
        saturation = 2.0 / math.pi * (math.ceil(math.log(self.runs) * PID_DELTA) - 1 / self.runs)
        time = self.answered + 1
        angle = self.errors * math.log(time) / (saturation * time)
        if abs(angle) >= math.pi / 2:
            return math.copysign(math.inf, angle)
        return self.gain * math.tan(angle)


class Forecast(Protocol):
    """What a run's level should be above or below the others', before its classes are known."""

    def shift_of(self, run: int, surprise: float) -> float:
        """Return the shift of a run's level."""

    def learn(self, run: int, needed: float) -> None:
        """Take in the level that an answered run would have needed."""


@dataclass(slots=True)
class WeekdayForecast:
    """Needed levels of the same weekday in the last four weeks against those of all days."""

    needed: dict[int, float] = field(default_factory=dict)

    def shift_of(self, run: int, _surprise: float) -> float:
        newest = sorted(self.needed)[-WEEK * WEEKS_BACK :]
        same = [self.needed[day] for day in newest if (run - day) % WEEK == 0]
        if not same:
            return 0.0
        trust = len(same) / (len(same) + RIDGE_RUNS / WEEK)
        return trust * (float(np.mean(same)) - float(np.mean([self.needed[d] for d in newest])))

    def learn(self, run: int, needed: float) -> None:
        self.needed[run] = needed


@dataclass(slots=True)
class SurpriseForecast:
    """Ridge regression of needed levels on how unsure the network is of a run's nodes."""

    surprises: dict[int, float] = field(default_factory=dict)
    needed: dict[int, float] = field(default_factory=dict)

    def shift_of(self, run: int, surprise: float) -> float:
        self.surprises[run] = surprise
        if len(self.needed) < 2:
            return 0.0
        x = np.array([self.surprises[day] for day in self.needed])
        y = np.array(list(self.needed.values()))
        spread = float(x.std()) or 1.0
        scaled = (x - x.mean()) / spread
        slope = float(scaled @ (y - y.mean())) / (float(scaled @ scaled) + RIDGE_RUNS)
        return slope * float(np.clip((surprise - x.mean()) / spread, -3.0, 3.0))

    def learn(self, run: int, needed: float) -> None:
        self.needed[run] = needed


@dataclass(slots=True)
class ForecastRule:
    """A rule that takes errors at the level that was really used, plus a forecast."""

    rule: AdaptiveRule | IntegratedRule
    forecast: Forecast

    def level_of(self, run: int, surprise: float) -> float:
        level = self.rule.level_of(run, surprise) + self.forecast.shift_of(run, surprise)
        self.rule.used[run] = level
        return level

    def answer(self, run: int, p_true: Floats) -> None:
        self.rule.answer(run, p_true)
        self.forecast.learn(run, float(np.quantile(p_true, self.rule.alpha, method="inverted_cdf")))
