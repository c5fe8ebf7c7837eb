"""What else one could do with the same nodes: own columns, a joined table, one projected label.

Each way is trained on the nodes that ringfence trained and stopped on and is asked for the same
later ones. The tables are joined here by hand, with names that only a person knows; ringfence gets
none of this.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score

from ringfence.models.encoders import ColumnChoice, fit_table, infer_kind
from ringfence.models.networks.factory import build
from ringfence.models.training.one_label_data import OneLabelData
from ringfence.models.training.train import TrainingOptions, TrainingTargets, train

Floats = NDArray[np.floating]
VALIDATION_SHARE = 2 / 7  # of the nodes to learn from, as [model] has it by default
MAX_EPOCHS, PATIENCE = 300, 40


@dataclass(frozen=True, slots=True)
class Quality:
    """Accuracy of the likeliest class, and AUROC: one class against the rest, averaged."""

    accuracy: float
    auroc: float


def measure_quality(chances: Floats, classes: Sequence[str], truth: Sequence[str]) -> Quality:
    """Return how good chances [n, classes] are; a class that nobody has counts for nothing."""
    y = np.asarray(truth)
    best = np.asarray(classes)[chances.argmax(axis=1)]
    there = [at for at, name in enumerate(classes) if 0 < (y == name).sum() < len(y)]
    auroc = np.mean([roc_auc_score(y == classes[at], chances[:, at]) for at in there])
    return Quality(float((best == y).mean()), float(auroc))


def tree_chances(
    table: pd.DataFrame, y: pd.Series, seen: Sequence[int], wanted: Sequence[int]
) -> tuple[Floats, list[str]]:
    """Boosted trees on a table of any columns; texts become numbers of their own."""
    numbers = pd.DataFrame({
        name: column if column.dtype.kind in "ifb" else column.astype("category").cat.codes
        for name, column in table.items()
    })  # fmt: skip
    model = HistGradientBoostingClassifier(random_state=0, early_stopping=True)
    model.fit(numbers.iloc[list(seen)], y.iloc[list(seen)])
    return model.predict_proba(numbers.iloc[list(wanted)]), list(model.classes_)


def network_chances(
    name: str,
    table: pd.DataFrame,
    y: pd.Series,
    edges: NDArray[np.int64],
    seen: Sequence[int],
    wanted: Sequence[int],
) -> tuple[Floats, list[str]]:
    """MLP on own columns, or SAGE on one label whose nodes `edges` [2, E] join directly."""
    x = _encoded(table, seen)
    classes = sorted(set(y.iloc[list(seen)]))
    place = {class_: at for at, class_ in enumerate(classes)}
    truth = torch.tensor([place.get(one, 0) for one in y])
    order = np.random.default_rng(0).permutation(list(seen))
    cut = int(len(order) * VALIDATION_SHARE)
    both = torch.from_numpy(np.concatenate([edges, edges[::-1]], axis=1).copy())
    network = build(name, x.shape[1], len(classes), hidden=64, seed=0)
    fitted = train(
        network,
        OneLabelData(torch.from_numpy(x), both),
        TrainingTargets(
            truth, torch.from_numpy(order[cut:].copy()), torch.from_numpy(order[:cut].copy())
        ),
        TrainingOptions(seed=0, max_epochs=MAX_EPOCHS, patience=PATIENCE),
    )
    network.load_state_dict(fitted.state)
    with torch.no_grad():
        logits = network.eval()(torch.from_numpy(x), both)[list(wanted)]
    return logits.softmax(dim=1).numpy(), classes


def chain(keys: pd.Series, order: pd.Series) -> NDArray[np.int64]:
    """Join each row to the next one with the same key, in the given order [2, E]."""
    frame = pd.DataFrame({"key": keys.to_numpy(), "order": order.to_numpy()}).dropna()
    frame = frame.sort_values(["key", "order"], kind="stable")
    rows, same = frame.index.to_numpy(), frame["key"].to_numpy()
    follows = same[1:] == same[:-1]
    return np.stack([rows[:-1][follows], rows[1:][follows]]).astype(np.int64)


def share_table(
    table: pd.DataFrame, joined: dict[str, pd.DataFrame], key: str, most: int = 64
) -> pd.DataFrame:
    """Own columns and, for each kind of neighbour, whether a node has one of the most frequent."""
    parts = [table]
    for name, pairs in joined.items():
        column = pairs.columns[1]
        for value in pairs[column].value_counts().index[:most]:
            has = set(pairs.loc[pairs[column] == value, key])
            parts.append(table[key].isin(has).astype(int).rename(f"{name} {value}"))
    return pd.concat(parts, axis=1)


def _encoded(table: pd.DataFrame, seen: Sequence[int]) -> NDArray[np.float32]:
    clean = table.astype(object).where(table.notna(), None)
    columns = {str(name): clean[name].tolist() for name in table.columns}
    kinds = {name: infer_kind(values[:5_000]) for name, values in columns.items()}
    choices = {name: ColumnChoice(one.kind) for name, one in kinds.items() if one.usable}
    rows = np.asarray(seen, np.int64)
    return fit_table(columns, choices, rows).transform(columns, len(table))
