"""`[conformal]`, the promise of the sets, and `[[lists]]`, those of lists."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field, field_validator, model_validator

from ringfence.connector.list_terms import ListTerms
from ringfence.jobs.config.names import (
    CalibrationSetName,
    PromiseName,
    RuleName,
    ScopeName,
    ScoreName,
)
from ringfence.jobs.config.section import Fraction01, Section

if TYPE_CHECKING:
    from ringfence.models.promise.base import PromiseKind

LevelRule = Literal["today", "then"]
WeightKind = Literal["none", "shift"]
Mode = Literal["paper", "living", "per class"]
MODES: dict[str, dict[str, str | bool]] = {
    "paper": {"promise": "marginal", "calibration_set": "frozen", "adapt": False},
    "living": {"promise": "marginal", "calibration_set": "window", "adapt": True},
    "per class": {"promise": "class", "calibration_set": "window", "adapt": True},
}
"""What each mode sets, where the file does not."""

MIN_WINDOW_NODES = 500


class ConformalSettings(Section):
    """The promise. A model keeps the rule, score and calibration that it was trained with."""

    alpha: float | list[float] = Field(
        0.1,
        description="Miscoverage: the share of nodes that sets may miss; `calibration_set`, "
        "`adapt` and `promise` say of which nodes, and under which condition. A list "
        "gives a set and coverage rows for each; sets in the graph are those of the first.",
    )
    mode: Mode | None = Field(
        None,
        description="A name for `promise`, `calibration_set` and `adapt`; each of them that is set "
        "beside it wins. `paper`: calibration nodes of the training, a fixed level; `rule` and "
        "`score` stay as they are, so the paper's own sets need `rule` as well. `living`, as "
        "without a mode: the newest nodes of known class, a level that follows their misses. `per "
        "class`: as `living`, each class among its own nodes.",
    )
    rule: RuleName = Field(
        "auto",
        description="How calibration nodes count: `auto` compares nodes within bands of degree and "
        "needs no assumption about whether nodes or edges arrive in exchangeable order; NodeEx "
        "(nodes do) and EdgeEx (edges do) are the paper's.",
    )
    score: ScoreName | None = Field(
        None,
        description='Conformity score. Without it: DAPS with `rule = "auto"` (TPS under a '
        "promise per class), APS with NodeEx and EdgeEx. `auto` chooses at training, on validation "
        "nodes alone, the score with the smallest sets whose worst class is at most 3 points below "
        "APS's. DTPS is TPS averaged with the neighbours' as DAPS does with APS.",
    )
    diffusion: float = Field(
        0.5,
        ge=0,
        le=1,
        description="Diffused scores (DAPS, DTPS): weight of the neighbours' mean score.",
    )
    penalty: float = Field(0.01, ge=0, description="RAPS: what each rank beyond `k_reg` costs.")
    k_reg: int = Field(1, ge=0, description="RAPS: so many likeliest classes cost nothing.")
    score_without_bands: bool = Field(
        False,
        description="Allow scores that need bands of degree (all but APS and RAPS) with NodeEx or "
        "EdgeEx, where they were measured to fall several points below the promise where edges "
        "arrive in random order.",
    )
    promise: PromiseName = Field(
        "marginal",
        description="For whom 1 - alpha is promised: all nodes together, the nodes of each class "
        "(calibrated among nodes of that class alone), or those of each group (calibrated among "
        "nodes with the same value of the property `group`).",
    )
    classes: dict[str, Fraction01] = Field(
        default_factory=dict,
        description='Table `[conformal.classes]`, under `promise = "class"`: alpha of single '
        "classes, such as `mule = 0.05` (miss at most 5 % of mules); the others have `alpha`.",
    )
    group: str | None = Field(
        None,
        min_length=1,
        description='Under `promise = "group"`: the node property whose values are the groups, '
        "such as a region. It is read when a node is evaluated, and coverage is counted by it. "
        "Nodes without it are a group of their own; a group without calibration nodes, or with "
        "too few, gets full sets.",
    )
    calibration_set: CalibrationSetName = Field(
        "window",
        description="Which nodes calibrate: those of training for good (`frozen`, the paper's), "
        "all whose class became known since as well (`growing`), or the newest `window_nodes` of "
        "them (`window`). With EdgeEx, and not given: `frozen`.",
    )
    window_nodes: int = Field(
        5_000, ge=MIN_WINDOW_NODES, description="How many nodes a `window` holds."
    )
    adapt: bool = Field(
        True,
        description="Move the level with the misses of nodes whose class became known (adaptive "
        "conformal inference): promises the long run of known nodes instead of every node. With "
        '`calibration_set = "frozen"`, and not given: `false`, which keeps the paper\'s theorem.',
    )
    adapt_step: float = Field(0.05, gt=0, le=1, description="Step of the level per run.")
    adapt_rule: LevelRule = Field(
        "today",
        description="How late classes are dealt with. `today`: a run's nodes join and answer once "
        "every class has come at about its usual share, and its misses count at the level of that "
        "day, which can't swing however late classes come. `then`: as models trained before this "
        "setting keep it: one delay for all classes, and misses at the level that the run used, "
        "which swings where classes come more than about 1.5 / `adapt_step` runs late.",
    )
    weights: WeightKind = Field(
        "none",
        description="`shift` weighs calibration nodes by how much more often due nodes have their "
        "degree (at most 20 times), all nodes together in place of bands of degree: where classes "
        "became known by degree. Approximate; no weights mend a choice by the class itself.",
    )
    evaluate: Literal["arrival", "delay", "date", "random"] = Field(
        "arrival",
        description="When a node gets its set: in the first run that finds it, once it is "
        "`delay_hours` old (so that a neighbourhood can form), at `date`, or at a random age of "
        "its own, uniform from 0 to `delay_hours` by a keyed hash of its key (`random`). Fixed "
        "when a model is trained: a time chosen after seeing sets would void the promise.",
    )
    delay_hours: float = Field(
        0.0, ge=0, description="Age at which `delay` evaluates a node; `random`: the largest age."
    )
    date: datetime | None = Field(
        None, description="Moment of `date`, with time zone; nodes created later: on arrival."
    )
    drift_half_life_days: float | None = Field(
        None,
        gt=0,
        description="Let calibration nodes count less with age, half after this many days (Barber "
        "et al. 2023). Choose it before looking at scores; the guarantee then loses a bounded "
        "amount, and runs say so. Without it all ages count alike.",
    )
    edge_test_weight: Literal["one", "exact"] = Field(
        "one",
        description="EdgeEx only: weight of the evaluated node, the paper's 1 (safe) or its own "
        "1/degree (what the lemma proves).",
    )
    nonempty: bool = Field(
        False,
        description="Put the likeliest class into a set that would be empty, and say so. Can only "
        "raise coverage.",
    )

    @property
    def alphas(self) -> tuple[float, ...]:
        """Every configured alpha, the first one first."""
        return tuple(self.alpha) if isinstance(self.alpha, list) else (self.alpha,)

    @property
    def first_alpha(self) -> float:
        """The alpha of the sets that the graph shows."""
        return self.alphas[0]

    @field_validator("alpha")
    @classmethod
    def _alphas_are_shares(cls, alpha: float | list[float]) -> float | list[float]:
        given = alpha if isinstance(alpha, list) else [alpha]
        if not given or len(set(given)) < len(given) or not all(0 < share < 1 for share in given):
            raise ValueError(
                f"{alpha} is no share of nodes that may be missed; needed: a number between 0 and "
                "1, or a list of different ones"
            )
        return alpha

    @model_validator(mode="before")
    @classmethod
    def _mode_sets_the_rest(cls, values: Any) -> Any:
        """Write what the mode stands for beside it, as if the file had said so."""
        mode = values.get("mode") if isinstance(values, dict) else None
        if not isinstance(mode, str) or mode not in MODES:
            return values
        return {**MODES[mode], **values}

    @model_validator(mode="after")
    def _date_is_given(self) -> ConformalSettings:
        if self.evaluate == "random" and not self.delay_hours:
            raise ValueError('evaluate = "random" needs delay_hours, the largest age of a node')
        if self.evaluate == "date" and (self.date is None or self.date.tzinfo is None):
            raise ValueError('evaluate = "date" needs date with a time zone, 2027-01-31T00:00:00Z')
        return self

    @model_validator(mode="after")
    def _classes_have_a_promise(self) -> ConformalSettings:
        if self.classes and not _promise_kind(self.promise).per_class:
            raise ValueError(
                'alphas per class ([conformal.classes]) need promise = "class"; it is '
                f'"{self.promise}"'
            )
        return self

    @model_validator(mode="after")
    def _groups_have_a_property(self) -> ConformalSettings:
        if self.group is None and "promise" not in self.model_fields_set:
            return self
        if _promise_kind(self.promise).needs_group != (self.group is not None):
            raise ValueError(
                'promise = "group" and group = "<node property>" belong together; they are '
                f'promise = "{self.promise}" and group = {self.group!r}'
            )
        return self


def _promise_kind(name: str) -> PromiseKind:
    from ringfence.models.promise.registry import promise_named  # numpy: where one is configured

    return promise_named(name)


class ListSettings(Section):
    """Nodes of a class, or surely not of it, with the share of them that may be wrong."""

    model_config = ConfigDict(populate_by_name=True)

    name: str = Field(
        pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,39}$",
        description="Its name: letters, digits, `-` and `_`.",
    )
    class_: str | None = Field(
        None,
        alias="class",
        description="The list holds nodes of this class: whom to investigate.",
    )
    not_: str | None = Field(
        None,
        alias="not",
        description="Instead of `class`: the list holds nodes that are not of this class: whom to "
        "clear.",
    )
    may_be_wrong: Fraction01 = Field(
        description="Share of the listed nodes that may be wrong: 0.2 for one in five."
    )
    per: ScopeName = Field(
        "run",
        description="What the promise is about: `run` the list of each run, on average over runs, "
        "where an empty list counts as 0; `stream` the listed nodes of all runs together.",
    )

    @model_validator(mode="after")
    def _has_one_class(self) -> ListSettings:
        if (self.class_ is None) == (self.not_ is None):
            raise ValueError(
                f'the list {self.name!r} needs either class = "…" (nodes of the class) or '
                'not = "…" (nodes that are not of it)'
            )
        return self

    @property
    def terms(self) -> ListTerms:
        """What the list promises, as runs record it."""
        class_ = self.class_ if self.class_ is not None else str(self.not_)
        return ListTerms(self.name, class_, self.not_ is not None, self.may_be_wrong, self.per)


def _differ(lists: list[ListSettings]) -> list[ListSettings]:
    """Refuse two lists of one name, and two of which one would hold the other."""
    for place, later in enumerate(lists):
        for earlier in lists[:place]:
            if earlier.name == later.name:
                raise ValueError(f"two lists are called {later.name!r}: give one another name")
            if (earlier.class_, earlier.not_) == (later.class_, later.not_):
                what = later.class_ if later.class_ is not None else f"not {later.not_}"
                raise ValueError(
                    f"the lists {earlier.name!r} and {later.name!r} overlap: both hold nodes that "
                    f"are {what}, so one would hold the other; keep one of them"
                )
    return lists


Lists = Annotated[list[ListSettings], AfterValidator(_differ)]
"""All lists of a file."""


def terms_of(lists: Sequence[ListSettings]) -> list[ListTerms]:
    """Return the terms of the lists, in the order of the file."""
    return [settings.terms for settings in lists]
