"""Runs and sets as objects, for notebooks (extra `py2neo`, end-of-life upstream).

with connect_py2neo(uri, user, password) as client:
    for run in Run.match(client.graph).order_by("_.seq"):
        print(run.seq, run.threshold)
    account = node_class("Account", "id").match(client.graph, 42).first()
    print(account.set)          # {'mule': 0.34, 'retail': 0.71}
"""

from __future__ import annotations

from typing import Any

from ringfence.connector.errors import ConfigError

try:
    from py2neo.ogm import Model, Property, RelatedFrom, RelatedTo
except ModuleNotFoundError:
    raise ConfigError(
        found="py2neo is not installed",
        needed="py2neo 2021.2.4, for the classes of runs and sets",
        next_step="pip install 'ringfence[py2neo]'",
    ) from None


class PossibleClass(Model):  # type: ignore[misc]
    """A class that sets point to."""

    __primarylabel__ = "RingfenceClass"
    __primarykey__ = "name"

    project = Property()
    name = Property()


class Audit(Model):  # type: ignore[misc]
    """The coverage of one slice of a run."""

    __primarylabel__ = "CoverageAudit"
    __primarykey__ = "id"

    id = Property()
    slice = Property()
    known = Property()
    covered = Property()
    verdict = Property()
    words = Property()


class Run(Model):  # type: ignore[misc]
    """One scoring run."""

    __primarylabel__ = "RingfenceRun"
    __primarykey__ = "id"

    id = Property()
    project = Property()
    seq = Property()
    at = Property()
    rule = Property()
    alpha = Property()
    level = Property()
    promise = Property()
    threshold = Property()
    calibration = Property()
    model = Property()

    audits = RelatedFrom(Audit, "AUDITS")


class EvaluatedNode(Model):  # type: ignore[misc]
    """A node with its set; make one for your label by `node_class`."""

    may_be = RelatedTo(PossibleClass, "MAY_BE")
    evaluated = RelatedTo(Run, "EVALUATED")

    @property
    def set(self) -> dict[str, float]:
        """The classes in the set, each with its p-value."""
        inside = [class_node for class_node in self.may_be if self.may_be.get(class_node, "in_set")]
        return {class_node.name: float(self.may_be.get(class_node, "p")) for class_node in inside}

    @property
    def run(self) -> Run | None:
        """The run that evaluated the node, or None."""
        return next(iter(self.evaluated), None)


def node_class(label: str, key: str) -> Any:
    """Return the class of the nodes with `label`, found by their property `key`.

    >>> node_class("Account", "id").__primarylabel__
    'Account'
    """
    for name in (label, key):
        if not name or "\\" in name or "`" in name:
            raise ConfigError(
                found=f"the name {name!r}", needed="one that py2neo can't misread: no \\ and no `"
            )
    body = {"__primarylabel__": label, "__primarykey__": key, key: Property()}
    return type("EvaluatedNode", (EvaluatedNode,), body)
