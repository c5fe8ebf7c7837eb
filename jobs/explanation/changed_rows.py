"""Encoded columns under a counterfactual question: of the node and of its neighbours.

A blank column of the node is encoded as if the node had never had it. A blank column of its
relationships is left out of the node's own means; the nodes at their other ends keep theirs. A
neighbour that is taken away takes its relationships out of the means at both ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ringfence.connector.mapping import GraphMapping
from ringfence.connector.mirror import Mirror
from ringfence.jobs.project.columns.column_encoders import ColumnEncoders
from ringfence.jobs.project.columns.relation_means import RelationMeans, Without
from ringfence.models.explanation.counterfactual_query import ANY, Question
from ringfence.models.schema import CLASSIFIED
from ringfence.models.trees.columns import CountRows, CountRule

Ints = NDArray[np.int64]
Float32s = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class ChangedRows:
    """What questions change in the encoded columns of a mirror's nodes.

    rule: which neighbours the trees of the version count, if it has any.
    """

    mirror: Mirror
    mapping: GraphMapping
    encoders: ColumnEncoders
    rule: CountRule = field(default_factory=CountRule)

    @property
    def columns(self) -> tuple[tuple[int, str], ...]:
        """The columns that can be blank, by the numbers that questions have for them."""
        names = self.mapping.classified.column_names
        used = self.encoders.tables[CLASSIFIED].encoders
        columns = [(place, name) for place, name in enumerate(names) if name in used]
        first = len(names)
        return (*columns, *((first + n, name) for n, (*_, name) in enumerate(self._related())))

    def encode(self, question: Question) -> Mapping[int, Float32s]:
        """Return the encoded rows [d] that a question changes, by row."""
        names = self.mapping.classified.column_names
        blank = [names[place] for place in question.blank if place < len(names)]
        without = self._without(question)
        rows = {question.node} if question.blank else set()
        if self.encoders.related.tables and question.without:
            rows |= {question.node, *self._other_ends(without)}
        return {
            row: self.encoders.encode_without(
                self.mirror, row, blank if row == question.node else (), without
            )
            for row in sorted(rows)
        }

    def count(self, question: Question) -> CountRows:
        """Return what counts relationships with columns under a question."""
        without, means = self._without(question), RelationMeans(self.mirror, self.encoders.related)
        return lambda rows: means.counts(CLASSIFIED, rows, self.rule, without=without)

    def _related(self) -> list[tuple[int, str, str]]:
        """Relation, column and name of the columns of relationships at classified nodes."""
        related, listed = self.encoders.related, []
        for index in sorted({slot.relation for slot in related.slots(CLASSIFIED)}):
            relation = self.mapping.relations[index]
            listed += [
                (index, column, f"{relation.type}.{column}")
                for column in related.tables[index].encoders
            ]
        return listed

    def _without(self, question: Question) -> Without:
        first, related = len(self.mapping.classified.column_names), self._related()
        blank: dict[int, tuple[str, ...]] = {}
        for place in question.blank:
            if place >= first:
                relation, column, _ = related[place - first]
                blank[relation] = (*blank.get(relation, ()), column)
        return Without(question.node, lambda *ends: _is_cut(question, *ends), blank)

    def _other_ends(self, without: Without) -> set[int]:
        """The nodes whose relationships with the node are taken away."""
        others: set[int] = set()
        for relation, table in self.mirror.related.items():
            sources, targets = table.ends(np.flatnonzero(table.live))
            gone = without.gone(relation, sources, targets)
            others |= {*sources[gone].tolist(), *targets[gone].tolist()}
        return others


def _is_cut(question: Question, relation: int, sources: Ints, targets: Ints) -> NDArray[np.bool_]:
    """Which relationships a question takes away."""
    gone = np.zeros(len(sources), np.bool_)
    for cut in question.without:
        other, kind = cut
        if kind in (relation, ANY):
            from_node = (sources == question.node) & ((targets == other) | (other == ANY))
            to_node = (targets == question.node) & ((sources == other) | (other == ANY))
            gone |= from_node | to_node
    return gone
