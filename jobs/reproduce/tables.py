"""The tables as people read them: on a terminal, in Markdown and as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ringfence.jobs.reproduce.scores import DRAWS
from ringfence.jobs.reproduce.table import Cell, Row

__all__ = ["TextTable", "as_csv", "as_markdown", "as_text"]


@dataclass(frozen=True, slots=True)
class TextTable:
    """A table of text: every cell is ready to read."""

    title: str
    note: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def as_text(rows: Sequence[Row]) -> list[TextTable]:
    """All tables of a reproduction."""
    tables = [_as_printed(rows), _edge_both_ways(rows), _signed(rows), _fixed(rows), _sizes(rows)]
    return [*tables, _scores(rows)] if any(row.scores for row in rows) else tables


def as_markdown(table: TextTable) -> str:
    """The table with its title and note."""
    lines = [
        f"### {table.title}",
        "",
        table.note,
        "",
        f"| {' | '.join(table.columns)} |",
        f"|{'---|' * len(table.columns)}",
        *(f"| {' | '.join(row)} |" for row in table.rows),
    ]
    return "\n".join(lines) + "\n"


def as_csv(rows: Sequence[Row]) -> str:
    """One line per dataset and column, all numbers in full."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(
        ("dataset", "kind", "time", "rule", "sequences", "first_absolute", "signed_mean",
         "standard_error", "mean_set_size")
    )  # fmt: skip
    for row in rows:
        for name, cell in row.cells.items():
            numbers = (cell.first, cell.signed, cell.error)
            size = "" if cell.size is None else f"{cell.size:.4f}"
            writer.writerow(
                (row.name, *name.split(" "), cell.sequences, *(f"{x:.4f}" for x in numbers), size)
            )
    return file.getvalue()


def _table(
    title: str,
    note: str,
    rows: Sequence[Row],
    columns: dict[str, Callable[[Row], str]],
) -> TextTable:
    return TextTable(
        title,
        note,
        ("dataset", *columns),
        tuple((row.title, *(make(row) for make in columns.values())) for row in rows),
    )


def _beside(name: str, printed: str) -> Callable[[Row], str]:
    def cell(row: Row) -> str:
        value = row.cells.get(name)
        theirs = "–" if row.published is None else f"{getattr(row.published, printed):.3f}"
        return f"{theirs} / {'–' if value is None else f'{value.first:.2f}'}"

    return cell


def _signed_cell(name: str) -> Callable[[Row], str]:
    def cell(row: Row) -> str:
        measured = row.cells.get(name)
        return "–" if measured is None else f"{measured.signed:+.2f} ± {measured.error:.2f}"

    return cell


def _as_printed(rows: Sequence[Row]) -> TextTable:
    def accuracy(row: Row) -> str:
        theirs = "–" if row.published is None else f"{row.published.accuracy:.3f}"
        return f"{theirs} / {row.accuracy:.3f} (± {row.accuracy_spread:.3f})"

    def by_chance(row: Row) -> str:
        return "–" if row.chance_first is None else f"{row.chance_first.deviation:.2f}"

    return _table(
        "Table 1, as the paper prints it",
        "Each cell: the paper's figure / ours. |mean coverage - 90| in % on arrival, first 10 node "
        "and 15 edge sequences, one train/validation split. `by chance` is the expected value of "
        "the NodeEx column if the theory holds exactly. Edge columns with the stale scores of the "
        "authors' notebook, because the printed ones have them. Accuracy is the mean over our "
        "splits, in brackets the standard deviation of one.",
        rows,
        {
            "accuracy": accuracy,
            "node seq: NodeEx": _beside("node arrival node", "node_nodeex"),
            "by chance": by_chance,
            "naive": _beside("node arrival naive", "node_naive"),
            "edge seq (stale): EdgeEx": _beside("edge stale edge", "edge_edgeex"),
            "NodeEx": _beside("edge stale node", "edge_nodeex"),
            "naive ": _beside("edge stale naive", "edge_naive"),
        },
    )


def _edge_both_ways(rows: Sequence[Row]) -> TextTable:
    def three(rule: str, printed: str) -> Callable[[Row], str]:
        def cell(row: Row) -> str:
            stale, right = (
                row.cells.get(f"edge stale {rule}"),
                row.cells.get(f"edge arrival {rule}"),
            )
            theirs = "–" if row.published is None else f"{getattr(row.published, printed):.3f}"
            return f"{theirs} / {_first(stale)} / {_first(right)}"

        return cell

    return _table(
        "The edge columns as published and as they should be",
        "The paper's figure / ours with the full graph's scores at every step (the notebook scores "
        "`step_logtis`, left over from another loop) / ours with scores of the current graph. "
        "|mean coverage - 90| in % on arrival, first 15 edge sequences.",
        rows,
        {
            "EdgeEx": three("edge", "edge_edgeex"),
            "NodeEx": three("node", "edge_nodeex"),
            "naive": three("naive", "edge_naive"),
        },
    )


def _first(cell: Cell | None) -> str:
    return "–" if cell is None else f"{cell.first:.2f}"


def _signed(rows: Sequence[Row]) -> TextTable:
    def band(row: Row) -> str:
        chance = row.chance_all
        return "–" if chance is None else f"{chance.low:+.2f} to {chance.high:+.2f}"

    def verdict(row: Row) -> str:
        return {None: "–", True: "inside", False: "OUTSIDE"}[row.inside]

    def counts(row: Row) -> str:
        chance = [row.cells[name].sequences for name in _COUNTED if name in row.cells]
        return " / ".join(str(count) for count in chance)

    return _table(
        "Signed means over all sequences, on arrival",
        "Mean coverage - 90 in %, ± standard error. The band holds the NodeEx mean of so many node "
        "sequences in 99 % of cases if the theory holds (beta-binomial law). Each group of 10 node "
        "(15 edge) sequences has a train/validation split of its own. Edge columns with scores of "
        'the current graph. `bands`: our `rule = "auto"`, which is not in the paper.',
        rows,
        {
            "sequences": counts,
            "node seq: NodeEx": _signed_cell("node arrival node"),
            "99 % band": band,
            "": verdict,
            "naive": _signed_cell("node arrival naive"),
            "bands": _signed_cell("node arrival auto"),
            "edge seq: EdgeEx": _signed_cell("edge arrival edge"),
            "NodeEx": _signed_cell("edge arrival node"),
            "naive ": _signed_cell("edge arrival naive"),
            "bands ": _signed_cell("edge arrival auto"),
        },
    )


_COUNTED = ("node arrival node", "edge arrival edge")


def _fixed(rows: Sequence[Row]) -> TextTable:
    return _table(
        "Signed means, all nodes evaluated at the last step",
        "Mean coverage - 90 in %, ± standard error. Here a node's degree is what it is at the end, "
        "so EdgeEx's test weight matters: 1 is the paper's, exact is the node's own 1 / degree. "
        "Random: each node at a random time of its own.",
        rows,
        {
            "node seq: NodeEx": _signed_cell("node last node"),
            "naive": _signed_cell("node last naive"),
            "NodeEx, random": _signed_cell("node own node"),
            "naive, random": _signed_cell("node own naive"),
            "bands": _signed_cell("node last auto"),
            "edge seq: EdgeEx, weight 1": _signed_cell("edge last edge"),
            "EdgeEx, exact": _signed_cell("edge last edge_exact"),
            "NodeEx": _signed_cell("edge last node"),
            "naive ": _signed_cell("edge last naive"),
            "bands ": _signed_cell("edge last auto"),
        },
    )


def _sizes(rows: Sequence[Row]) -> TextTable:
    def size(name: str) -> Callable[[Row], str]:
        def cell(row: Row) -> str:
            measured = row.cells.get(name)
            return "–" if measured is None or measured.size is None else f"{measured.size:.2f}"

        return cell

    return _table(
        "Mean set size on arrival",
        "What over-coverage costs: classes per set.",
        rows,
        {
            "node seq: NodeEx": size("node arrival node"),
            "naive": size("node arrival naive"),
            "bands": size("node arrival auto"),
            "edge seq: EdgeEx": size("edge arrival edge"),
            "NodeEx": size("edge arrival node"),
            "naive ": size("edge arrival naive"),
            "bands ": size("edge arrival auto"),
            "EdgeEx, last step, weight 1": size("edge last edge"),
            "EdgeEx, last step, exact": size("edge last edge_exact"),
        },
    )


def _scores(rows: Sequence[Row]) -> TextTable:
    def three(name: str) -> Callable[[Row], str]:
        def cell(row: Row) -> str:
            measured = row.scores.get(name)
            if measured is None:
                return "–"
            covered, worst = 100 * measured.covered, 100 * measured.worst_class
            return f"{covered:.1f} / {measured.size:.2f} / {worst:.1f}"

        return cell

    return _table(
        "Our rule and other scores beside the paper's",
        "Each cell: coverage in % / classes per set / coverage of the worst class in %. Half of "
        "the unseen nodes are there; as many as train nodes calibrate, drawn anew "
        f"{DRAWS} times for each split of the node sequences, frozen. `bands`: our "
        '`rule = "auto"`, with each score; `chosen` is what `score = "auto"` takes on validation '
        "nodes alone. `vote`: sets of 10 sampled subgraphs joined by a vote, APS, one draw; it is "
        "a library function, no setting of the product.",
        rows,
        {
            "NodeEx, APS (the paper's)": three("NodeEx APS"),
            "bands, APS": three("auto APS"),
            "bands, DAPS": three("auto DAPS"),
            "bands, RAPS": three("auto RAPS"),
            "bands, TPS": three("auto TPS"),
            "bands, DTPS": three("auto DTPS"),
            "bands, chosen": three("auto auto"),
            "vote, APS": three("NodeEx vote"),
        },
    )
