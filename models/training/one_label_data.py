"""A graph of one label in the tensors that training takes: features and edges."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ringfence.models.training.sampling import Block, Nodes, neighbours_of, sample_block

__all__ = ["OneLabelData"]

Tensors = tuple[Tensor, Tensor]


@dataclass(frozen=True, slots=True, eq=False)
class OneLabelData:
    """Features ``[n, in_features]``, and edges ``[2, E]`` as ``canonical_edges`` returns them."""

    x: Tensor
    edge_index: Tensor

    @property
    def edge_count(self) -> int:
        """Number of edges."""
        return self.edge_index.size(1)

    def tensors(self) -> Tensors:
        """Return the arguments of ``forward(x, edge_index)``."""
        return self.x, self.edge_index

    def tensors_for(self, _network: torch.nn.Module) -> Tensors:
        """Return the same: no network takes more."""
        return self.tensors()

    def block_sampler(
        self, fanouts: Sequence[int | None]
    ) -> Callable[[Nodes, np.random.Generator], Callable[[], Tensors]]:
        """Return a sampler of blocks with at most so many neighbours per node, by hop."""
        neighbours = neighbours_of(self.edge_index.cpu().numpy(), len(self.x))

        def draw(seeds: Nodes, rng: np.random.Generator) -> Callable[[], Tensors]:
            block = sample_block(neighbours, seeds, fanouts, rng)
            return lambda: self._block_tensors(block)

        return draw

    def _block_tensors(self, block: Block) -> Tensors:
        nodes = torch.from_numpy(block.nodes).to(self.x.device)
        return self.x[nodes], torch.from_numpy(block.edge_index).to(self.x.device)
