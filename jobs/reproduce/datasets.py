"""The paper's datasets, from a folder of plain arrays or through PyG, checked before use."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ringfence.connector.errors import RingfenceError
from ringfence.jobs.reproduce.published import LARGE, STATISTICS, Statistics

__all__ = ["Dataset", "DatasetMissing", "load", "read_folder", "write_npz"]

Ints = NDArray[np.int64]
KEYS = ("edges", "x_indptr", "x_indices", "x_data", "x_shape", "y")
_PYG = {
    "cora_ml": ("CitationFull", {"name": "Cora_ML"}),
    "citeseer": ("CitationFull", {"name": "CiteSeer"}),
    "pubmed": ("CitationFull", {"name": "PubMed"}),
    "coauthor_cs": ("Coauthor", {"name": "CS"}),
    "coauthor_physics": ("Coauthor", {"name": "Physics"}),
    "amazon_computers": ("Amazon", {"name": "Computers"}),
    "amazon_photo": ("Amazon", {"name": "Photo"}),
    "flickr": ("Flickr", {}),
    "reddit2": ("Reddit2", {}),
}


class DatasetMissing(RingfenceError):
    """A dataset isn't there, or isn't the paper's."""


@dataclass(frozen=True, slots=True)
class Dataset:
    """A finished graph: x csr [n, attributes] · y int64 [n] · edges int64 [2, E], each once.

    ``time`` int64 [n] is when each node came, where the source says; none of the seven does.
    """

    name: str
    title: str
    x: csr_array
    y: Ints
    edges: Ints
    time: Ints | None = None

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return len(self.y)

    @property
    def classes(self) -> int:
        """Number of classes."""
        return int(self.y.max()) + 1

    @property
    def homophily(self) -> float:
        """Share of edges whose ends have the same class."""
        return float((self.y[self.edges[0]] == self.y[self.edges[1]]).mean())

    @property
    def key_strings(self) -> list[str]:
        """Typed node keys, for the numbers that belong to a node."""
        return [f"i:{node}" for node in range(self.nodes)]


def load(name: str, folder: Path | None, download_to: Path) -> Dataset:
    """The dataset of this name: from ``folder`` if given, else through PyG from the internet.

    Attributes of the seven become 0 and 1, as PyG's classes make them and the paper's code has
    them; those of Flickr and Reddit2 stay as they are.
    """
    dataset = _through_pyg(name, download_to) if folder is None else read_folder(name, folder)
    if name in STATISTICS:
        _check(dataset, STATISTICS[name])
    return dataset


def read_folder(name: str, folder: Path) -> Dataset:
    """Read ``folder/name.npz``: the arrays of KEYS, and ``time`` where there is one."""
    path = folder / f"{name}.npz"
    if not path.is_file():
        there = ", ".join(sorted(file.stem for file in folder.glob("*.npz"))) or "no .npz file"
        raise DatasetMissing(
            found=f"no {path}; the folder holds {there}",
            needed=f"{name}.npz with the arrays {', '.join(KEYS)}",
            next_step="give --data another folder, or leave --data out to download through PyG",
        )
    with np.load(path, allow_pickle=False) as arrays:
        missing = [key for key in KEYS if key not in arrays]
        if missing:
            raise DatasetMissing(
                found=f"{path} has no {', '.join(missing)}",
                needed=f"the arrays {', '.join(KEYS)}",
                next_step="see docs/reproduction/README.md, Data",
            )
        nodes, attributes = (int(side) for side in arrays["x_shape"])
        indices = arrays["x_indices"].astype(np.int64)
        values = _values(name, arrays["x_data"], len(indices))
        x = csr_array((values, indices, arrays["x_indptr"]), shape=(nodes, attributes))
        time = arrays["time"].astype(np.int64) if "time" in arrays else None
        y, edges = arrays["y"].astype(np.int64), arrays["edges"].astype(np.int64)
    title = STATISTICS[name].title if name in STATISTICS else name
    return Dataset(name, title, x, y, edges, time)


def write_npz(path: Path, x: Any, y: Ints, edges: Ints) -> None:
    """Write a dataset as the folder has them; every stored attribute counts as 1."""
    matrix = csr_array(x)
    np.savez_compressed(
        path,
        edges=edges.astype(np.int32),
        x_indptr=matrix.indptr.astype(np.int32),
        x_indices=matrix.indices.astype(np.int32),
        x_data=np.ones(1, np.float32),
        x_shape=np.array(matrix.shape, np.int32),
        y=y.astype(np.int16),
    )


def _through_pyg(name: str, root: Path) -> Dataset:
    from torch_geometric import datasets

    if name not in _PYG:
        raise DatasetMissing(
            found=f"no dataset is called {name!r}",
            needed=", ".join(_PYG),
            next_step="ringfence reproduce --datasets cora_ml,citeseer",
        )
    kind, options = _PYG[name]
    try:
        data = getattr(datasets, kind)(root=str(root / name), **options)[0]
    except (OSError, RuntimeError) as error:
        raise DatasetMissing(
            found=f"PyG could not download {name}: {error}",
            needed="internet, or a folder of arrays",
            next_step=f"ringfence reproduce --data FOLDER, with {name}.npz in it",
        ) from error
    ends = np.sort(data.edge_index.numpy(), axis=0)
    edges = np.unique(ends[:, ends[0] != ends[1]], axis=1)
    x = csr_array(data.x.numpy().astype(np.float32))
    x.data = _values(name, x.data, x.nnz)
    return Dataset(name, STATISTICS[name].title, x, data.y.numpy().astype(np.int64), edges)


def _values(name: str, stored: NDArray[np.generic], count: int) -> NDArray[np.float32]:
    """The attributes' values: 1 each, but for the large datasets."""
    if name in LARGE and len(stored) == count:
        return stored.astype(np.float32)
    return np.ones(count, np.float32)


def _check(dataset: Dataset, needed: Statistics) -> None:
    """Refuse a dataset that shares only its name with the paper's (there are several CiteSeers)."""
    have = (dataset.nodes, dataset.x.shape[1], dataset.classes, 2 * dataset.edges.shape[1])
    want = (needed.nodes, needed.attributes, needed.classes, needed.edges)
    if needed.homophily is None:  # PyG's count, loops and parallels included
        same = have[:3] == want[:3] and abs(have[3] - want[3]) < 0.01 * want[3]
    else:
        same = have == want and abs(dataset.homophily - needed.homophily) < 6e-4
    if not same:
        raise DatasetMissing(
            found=f"{dataset.name} has nodes, attributes, classes, edges {have}, homophily "
            f"{dataset.homophily:.4f}",
            needed=f"the paper's {want}, {needed.homophily}",
            next_step="use the source named in docs/reproduction/README.md, Data",
        )
