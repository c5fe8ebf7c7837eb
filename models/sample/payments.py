"""The sample graph of several labels: accounts, their devices, the merchants they pay.

Accounts and transfers between them are those of `sample_graph`. Around them stand devices and
merchants; all have columns as a bank has them: amounts, categories, dates, flags, with gaps. Mules
share devices, many of them emulated, and pay merchants that others seldom pay. Transfers and
payments have amounts, which depend on the kinds of their accounts. Which neighbours, columns and
amounts an account has follows from its class and the seed alone, never from when it arrives: the
order of arrival says nothing, which is what NodeEx needs.

With `drift_at` that ends on the way: from then on all new accounts are opened by a new channel, the
wallet of the bank's app, and their balances are like those that other kinds had before. What a
network has learnt of these columns is wrong for them; what it can learn from them is not less.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.models.sample.accounts import SampleGraph, sample_graph

__all__ = ["PAYMENT_CLASSES", "PaymentGraph", "payment_graph"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Row = dict[str, Any]

#: Kinds of accounts and their shares. A mule account passes on what a fraud ring collected.
PAYMENT_CLASSES = {"retail": 0.42, "business": 0.26, "savings": 0.2, "mule": 0.12}
TRANSFERS_PER_ACCOUNT = 12.0  # mean degree of the transfers between accounts
ACCOUNTS_PER_MERCHANT = 20
MAX_MERCHANTS_PAID = 4
DEVICES_PER_ACCOUNT = 0.7
FARM_SHARE = 0.03  # of the devices, which mules share
FARMED = 0.55  # of a mule's devices are such ones
LAST_DAY = dt.date(2026, 1, 1)

#: By class: mean and spread of log(balance), and how the account came to the bank.
BALANCE = ((7.2, 1.0), (8.8, 1.1), (9.2, 0.9), (7.0, 1.2))
CHANNELS = ("branch", "app", "partner", "broker")
CHANNEL_SHARES = (
    (0.35, 0.45, 0.15, 0.05),
    (0.5, 0.15, 0.25, 0.1),
    (0.45, 0.3, 0.05, 0.2),
    (0.1, 0.6, 0.25, 0.05),
)
#: What comes with the drift: a channel that no earlier account has, and balances like those that
#: another kind had before (by class: the class whose old ones these are).
WALLET = "wallet"
LIKE_BEFORE = (2, 0, 3, 1)
COUNTRIES = ("DE", "FR", "IT", "NL", "PL")
TRADES = ("grocery", "travel", "wholesale", "broker", "exchange", "gambling")
TRADE_SHARES = (
    (0.5, 0.25, 0.05, 0.05, 0.05, 0.1),
    (0.15, 0.2, 0.5, 0.05, 0.05, 0.05),
    (0.25, 0.15, 0.05, 0.45, 0.05, 0.05),
    (0.2, 0.1, 0.05, 0.05, 0.35, 0.25),
)
#: By class: mean of log(amount), of a transfer the mean of both ends' classes, and of a payment.
TRANSFERRED = (4.6, 6.0, 5.4, 5.8)
PAID = (3.4, 4.6, 4.2, 4.8)
AMOUNT_SPREAD = 1.4
SYSTEMS = ("android", "ios", "windows", "linux")


@dataclass(frozen=True, slots=True)
class PaymentGraph:
    """Accounts with their transfers and times, and what stands around them.

    Rows are properties by name, None where there is none. `uses` and `pays` are pairs (account,
    device) and (account, merchant) int64 [2, E], by place. `transfers` has a row of properties per
    edge of `accounts`, `payments` one per pair of `pays`.
    """

    accounts: SampleGraph
    columns: tuple[Row, ...]
    devices: tuple[Row, ...]
    merchants: tuple[Row, ...]
    uses: Ints
    pays: Ints
    transfers: tuple[Row, ...]
    payments: tuple[Row, ...]


def payment_graph(accounts: int, *, seed: int, drift_at: float | None = None) -> PaymentGraph:
    """Return a seeded graph of so many accounts with devices and merchants.

    drift_at: fraction of the arrivals from which on accounts are opened by the new channel; None
    for never. The accounts before it are the same ones either way.

    >>> graph = payment_graph(1_000, seed=7)
    >>> len(graph.columns), len(graph.merchants), graph.accounts.classes[-1]
    (1000, 50, 'mule')
    >>> late = payment_graph(1_000, seed=7, drift_at=0.6)
    >>> sum(row["channel"] == "wallet" for row in late.columns)
    400
    """
    base = sample_graph(
        accounts, seed=seed, classes=PAYMENT_CLASSES, mean_degree=TRANSFERS_PER_ACCOUNT,
        homophily=0.5, features=len(PAYMENT_CLASSES),
    )  # fmt: skip
    streams = [
        np.random.default_rng(child) for child in np.random.SeedSequence((seed, 16)).spawn(7)
    ]
    for_columns, for_devices, for_uses, for_merchants, for_pays, for_late, for_amounts = streams
    count = round(accounts * DEVICES_PER_ACCOUNT)
    farm = np.arange(count) < max(1, round(count * FARM_SHARE))
    trades = for_merchants.integers(
        0, len(TRADES), max(len(TRADES), accounts // ACCOUNTS_PER_MERCHANT)
    )
    trades[: len(TRADES)] = np.arange(len(TRADES))
    columns = [_account(for_columns, at, int(y)) for at, y in enumerate(base.y)]
    if drift_at is not None:
        late = _late_accounts(base, drift_at)
        like = np.array(LIKE_BEFORE)[base.y[late]]
        for at, kind in zip(late.tolist(), like.tolist(), strict=True):
            columns[at] |= {"balance": _balance(for_late, kind), "channel": WALLET}
    pays = _draw_pays(for_pays, base.y, trades)
    of_ends = np.array(TRANSFERRED)[base.y[base.edges]].mean(axis=0)
    return PaymentGraph(
        base,
        tuple(columns),
        tuple(_device(for_devices, at, bool(child)) for at, child in enumerate(farm)),
        tuple(_merchant(for_merchants, at, int(trade)) for at, trade in enumerate(trades)),
        _draw_uses(for_uses, base.y, farm),
        pays,
        _draw_amounts(for_amounts, of_ends),
        _draw_amounts(for_amounts, np.array(PAID)[base.y[pays[0]]]),
    )


def _late_accounts(base: SampleGraph, drift_at: float) -> Ints:
    """Which accounts arrive after that fraction of all, ascending."""
    order = np.argsort(base.node_time, kind="stable")
    return np.sort(order[round(drift_at * base.nodes) :])


def _balance(rng: np.random.Generator, y: int) -> float | None:
    mean, spread = BALANCE[y]
    value: float | None = _or_gap(rng, 0.08, round(float(np.exp(rng.normal(mean, spread))), 2))
    return value


def _account(rng: np.random.Generator, place: int, y: int) -> Row:
    return {
        "id": place,
        "balance": _balance(rng, y),
        "country": _or_gap(rng, 0.05, COUNTRIES[min(int(rng.exponential(1.5)), 4)]),
        "channel": CHANNELS[rng.choice(len(CHANNELS), p=CHANNEL_SHARES[y])],
        "opened": _or_gap(rng, 0.1, _day(rng, 3_000)),
        "verified": _or_gap(rng, 0.1, bool(rng.random() < (0.55 if y == 3 else 0.85))),
        "region": ("north", "south", "east", "west")[place % 4],
    }


def _device(rng: np.random.Generator, place: int, farmed: bool) -> Row:
    return {
        "id": f"d{place}",
        "system": _or_gap(rng, 0.1, SYSTEMS[min(int(rng.exponential(1.0)), 3)]),
        "emulated": _or_gap(rng, 0.2, bool(rng.random() < (0.7 if farmed else 0.03))),
        "first_seen": _day(rng, 1_500),
    }


def _merchant(rng: np.random.Generator, place: int, trade: int) -> Row:
    return {
        "name": f"{TRADES[trade]} {place}",
        "trade": _or_gap(rng, 0.04, TRADES[trade]),
        "since": _or_gap(rng, 0.3, _day(rng, 9_000)),
        "rating": _or_gap(rng, 0.15, round(float(np.clip(rng.normal(3.6, 0.8), 1, 5)), 1)),
    }


def _draw_uses(rng: np.random.Generator, y: Ints, farm: NDArray[np.bool_]) -> Ints:
    """One or two devices per account; those of mules are often shared ones."""
    farmed, others = np.flatnonzero(farm), np.flatnonzero(~farm)
    pairs = set()
    for account, kind in enumerate(y.tolist()):
        for _ in range(1 + int(rng.random() < 0.3)):
            pool = farmed if kind == 3 and rng.random() < FARMED else others
            pairs.add((account, int(pool[rng.integers(len(pool))])))
    return np.array(sorted(pairs), np.int64).T


def _draw_pays(rng: np.random.Generator, y: Ints, trades: Ints) -> Ints:
    """One to four merchants per account, by what its kind buys."""
    by_trade = [np.flatnonzero(trades == trade) for trade in range(len(TRADES))]
    pairs = set()
    for account, kind in enumerate(y.tolist()):
        for _ in range(int(rng.integers(1, MAX_MERCHANTS_PAID + 1))):
            pool = by_trade[rng.choice(len(TRADES), p=TRADE_SHARES[kind])]
            pairs.add((account, int(pool[rng.integers(len(pool))])))
    return np.array(sorted(pairs), np.int64).T


def _draw_amounts(rng: np.random.Generator, means: Floats) -> tuple[Row, ...]:
    """A log-normal amount per relationship, with gaps."""
    amounts = np.exp(rng.normal(means, AMOUNT_SPREAD)).round(2).tolist()
    return tuple({"amount": _or_gap(rng, 0.05, amount)} for amount in amounts)


def _day(rng: np.random.Generator, days: int) -> dt.date:
    return LAST_DAY - dt.timedelta(days=int(rng.integers(1, days)))


def _or_gap(rng: np.random.Generator, share: float, value: Any) -> Any:
    return None if rng.random() < share else value
