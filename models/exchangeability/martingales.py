"""Test martingales: capital that grows only if exchangeability is broken.

Start with capital 1 and bet on each p-value before it is seen. A bet is a density f on (0, 1):
capital becomes capital * f(p). If the p-values are independent and uniform, no bet has an edge, and
by Ville's inequality

    P(capital ever reaches 1 / delta) <= delta,

so the alarm at 1 / delta is valid at any time. How exchangeability will break is unknown, so the
capital is spread over several bets, and after each p-value a share of it jumps to the other bets,
which keeps some on every bet for a change that comes late:

    capital_i <- ((1 - jump) capital_i + jump * capital / bets) * f_i(p)

- `jumper`: the Simple Jumper (Vovk et al. 2021, "Retrain or not retrain"): f = 1 + e (p - 1/2) for
  e in {-1, 0, 1} and jump = 0.01.
- `mixture`: ten Beta densities (p-values small, large, at both ends, in the middle; mild and
  strong) and jump = 1 / (labels + 2), which costs about ln(labels) in total and keeps power for
  late changes.

Capitals are kept as floats below 1 and one integer power of two, so nothing overflows, and only
+ - * / and square roots touch them: the compiled form gives the bits of the step-by-step form.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
MartingaleKind = Literal["jumper", "mixture"]
CapitalUpdate = Callable[..., None]

_MIN_P = 1e-12  # a p-value nearer to 0 or 1 is moved here, which can only lower a winning bet
_LN2 = math.log(2.0)


def _jumper_bets(p: float, bets: Floats) -> None:
    bets[0] = 1.5 - p
    bets[1] = 1.0
    bets[2] = 0.5 + p


def _mixture_bets(p: float, bets: Floats) -> None:
    low, high = math.sqrt(p), math.sqrt(1.0 - p)
    bets[0] = 1.0  # Beta(1, 1): no bet
    bets[1] = 0.75 / math.sqrt(low)  # Beta(3/4, 1): p-values a little small
    bets[2] = 0.5 / low  # Beta(1/2, 1)
    bets[3] = 0.75 / math.sqrt(high)  # Beta(1, 3/4): a little large
    bets[4] = 0.5 / high  # Beta(1, 1/2)
    bets[5] = 2.0 * (1.0 - p)  # Beta(1, 2)
    bets[6] = 2.0 * p  # Beta(2, 1)
    bets[7] = 1.0 / (math.pi * low * high)  # Beta(1/2, 1/2): at both ends
    bets[8] = 6.0 * p * (1.0 - p)  # Beta(2, 2): in the middle
    bets[9] = 0.5 + 3.0 * p * (1.0 - p)  # half of it on Beta(2, 2)


def _constant_jump(labels: int) -> float:
    return 0.01


def _fading_jump(labels: int) -> float:
    return 1.0 / (labels + 2.0)


def _make_update(fill_bets: Callable[..., None], jump: Callable[..., float]) -> CapitalUpdate:
    """The loop over p-values, for these bets and this jump rate; plain Python that numba takes."""

    def update_capitals(
        p: Floats, capitals: Floats, labels: int, exponent: int, m: Floats, e: Ints
    ) -> None:
        """Bet on all p-values; after p[i] the capital is m[i] * 2^e[i], and they sum to m[-1]."""
        count = len(capitals)
        bets = np.empty(count)
        total = 0.0
        for b in range(count):
            total += capitals[b]
        for i in range(len(p)):
            fill_bets(min(max(p[i], _MIN_P), 1.0 - _MIN_P), bets)
            rate = jump(labels + i)
            spread = rate * total / count
            total = 0.0
            for b in range(count):
                capitals[b] = ((1.0 - rate) * capitals[b] + spread) * bets[b]
                total += capitals[b]
            total, power = math.frexp(total)
            scale = math.ldexp(1.0, -power)
            for b in range(count):
                capitals[b] *= scale
            exponent += power
            m[i] = total
            e[i] = exponent

    return update_capitals


_BETS: dict[MartingaleKind, int] = {"jumper": 3, "mixture": 10}
_PLAIN: dict[MartingaleKind, CapitalUpdate] = {
    "jumper": _make_update(_jumper_bets, _constant_jump),
    "mixture": _make_update(_mixture_bets, _fading_jump),
}


@cache
def _compiled(kind: MartingaleKind) -> CapitalUpdate:
    """The loop compiled by numba, which is imported once there are a thousand p-values."""
    from numba import njit as numba_njit

    njit: Any = numba_njit
    fill_bets, jump = {
        "jumper": (_jumper_bets, _constant_jump),
        "mixture": (_mixture_bets, _fading_jump),
    }[kind]
    update_capitals: CapitalUpdate = njit(_make_update(njit(fill_bets), njit(jump)))
    return update_capitals


@dataclass(frozen=True, slots=True)
class Martingale:
    """Capital of one martingale after some labels; small, and resumes from JSON to the bit.

    >>> state = Martingale.start("jumper")
    >>> state = state.update(0.03).update(0.01)
    >>> state.labels, round(state.log_capital, 3)
    (2, 0.141)
    >>> Martingale.from_dict(state.as_dict()) == state
    True
    """

    kind: MartingaleKind
    capitals: tuple[float, ...]
    exponent: int
    labels: int
    peak: float
    peak_exponent: int
    peak_at: int

    @classmethod
    def start(cls, kind: MartingaleKind) -> Martingale:
        """Capital 1, spread evenly over the bets."""
        if kind not in _BETS:
            raise ValueError(f"no martingale {kind!r}; there are {', '.join(_BETS)}")
        bets = _BETS[kind]
        return cls(kind, (0.5 / bets,) * bets, 1, 0, 0.5, 1, 0)

    @property
    def log_capital(self) -> float:
        """Natural logarithm of the capital now."""
        return math.log(math.fsum(self.capitals)) + self.exponent * _LN2

    @property
    def log_peak(self) -> float:
        """Natural logarithm of the highest capital so far, which came after label `peak_at`."""
        return math.log(self.peak) + self.peak_exponent * _LN2

    def update(self, p: float) -> Martingale:
        """The state after one more p-value, in a time that does not depend on the history."""
        return self._after(np.array([p]), _PLAIN[self.kind])[0]

    def update_all(self, p: npt.ArrayLike) -> tuple[Martingale, Floats]:
        """The state after p-values [m], to the bit that of m updates, and the log capitals [m]."""
        return self._after(np.asarray(p, dtype=np.float64), _compiled(self.kind))

    def alarm(self, delta: float) -> bool:
        """Whether the capital ever reached 1 / delta; a false alarm has probability <= delta."""
        if not 0 < delta < 1:
            raise ValueError(f"delta {delta:g}; a probability in (0, 1) is needed, such as 0.01")
        return self.log_peak >= -math.log(delta)

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers and a list, for JSON."""
        return {**asdict(self), "capitals": list(self.capitals)}

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> Martingale:
        """The state that `as_dict` described."""
        return cls(**{**stored, "capitals": tuple(stored["capitals"])})

    def _after(self, p: Floats, update_capitals: CapitalUpdate) -> tuple[Martingale, Floats]:
        if p.ndim != 1 or not ((p >= 0) & (p <= 1)).all():
            raise ValueError("p-values outside [0, 1] or not in one row; smoothed ones are needed")
        if not len(p):
            return self, np.empty(0)
        capitals = np.array(self.capitals)
        m, e = np.empty(len(p)), np.empty(len(p), dtype=np.int64)
        update_capitals(p, capitals, self.labels, self.exponent, m, e)
        top = int(np.argmax(np.where(e == e.max(), m, 0.0)))
        peak = (self.peak_exponent, self.peak, self.peak_at)
        if (e[top], m[top]) > peak[:2]:
            peak = (int(e[top]), float(m[top]), self.labels + top + 1)
        after = Martingale(
            self.kind,
            tuple(capitals.tolist()),
            int(e[-1]),
            self.labels + len(p),
            peak_exponent=peak[0],
            peak=peak[1],
            peak_at=peak[2],
        )
        return after, np.log(m) + e * _LN2
