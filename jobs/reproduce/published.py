"""What the paper prints: Table 1, and the statistics of its datasets.

Zargarbashi and Bojchevski, "Conformal Inductive Graph Neural Networks", ICLR 2024.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ALPHA", "LARGE", "PUBLISHED", "STATISTICS", "TABLE_1", "Published", "Statistics"]

ALPHA = 0.1


@dataclass(frozen=True, slots=True)
class Statistics:
    """Nodes, attributes, edges in both directions, classes, share of edges within a class."""

    title: str
    nodes: int
    attributes: int
    edges: int
    classes: int
    homophily: float | None


@dataclass(frozen=True, slots=True)
class Published:
    """One row of Table 1: accuracy, and |coverage - 90| in % on arrival."""

    accuracy: float
    node_nodeex: float
    node_naive: float
    edge_edgeex: float
    edge_nodeex: float
    edge_naive: float


STATISTICS = {
    "cora_ml": Statistics("Cora-ML", 2995, 2879, 16316, 7, 0.7885),
    "pubmed": Statistics("PubMed", 19717, 500, 88648, 3, 0.8023),
    "citeseer": Statistics("CiteSeer", 4230, 602, 10674, 6, 0.9494),
    "coauthor_cs": Statistics("Coauthor-CS", 18333, 6805, 163788, 15, 0.8080),
    "coauthor_physics": Statistics("Coauthor-Physics", 34493, 8415, 495924, 5, 0.9314),
    "amazon_computers": Statistics("Amazon-Computers", 13752, 767, 491722, 10, 0.7772),
    "amazon_photo": Statistics("Amazon-Photo", 7650, 745, 238162, 8, 0.8272),
    "flickr": Statistics("Flickr", 89250, 500, 899756, 7, None),
    "reddit2": Statistics("Reddit2", 232965, 602, 23213838, 41, None),
}
"""By short name; the two last ones stand in the paper's appendix without a row in its tables, and
their numbers are those of PyG's documentation."""

TABLE_1 = (
    "cora_ml", "pubmed", "citeseer", "coauthor_cs", "coauthor_physics", "amazon_computers",
    "amazon_photo",
)  # fmt: skip
LARGE = ("flickr", "reddit2")

PUBLISHED = {
    "cora_ml": Published(0.800, 0.280, 5.860, 1.929, 3.883, 6.860),
    "pubmed": Published(0.777, 1.254, 4.649, 1.241, 3.405, 5.315),
    "citeseer": Published(0.816, 0.039, 4.150, 0.335, 1.572, 3.460),
    "coauthor_cs": Published(0.914, 0.397, 4.082, 3.024, 4.662, 7.835),
    "coauthor_physics": Published(0.940, 0.555, 2.689, 2.240, 4.378, 6.123),
    "amazon_computers": Published(0.788, 0.263, 6.373, 2.687, 5.727, 7.036),
    "amazon_photo": Published(0.868, 0.127, 3.483, 2.546, 4.130, 6.613),
}
