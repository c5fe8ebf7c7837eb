"""`[model]`: the network and how it is trained."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from ringfence.jobs.config.section import Fraction01, Section
from ringfence.models.networks.registry import NETWORK_NAMES


class ModelSettings(Section):
    """The network and how it is trained."""

    network: str = Field(
        "GCN",
        description=f"{', '.join(NETWORK_NAMES)} or `package.module:Class`. "
        "With `[[graph.nodes]]`: typed_sage (the default there), trees (small boosted trees on a "
        "node's own columns, the means of its neighbours' and their counts), blend (the mean of "
        "the probabilities of the "
        "two), auto (of these three the one with the lowest log loss on validation nodes; "
        "`ringfence init` writes it), or a `package.module:Class` whose "
        "forward takes PyG's x_dict and edge_index_dict.",
    )
    hidden: int = Field(64, ge=1, description="Width of the hidden layer (the paper's).")
    layers: int = Field(
        2, ge=1, le=3, description="Layers of typed_sage; the other networks have two."
    )
    degrees: bool = Field(
        False,
        description="typed_sage also hears how many neighbours a node has, per relationship type "
        "and direction; trees, which count context without it, count neighbours of the classified "
        "label too. Where older nodes have more of them at the same age, or fewer, coverage "
        "suffers (docs/mathematics.md, 9a). Mind types whose mere presence gives the class away.",
    )
    dropout: float | None = Field(
        None, ge=0, lt=1, description="Dropout; without it the paper's value for the network."
    )
    learning_rate: float | None = Field(
        None,
        gt=0,
        description="Without it the network's default; 0.05 for trees. For "
        "auto and blend this, weight_decay and patience are the network's, and trees keep theirs.",
    )
    weight_decay: float | None = Field(None, ge=0, description="Without it the network's default.")
    max_epochs: int = Field(1000, ge=1, description="Training stops here at the latest.")
    patience: int = Field(
        100,
        ge=1,
        description="Epochs without a better validation loss; rounds of trees, 20 unless it is "
        "set here.",
    )
    batch_size: Annotated[int, Field(ge=0)] | Literal["auto"] = Field(
        "auto",
        description="Train with sampled neighbourhoods of this many nodes at a time, for graphs "
        "that don't fit a full pass; 0 trains on the whole subgraph in each step. `auto`: full "
        "passes, and with `[[graph.nodes]]` batches of 512 where a full pass would take more than "
        "4 GB.",
    )
    class_weights: bool | Literal["auto"] = Field(
        "auto",
        description="Weigh rare classes up in the training loss: `auto` does so under "
        '`[conformal] promise = "class"`, where it makes the promise of a rare class cost far '
        "fewer false alerts. Otherwise, where the largest class has ten times as many training "
        "nodes as the smallest, it trains both ways and keeps what has the lower log loss on "
        "validation nodes.",
    )
    search: int = Field(
        0,
        ge=0,
        le=9,
        description="Trials for `hidden` and `learning_rate` (half, same, twice; a third, same, "
        "three times), each a whole training; the lowest log loss on validation nodes is kept, "
        "and the trials stand in the manifest. 0 and 1 train the configured values alone.",
    )
    warm_start: bool = Field(
        False,
        description="A new version begins with the weights of the version in use, where classes, "
        "columns and shapes are the same and none of its calibration or holdout nodes is one that "
        "those weights were learnt from; it says so where it can't.",
    )
    seed: int = Field(
        0,
        description="Seed of the split and the training. Choose it once: it is part of what an "
        "auditor recomputes. Every node's own random number u comes from the seed key; in versions "
        "from before there was one, from this seed.",
    )
    max_unusable: float = Field(
        0.05,
        ge=0,
        le=1,
        description="Share of the nodes that may be unusable (no key, no time, wrong features); "
        "with more, training is refused and the reasons are named.",
    )
    holdout: float = Field(
        0.1,
        ge=0,
        le=0.5,
        description="Share of the labelled nodes excluded from training, early stopping and "
        "calibration: versions are compared on them. Drawn first, by a hash of the node's key and "
        "the project's name, so that it stays the same for all versions. Where it would be fewer "
        "than 30 nodes a version goes without, and says so.",
    )
    compare_by: Literal["auto", "accuracy", "macro_f1", "log_loss"] = Field(
        "auto",
        description="The metric on the holdout by which versions are called better, and by which a "
        "model beats largest class and boosted trees, or not: beyond its 95 % interval. `auto`: "
        'macro_f1 under `[conformal] promise = "class"`, accuracy otherwise.',
    )
    graph_check: bool = Field(
        True,
        description="`train` fits the chosen scorer three times more, with the ends of the "
        "relationships permuted, without relationships, and with nothing but their numbers, and "
        "says what the relationships bring. `false` leaves it out, as scheduled trainings may.",
    )
    shadow: bool = Field(
        False,
        description="The newest candidate scores the nodes of every run too. Its sets stay in SQL, "
        "beside those in force; their coverage and size are shown by `ringfence models`.",
    )
    train: Fraction01 = Field(0.5, description="Share of the other labelled nodes to train on.")
    validation: Fraction01 = Field(0.2, description="Share of them for early stopping.")
    calibration: Fraction01 = Field(0.3, description="Share of them kept for calibration alone.")

    @property
    def fixed_batch_size(self) -> int | None:
        """The batch size; None where the size of the graph decides."""
        return None if self.batch_size == "auto" else self.batch_size

    @property
    def typed_network(self) -> str:
        """The network for several labels: the named one, typed_sage where none is named."""
        return self.network if "network" in self.model_fields_set else "typed_sage"

    @model_validator(mode="after")
    def _shares_add_up(self) -> ModelSettings:
        total = self.train + self.validation + self.calibration
        if abs(total - 1) > 1e-9:
            raise ValueError(f"train + validation + calibration is {total:g}; it must be 1")
        return self
