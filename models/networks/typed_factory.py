"""Networks for typed graphs by name, and users' own modules, which are checked first."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from ringfence.models.networks.custom import LOGIT_TOLERANCE, ModuleRefused, import_module_class
from ringfence.models.networks.registry import TYPED_NETWORKS, typed_network_class
from ringfence.models.schema import TypedSchema
from ringfence.models.seeding import seeded

__all__ = ["build_typed", "check_typed_module"]

TRIAL_SIZES = (4, 23)  # nodes per label of the random graphs of the check

X = dict[str, Tensor]
Edges = dict[tuple[str, str, str], Tensor]


def build_typed(
    name: str,
    schema: TypedSchema,
    in_features: Sequence[int],
    classes: int,
    *,
    seed: int = 0,
    **options: Any,
) -> torch.nn.Module:
    """The network called ``name`` for this schema, its weights drawn from ``seed``.

    A name with a colon is a user's own module, ``package.module:Class``. It is called as
    ``Class(metadata, in_features, classes, **options)``: ``metadata`` is PyG's pair of labels and
    edge types, the classified label first, ``in_features`` the columns by label; its
    ``forward(x_dict, edge_index_dict)`` takes what `HeteroData` has under these names and gives the
    logits of the classified label's nodes. It is checked on random graphs first.
    """
    if ":" in name:
        return _own_module(name, schema, in_features, classes, seed, options)
    network = typed_network_class(name)
    if network is None:
        raise ValueError(
            f"no network for several labels is called {name!r}; there is "
            f'{", ".join(TYPED_NETWORKS)}, or a module of your own as "package.module:Class"'
        )
    known = list(inspect.signature(network).parameters)[3:]
    if unknown := sorted(set(options) - set(known)):
        raise ValueError(f"{name} has no option {', '.join(unknown)}; it takes {', '.join(known)}")
    with seeded(seed):
        return network(schema, in_features, classes, **options)


def check_typed_module(
    module: torch.nn.Module,
    schema: TypedSchema,
    in_features: Sequence[int],
    classes: int,
    *,
    seed: int = 0,
    name: str = "module",
) -> None:
    """Raise `ModuleRefused` unless the module behaves as the guarantee needs.

    Right shape, finite, the same answer twice, and relabelled nodes (within each label) give
    relabelled logits; on random graphs, in evaluation mode, a copy with noise on its weights.
    """
    with seeded(seed), torch.no_grad():
        for size in TRIAL_SIZES:
            trial = copy.deepcopy(module).eval()
            x, edges = _random_graph(schema, in_features, size)
            _answer(name, trial, x, edges)  # lazy modules get their weights here
            for weight in trial.parameters():
                weight.add_(0.1 * torch.randn_like(weight))
            logits = _answer(name, trial, x, edges)
            _check_logits(name, logits, (size, classes))
            torch.manual_seed(seed + 1)
            if not torch.equal(_answer(name, trial, x, edges), logits):
                raise ModuleRefused(
                    f"{name} gave two results for one graph in evaluation mode; switch dropout "
                    "and noise off unless self.training"
                )
            _check_relabelling(name, trial, schema, x, edges, logits)


def _own_module(
    path: str,
    schema: TypedSchema,
    in_features: Sequence[int],
    classes: int,
    seed: int,
    options: Mapping[str, Any],
) -> torch.nn.Module:
    module_class = import_module_class(path)
    widths = dict(zip(schema.labels, in_features, strict=True))
    metadata = (list(schema.labels), list(schema.edge_types))
    with seeded(seed):
        try:
            module = module_class(metadata, widths, classes, **options)
        except TypeError as error:
            raise ModuleRefused(
                f"{path} could not be constructed as {module_class.__name__}(metadata, "
                f"in_features, {classes}): {error}; its __init__ must take these and "
                "the configured options"
            ) from error
    check_typed_module(module, schema, in_features, classes, seed=seed, name=path)
    return module


def _answer(name: str, module: torch.nn.Module, x: X, edges: Edges) -> Any:
    try:
        return module(
            {k: v.clone() for k, v in x.items()}, {k: v.clone() for k, v in edges.items()}
        )
    except Exception as error:
        sizes = ", ".join(f"{len(rows)} {label}" for label, rows in x.items())
        raise ModuleRefused(
            f"{name} failed on a graph of {sizes} nodes: {type(error).__name__}: {error}; "
            "forward(x_dict, edge_index_dict) must work on any graph of the schema"
        ) from error


def _check_logits(name: str, logits: Any, needed: tuple[int, int]) -> None:
    if not isinstance(logits, Tensor) or logits.shape != needed or not logits.is_floating_point():
        shape = list(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
        raise ModuleRefused(
            f"{name} returned {shape}; floating-point logits of shape {list(needed)} are needed, "
            "one row per node of the classified label"
        )
    if not torch.isfinite(logits).all():
        raise ModuleRefused(
            f"{name} returned NaN or infinite logits; nodes without neighbours exist: do not "
            "divide by their degree"
        )


def _check_relabelling(
    name: str, module: torch.nn.Module, schema: TypedSchema, x: X, edges: Edges, logits: Tensor
) -> None:
    order = {label: torch.randperm(len(rows)) for label, rows in x.items()}
    place = {label: torch.argsort(rows) for label, rows in order.items()}
    moved = {
        kind: torch.stack([place[kind[0]][pair[0]], place[kind[2]][pair[1]]])
        for kind, pair in edges.items()
    }
    relabelled = _answer(name, module, {label: x[label][order[label]] for label in x}, moved)
    expected = logits[order[schema.labels[0]]]
    difference = (relabelled - expected).abs().max().item()
    if difference > LOGIT_TOLERANCE * max(1.0, expected.abs().max().item()):
        raise ModuleRefused(
            f"{name} is not permutation-equivariant: relabelling the nodes within their labels "
            f"changed a logit by {difference:.3g}; logits may depend on columns and relationships, "
            "not on a node's number"
        )


def _random_graph(schema: TypedSchema, in_features: Sequence[int], size: int) -> tuple[X, Edges]:
    """The last node of each label has no neighbour."""
    x = {
        label: torch.randn(size, width)
        for label, width in zip(schema.labels, in_features, strict=True)
    }
    edges = {
        kind: torch.unique(torch.randint(max(size - 1, 1), (2, 2 * size)), dim=1)
        for kind in schema.edge_types
    }
    return x, edges
