"""The text around the numbers: what was done, what came out, where it differs and why."""

from __future__ import annotations

from collections.abc import Sequence

from ringfence.jobs.reproduce.published import STATISTICS
from ringfence.jobs.reproduce.table import Row

__all__ = ["CLOSING", "OPENING", "findings"]

OPENING = """\
The experiments of "Conformal Inductive Graph Neural Networks" (ICLR 2024), remade with the code of
`models/` that production uses: the same networks, training, scores, thresholds and weights. Every
step brings one node or one edge; scores are those of a full forward pass on the graph of that step,
computed row by row (`models/sequences/replay.py`; a test compares the two)."""

CLOSING = """\
## Protocol

Where the paper leaves something open, this is what was decided.

- Attributes are 0 or 1. GCN, one hidden layer of 64, dropout 0.6 on it; Adam, learning rate 1e-3,
  weight decay 1e-2, at most 1,000 epochs, patience 100 on the validation loss; the weights of the
  best epoch. (GAT .01/.01; APPNP .01/1e-4, 10 steps, teleport .1; MLP .005/.01.)
- 20 train and 20 validation nodes of each class, uniformly at random; training sees the subgraph
  that they induce and nothing else. Each group of 10 node (15 edge) sequences has its own split.
- Node sequence: as many calibration nodes as train nodes, at random from the others; then one node
  per step with its edges to what is there.
- Edge sequence: as many calibration edges as train nodes, from the edges that are not inside the
  train and validation nodes; both ends calibrate unless they are train or validation nodes; then
  one edge per step; both ends that are new are evaluated at that step. Isolated nodes never arrive.
- APS with one u per node and sequence, from a keyed hash. alpha = 0.1.
- A cell of Table 1 is |grand mean over sequences and nodes - 90|: of the averages one can take,
  this is the one that fits the printed figures.
- Chance: the mean coverage of one node sequence follows the beta-binomial law when all nodes are
  evaluated at one time. Evaluated on arrival the mean is the same, but every step has a threshold
  of its own, so single sequences scatter less and the band is wider than it need be.

## Data

`--data FOLDER` reads `NAME.npz` (`edges` [2, E], each undirected edge once; `x_indptr`,
`x_indices`, `x_data`, `x_shape`: attributes as CSR; `y`; optionally `time`, when each node came).
Without `--data`, PyG's `CitationFull`, `Coauthor`, `Amazon`, `Flickr` and `Reddit2` download them.
Either way nodes, attributes, edges, classes and homophily must be the paper's. Flickr and Reddit2
(`--datasets large`) run the same protocol with 20 nodes per class, where the paper takes their
original splits; they are skipped, and named, when they are absent.

## How much was run

The column `sequences` says how many node and edge sequences each dataset's means have. The first 10
and 15 are always the same ones, whatever `--sequences` says. `--cached-only` in the command line
means that a longer run was stopped and what it had finished is shown; the same command without it
goes on to the full number.

## Files

`table.csv` and `table.json` hold every number; `figures/` the figures. `index.html`, written beside
them and not kept in the repository, has the same figures to zoom into. `cache/` (not kept either)
holds one small file per trained network and per sequence: a second run goes on from there, and
`--no-resume` starts anew.
"""


def findings(rows: Sequence[Row]) -> list[str]:
    """Sentences that follow from the numbers."""
    judged = [row for row in rows if row.inside is not None]
    if not judged:
        return []
    sentences = [_nodeex(judged), _naive(judged)]
    edge = [row for row in judged if "edge arrival edge" in row.cells]
    sentences += [_edge(edge), _arrival(edge), _last(edge), *_bands(edge)] if edge else []
    return sentences + _scores(judged) + _accuracy(judged) + _not_run(rows)


def _nodeex(rows: Sequence[Row]) -> str:
    outside = [row.title for row in rows if not row.inside]
    inside = len(rows) - len(outside)
    counts = sorted({row.cells["node arrival node"].sequences for row in rows})
    many = f"{counts[0]} to {counts[-1]}" if len(counts) > 1 else f"{counts[0]}"
    rest = f" Outside: {', '.join(outside)}." if outside else ""
    return (
        f"NodeEx on node sequences, on arrival, means of {many} sequences: {inside} of {len(rows)} "
        f"datasets lie within the law's 99 % band.{rest}"
    )


def _naive(rows: Sequence[Row]) -> str:
    def broken(row: Row) -> bool:
        cell = row.cells["node arrival naive"]
        return row.chance_all is not None and not (
            row.chance_all.low <= cell.signed <= row.chance_all.high
        )

    count = sum(broken(row) for row in rows)
    cells = [row.cells["node arrival naive"].signed for row in rows]
    return (
        f"Naive on the same sequences: {count} of {len(rows)} datasets lie outside that band, "
        f"{min(cells):+.2f} % to {max(cells):+.2f} %, all in the direction the paper reports."
        if min(cells) > 0
        else f"Naive on the same sequences: {count} of {len(rows)} datasets lie outside that band, "
        f"{min(cells):+.2f} % to {max(cells):+.2f} %."
    )


def _edge(rows: Sequence[Row]) -> str:
    def mean(name: str) -> float:
        return sum(row.cells[name].first for row in rows) / len(rows)

    names = ("edge", "node", "naive")
    stale = " / ".join(f"{mean(f'edge stale {name}'):.2f}" for name in names)
    right = " / ".join(f"{mean(f'edge arrival {name}'):.2f}" for name in names)
    printed = [row.published for row in rows if row.published is not None]
    theirs = (
        " / ".join(
            f"{sum(getattr(p, f) for p in printed) / len(printed):.2f}"
            for f in ("edge_edgeex", "edge_nodeex", "edge_naive")
        )
        if printed
        else "–"
    )
    return (
        "Edge sequences, on arrival, EdgeEx / NodeEx / naive, mean of |coverage - 90| over the "
        f"datasets: {theirs} in the paper, {stale} with the stale scores of the authors' notebook, "
        f"{right} with scores of the current graph. The printed columns are nearer to the stale "
        "scores; with the right ones all three rules are nearer to 90 on average."
    )


def _arrival(rows: Sequence[Row]) -> str:
    cells = [row.cells["edge arrival edge"] for row in rows]
    off = [
        row.title
        for row, cell in zip(rows, cells, strict=True)
        if cell.error and abs(cell.signed) > 2.58 * cell.error
    ]
    where = f" ({', '.join(off)})" if off else ""
    return (
        "EdgeEx on arrival, scores of the current graph: mean coverage - 90 is "
        f"{min(cell.signed for cell in cells):+.2f} % to {max(cell.signed for cell in cells):+.2f} "
        f"%, and differs from 0 by more than 2.58 standard errors on {len(off)} of {len(rows)} "
        f"datasets{where}: more than chance. The likely reason, not tested apart: a node evaluated "
        "at its first edge always has degree 1, while the weights 1 / degree aim at a node drawn "
        "uniformly from the graph of that step. The next line has all nodes at one time, each with "
        "its own weight, which is what the theory speaks of."
    )


def _accuracy(rows: Sequence[Row]) -> list[str]:
    off = [
        f"{row.title} {row.accuracy:.3f} against {row.published.accuracy:.3f}"
        for row in rows
        if row.published is not None
        and row.splits > 1
        and abs(row.accuracy - row.published.accuracy) > 3 * row.accuracy_spread
    ]
    if not off:
        return []
    return [
        "Accuracy differs by more than three standard deviations of one split: "
        f"{', '.join(off)}. The paper prints no learning rate, weight decay or stopping rule; ours "
        "are those of the authors' code as far as known. No promise depends on accuracy; set "
        "sizes and naive's error do."
    ]


def _last(rows: Sequence[Row]) -> str:
    edge_last = [row.cells["edge last edge"].signed for row in rows]
    exact = [row.cells["edge last edge_exact"].signed for row in rows]
    return (
        "Edge sequences, all nodes evaluated at the last step: EdgeEx with the paper's test weight "
        f"1 is off by {min(edge_last):+.2f} % to {max(edge_last):+.2f} %, with the node's own "
        f"1 / degree by {min(exact):+.2f} % to {max(exact):+.2f} %. Where degrees are high the "
        "calibration weights 1 / degree add up to little, and a test weight of 1 among them is "
        "mostly the full set: safe, and useless. On arrival a node has degree 1 and the two "
        "are the same."
    )


def _bands(rows: Sequence[Row]) -> list[str]:
    """Bands of degree on both kinds of sequence, without being told which one it is."""
    if not all({"node arrival auto", "edge arrival auto"} <= row.cells.keys() for row in rows):
        return []

    def span(name: str) -> str:
        cells = [row.cells[name].signed for row in rows]
        return f"{min(cells):+.2f} % to {max(cells):+.2f} %"

    return [
        'Bands of degree (our `rule = "auto"`, not in the paper), on arrival, mean coverage - 90: '
        f"{span('node arrival auto')} on node sequences (NodeEx {span('node arrival node')}), "
        f"{span('edge arrival auto')} on edge sequences (EdgeEx {span('edge arrival edge')}). An "
        "edge sequence's calibration nodes are the ends of sampled edges, the case that EdgeEx is "
        "made for; bands are made for calibration nodes that are drawn among labelled nodes."
    ]


def _scores(rows: Sequence[Row]) -> list[str]:
    rows = [row for row in rows if row.scores]
    if not rows:
        return []

    def against(name: str) -> str:
        sizes = [row.scores[name].size / row.scores["auto APS"].size - 1 for row in rows]
        below = [row.scores["auto APS"].worst_class - row.scores[name].worst_class for row in rows]
        return (
            f"{100 * sum(sizes) / len(sizes):+.1f} %, worst class at most "
            f"{100 * max(below):.1f} points lower"
        )

    return [
        "Set sizes within bands against APS within bands, mean over the datasets: DAPS "
        f"{against('auto DAPS')}; the score that is chosen on validation nodes "
        f"{against('auto auto')}; TPS {against('auto TPS')}; RAPS {against('auto RAPS')}; DTPS "
        f"{against('auto DTPS')}."
    ]


def _not_run(rows: Sequence[Row]) -> list[str]:
    """The paper's datasets that are not in the tables."""
    there = {row.name for row in rows}
    missing = [statistics.title for name, statistics in STATISTICS.items() if name not in there]
    if not missing:
        return []
    *most, last = missing
    names = f"{', '.join(most)} and {last}" if most else last
    return [f"Not run here, of the paper's datasets: {names}."]
