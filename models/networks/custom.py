"""A user's own network, accepted only after checks that the theory requires.

The guarantee requires scores that do not depend on how nodes are numbered. A module is checked in
evaluation mode, on random graphs with random weights: right shape, finite, the same answer twice,
no state changed by a call, and permuted nodes give permuted logits.
"""

from __future__ import annotations

import copy
import importlib
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ringfence.models.networks.edges import canonical_edges
from ringfence.models.seeding import seeded

__all__ = ["LOGIT_TOLERANCE", "ModuleRefused", "check_module", "import_module_class", "load_module"]

TRIAL_GRAPH_NODES = (3, 40, 97)  # sizes of the random graphs of the check
LOGIT_TOLERANCE = 1e-4  # of the largest logit: float32 sums in another order differ by about 1e-6


class ModuleRefused(ValueError):
    """A user's module cannot be used; the message says why and what is needed."""


def load_module(
    path: str, in_features: int, classes: int, *, seed: int = 0, **options: Any
) -> torch.nn.Module:
    """Import ``package.module:Class``, construct it and check it with ``check_module``.

    The class is called as ``Class(in_features, classes, **options)`` with torch's generator seeded,
    and must be a ``torch.nn.Module`` with ``forward(x, edge_index) -> logits [n, classes]``.

    >>> load_module("ringfence.models.networks:GCN", 5, 3, hidden=8).conv1
    GCNConv(5, 8)
    """
    module_class = import_module_class(path)
    with seeded(seed):
        try:
            module = module_class(in_features, classes, **options)
        except TypeError as error:
            raise ModuleRefused(
                f"{path} could not be constructed as "
                f"{_call(module_class.__name__, in_features, classes, options)}: {error}; "
                "its __init__ must take (in_features, classes) and the configured options"
            ) from error
    check_module(module, in_features, classes, seed=seed, name=path)
    return module


def check_module(
    module: torch.nn.Module, in_features: int, classes: int, *, seed: int = 0, name: str = "module"
) -> None:
    """Raise ``ModuleRefused`` unless the module behaves as the guarantee needs.

    A copy is checked, so ``module`` stays as it is. Noise is added to all of the copy's weights: a
    weight per node index that starts at zero would not show otherwise. No finite check can prove
    equivariance; this one finds what people do write: positions, noise, dropout that stays on,
    batch statistics that are kept, sizes fixed to one graph.
    """
    with seeded(seed), torch.no_grad():
        for size in TRIAL_GRAPH_NODES:
            trial = _Trial(name, copy.deepcopy(module).eval(), *_random_graph(size, in_features))
            trial.answer()  # lazy modules get their weights here
            for weight in trial.module.parameters():
                weight.add_(0.1 * torch.randn_like(weight))
            _check_answer(trial, classes)
            _check_repeat(trial, seed)
            _check_relabelling(trial)


@dataclass(frozen=True, slots=True)
class _Trial:
    name: str
    module: torch.nn.Module
    x: Tensor
    edge_index: Tensor

    def answer(self, x: Tensor | None = None, edge_index: Tensor | None = None) -> Any:
        given = self.x if x is None else x
        edges = self.edge_index if edge_index is None else edge_index
        try:
            return self.module(given.clone(), edges.clone())
        except Exception as error:
            raise ModuleRefused(
                f"{self.name} failed on a graph of {len(given)} nodes and {edges.size(1)} edges: "
                f"{type(error).__name__}: {error}; forward(x, edge_index) must work on any graph"
            ) from error


def _check_answer(trial: _Trial, classes: int) -> None:
    logits, needed = trial.answer(), (len(trial.x), classes)
    if not isinstance(logits, Tensor) or not logits.is_floating_point() or logits.shape != needed:
        shape = (
            f"{logits.dtype} {list(logits.shape)}"
            if isinstance(logits, Tensor)
            else type(logits).__name__
        )
        raise ModuleRefused(
            f"{trial.name} returned {shape}; floating-point logits of shape {list(needed)} are "
            "needed, one row per node and one column per class"
        )
    broken = int((~torch.isfinite(logits)).any(dim=1).sum())
    if broken:
        raise ModuleRefused(
            f"{trial.name} returned NaN or infinite logits for {broken} of {len(logits)} nodes; "
            "nodes without neighbours exist: do not divide by their degree"
        )


def _check_repeat(trial: _Trial, seed: int) -> None:
    before = {key: value.clone() for key, value in trial.module.state_dict().items()}
    first = trial.answer()
    torch.manual_seed(seed + 1)
    second = trial.answer()
    changed = [k for k, v in trial.module.state_dict().items() if not torch.equal(v, before[k])]
    if changed:
        raise ModuleRefused(
            f"{trial.name} changed its own {', '.join(changed)} during a forward pass in "
            "evaluation mode; scores would depend on earlier calls: respect self.training"
        )
    if not torch.equal(first, second):
        raise ModuleRefused(
            f"{trial.name} gave two results for the same graph, up to "
            f"{(first - second).abs().max().item():.3g} apart, in evaluation mode; switch dropout "
            "and noise off unless self.training"
        )


def _check_relabelling(trial: _Trial) -> None:
    nodes, edges = len(trial.x), trial.edge_index.size(1)
    order, shuffle = torch.randperm(nodes), torch.randperm(edges)
    place = torch.argsort(order)
    expected = trial.answer()[order]
    relabelled = trial.answer(trial.x[order], place[trial.edge_index][:, shuffle])
    difference = (relabelled - expected).abs().max().item()
    allowed = LOGIT_TOLERANCE * max(1.0, expected.abs().max().item())
    if difference > allowed:
        raise ModuleRefused(
            f"{trial.name} is not permutation-equivariant: on a random graph of {nodes} nodes, "
            f"relabelling the nodes changed a logit by {difference:.3g} (allowed {allowed:.3g}); "
            "logits may depend on features and edges, not on a node's number or the edges' order"
        )


def _random_graph(nodes: int, in_features: int) -> tuple[Tensor, Tensor]:
    """Features and edges; the last node has no neighbour."""
    edges = torch.randint(max(nodes - 1, 1), (2, 3 * nodes))
    return torch.randn(nodes, in_features), torch.from_numpy(canonical_edges(edges.numpy(), nodes))


def import_module_class(path: str) -> type[torch.nn.Module]:
    """Return the class that ``package.module:Class`` names, a subclass of ``torch.nn.Module``."""
    module_name, colon, class_name = path.partition(":")
    if not (module_name and colon and class_name):
        raise ModuleRefused(
            f'{path!r} is no dotted path; write "package.module:Class", such as "fraud.nets:Net"'
        )
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise ModuleRefused(
            f"{path} could not be imported: {error}; install the package that holds it into "
            "ringfence's environment, or put its folder on PYTHONPATH"
        ) from error
    module_class = getattr(module, class_name, None)
    if not (isinstance(module_class, type) and issubclass(module_class, torch.nn.Module)):
        what = (
            "nothing"
            if module_class is None
            else f"{type(module_class).__name__}, no torch.nn.Module class,"
        )
        raise ModuleRefused(
            f"{module_name} has {what} called {class_name}; name a subclass of torch.nn.Module"
        )
    return module_class


def _call(name: str, in_features: int, classes: int, options: dict[str, Any]) -> str:
    extra = "".join(f", {key}={value!r}" for key, value in options.items())
    return f"{name}({in_features}, {classes}{extra})"
