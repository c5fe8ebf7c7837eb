"""All columns of one label as one float32 matrix, by the encoders of a model.

    encoder = fit_table(columns, {"seats": ColumnChoice("integer")}, training_rows)
    encoder.transform(columns)      # float32 [n, encoder.width]

Columns stand in the order of their names, so that the order in which a graph was read changes
nothing. A column that is gone after training is missing in every row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringfence.models.encoders.base import Encoder, EncoderRefused, Float32s, Values
from ringfence.models.encoders.registry import check_options, encoder_class

__all__ = ["ColumnChoice", "TableEncoder", "fit_table"]

FORMAT = 1
ROWS_PER_STEP = 65_536  # encoded at a time, so that scratch memory stays small
TRIAL_ROWS = 5  # of training that a user's own encoder must encode alone as among others
CONSTANT = "constant"


@dataclass(frozen=True, slots=True)
class ColumnChoice:
    """How a column is encoded: its kind, by the registry or a dotted path, and its options."""

    kind: str
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TableEncoder:
    """The fitted encoders of one label by column; the first output column is always 1.

    Thanks to the constant a node without any column still sends a message: its neighbours see that
    it exists.
    """

    choices: Mapping[str, ColumnChoice]
    encoders: Mapping[str, Encoder]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the output columns: ``column / part``."""
        parts = [f"{name} / {part}" for name in self.encoders for part in self.encoders[name].names]
        return (CONSTANT, *parts)

    @property
    def width(self) -> int:
        """How many output columns there are."""
        return 1 + sum(len(encoder.names) for encoder in self.encoders.values())

    def transform(self, columns: Mapping[str, Values], rows: int | None = None) -> Float32s:
        """Return the encoded rows, float32 [n, width].

        Args:
            columns: name -> raw values [n]; others than those that were fitted are left alone.
            rows: n, for a label whose columns are all gone.
        """
        size = _row_count(columns, rows)
        out = np.ones((size, self.width), np.float32)
        at = 1
        for name, encoder in self.encoders.items():
            stop = at + len(encoder.names)
            for start in range(0, size, ROWS_PER_STEP):
                end = min(start + ROWS_PER_STEP, size)
                part = _part(columns, name, start, end)
                if since := _since(self.choices[name]):
                    part = list(zip(part, _part(columns, since, start, end), strict=True))
                out[start:end, at:stop] = _encoded(name, self.choices[name].kind, encoder, part)
            at = stop
        return out

    def to_json(self) -> dict[str, Any]:
        """Return everything but `arrays`, as JSON takes it."""
        columns = [
            {
                "name": name,
                "kind": self.choices[name].kind,
                "options": dict(self.choices[name].options),
                "facts": encoder.facts(),
            }
            for name, encoder in self.encoders.items()
        ]
        return {"format": FORMAT, "columns": columns}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays of all encoders, by ``place of the column . name of the array``."""
        return {
            f"{place}.{name}": array
            for place, encoder in enumerate(self.encoders.values())
            for name, array in encoder.arrays().items()
        }

    @classmethod
    def from_json(
        cls, facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
    ) -> TableEncoder:
        """Return the table that `to_json` and `arrays` were taken from."""
        if facts.get("format") != FORMAT:
            raise EncoderRefused(
                f"encoders of format {facts.get('format')}; this version reads format {FORMAT}"
            )
        choices: dict[str, ColumnChoice] = {}
        encoders: dict[str, Encoder] = {}
        for place, column in enumerate(facts["columns"]):
            arrays_of_column = {
                name.partition(".")[2]: array
                for name, array in arrays.items()
                if name.partition(".")[0] == str(place)
            }
            choices[column["name"]] = ColumnChoice(column["kind"], column["options"])
            encoders[column["name"]] = encoder_class(column["kind"]).restore(
                column["facts"], arrays_of_column
            )
        return cls(choices, encoders)


def fit_table(
    columns: Mapping[str, Values],
    choices: Mapping[str, ColumnChoice],
    training_rows: NDArray[np.int64] | None = None,
) -> TableEncoder:
    """Fit one encoder per chosen column on the values of training nodes.

    Args:
        columns: name -> raw values [n], None for missing.
        choices: name -> kind and options of the columns to use.
        training_rows: the rows to fit on, in an order that doesn't depend on how the graph was
            read; None takes all.

    >>> table = fit_table({"size": [1.0, 3.0]}, {"size": ColumnChoice("number")})
    >>> table.transform({"size": [3.0]}).tolist(), table.names
    ([[1.0, 1.0, 0.0]], ('constant', 'size / value', 'size / missing'))
    """
    encoders: dict[str, Encoder] = {}
    for name in sorted(choices):
        choice = choices[name]
        check_options(choice.kind, choice.options)
        values = _training_values(columns, name, training_rows)
        if since := _since(choice):
            others = _training_values(columns, since, training_rows)
            values = list(zip(values, others, strict=True))
        try:
            encoders[name] = encoder_class(choice.kind).fit(values, **choice.options)
        except (EncoderRefused, TypeError) as error:
            raise EncoderRefused(f"column {name!r} as {choice.kind}: {error}") from error
        if ":" in choice.kind:
            _check_own(name, choice.kind, encoders[name], values)
    return TableEncoder({name: choices[name] for name in encoders}, encoders)


def _training_values(
    columns: Mapping[str, Values], name: str, rows: NDArray[np.int64] | None
) -> Values:
    if name not in columns:
        raise EncoderRefused(
            f"no column {name!r} was read; there are {', '.join(sorted(columns)) or 'none'}"
        )
    values = columns[name]
    if rows is None:
        return values
    if isinstance(values, np.ndarray):
        return values[rows]
    return [values[row] for row in rows.tolist()]


def _since(choice: ColumnChoice) -> str:
    """The other column of a date whose difference to it is wanted; options of own kinds are own."""
    return "" if ":" in choice.kind else str(choice.options.get("since", ""))


def _part(columns: Mapping[str, Values], name: str, start: int, end: int) -> Values:
    """Some rows of a column; one that is gone is missing in all of them."""
    return columns[name][start:end] if name in columns else [None] * (end - start)


def _row_count(columns: Mapping[str, Values], rows: int | None) -> int:
    sizes = {len(values) for values in columns.values()} | ({rows} if rows is not None else set())
    if len(sizes) > 1:
        raise ValueError(f"columns of different lengths: {sorted(sizes)} rows")
    if not sizes:
        raise ValueError("no column says how many rows there are: pass rows=")
    return sizes.pop()


def _encoded(name: str, kind: str, encoder: Encoder, values: Values) -> Float32s:
    """The rows of one column; those of a user's own encoder are checked."""
    rows = encoder.transform(values)
    if ":" in kind:
        needed = (len(values), len(encoder.names))
        if np.shape(rows) != needed or not np.isfinite(rows).all():
            raise EncoderRefused(
                f"column {name!r}: {kind} gave {np.shape(rows)}, or a number that is not finite; "
                f"finite float32 {needed} is needed"
            )
    return rows


def _check_own(name: str, kind: str, encoder: Encoder, values: Values) -> None:
    """A user's own encoder must give a row the same bits whether it comes alone or among others."""
    few = values[:TRIAL_ROWS]
    together = _encoded(name, kind, encoder, few)
    for place in range(len(few)):
        alone = _encoded(name, kind, encoder, few[place : place + 1])
        if not np.array_equal(alone[0], together[place]):
            raise EncoderRefused(
                f"column {name!r}: {kind} encodes a row alone otherwise than among others; a row "
                "may depend on its own value and on what was fitted, on nothing else"
            )
