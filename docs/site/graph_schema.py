"""What ringfence writes into a graph, with the meaning of every property.

A test compares this with a graph that was scored and audited (tests/docs/test_cookbook.py): a
label, type or property that is missing here, or that no run writes, makes it fail.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Part:
    """A label or a relationship type: how it looks in Cypher, what it is for, its properties."""

    name: str
    pattern: str
    text: str
    properties: dict[str, str] = field(default_factory=dict)


NODES = (
    Part(
        "RingfenceRun",
        "(:RingfenceRun)",
        "One scoring run.",
        {
            "id": "`project/seq`, unique",
            "project": "name of the project",
            "seq": "number of the run, from 1",
            "at": "when it was decided",
            "rule": "`auto`, `NodeEx` or `EdgeEx`",
            "alpha": "the first configured miscoverage",
            "level": "what p-values were compared with; absent where classes have their own",
            "promise": "`marginal`, `class` or `group`",
            "threshold": "the threshold in force; absent where it is -infinity or one of several",
            "calibration": "number of calibration nodes",
            "model": "version of the model",
        },
    ),
    Part(
        "RingfenceClass",
        "(:RingfenceClass)",
        "A class that sets point to; one per project and name.",
        {"project": "name of the project", "name": "the class as your graph spells it"},
    ),
    Part(
        "CoverageAudit",
        "(:CoverageAudit)",
        "The coverage of one slice at one run, as the SQL table `coverage` holds it.",
        {
            "id": "project, run, slice and name, unique",
            "project": "name of the project",
            "seq": "the run that it is about, or up to which it counts",
            "at": "when it was audited",
            "audited_ns": "the same in nanoseconds since 1970",
            "slice": "`run`, `total`, `window`, `class` or `group`",
            "name": "which class or group; empty for all nodes",
            "model": "version of the model",
            "alpha": "promised miscoverage",
            "evaluated": "nodes that got a set",
            "known": "those whose class became known since",
            "covered": "known nodes whose set held the class",
            "covered_naive": "the same with the threshold of calibrating once and never again",
            "unseen": "known nodes of a class that the model never saw",
            "coverage": "covered / known; absent where nothing is known",
            "low": "low end of the usual band",
            "high": "high end of the usual band",
            "p_value": "p-value of one look",
            "anytime_low": "the anytime bound",
            "anytime_p": "p-value of all looks together",
            "mean_size": "average number of classes in a set",
            "mean_size_naive": "the same of the naive sets",
            "mean_degree": "average number of neighbours",
            "singletons": "sets with one class",
            "singletons_known": "those of known class",
            "singleton_hits": "those that were right",
            "empty": "sets with no class",
            "full": "sets with all classes",
            "bias": "largest standardised difference between known and unknown nodes",
            "bias_words": "the same as a sentence",
            "exact": "whether the law of the band is exact",
            "raised_by": "which bound a verdict rests on; `unsettled`: it waits",
            "verdict": "`kept`, `watch`, `broken`, `not enough known yet` or `no verdict`",
            "words": "the verdict as a sentence",
            "first_alpha": "whether the row is about a run's first alpha",
            "own_promise": "whether this class or group has a promise of its own",
        },
    ),
    Part(
        "RingfenceFence",
        "(:RingfenceFence)",
        "One per project: keeps a process that slept through its lease from writing, and remembers "
        "the newest entry of the audit chain.",
        {
            "project": "name of the project",
            "token": "highest lease token that has written",
            "asked": "lease token of the last writer that asked",
            "chain_n": "number of the chain's entry that the graph remembers",
            "chain_hash": "its hash",
            "public_key": "the public key that audit packs are signed with, as hex",
        },
    ),
    Part(
        "RingfenceMigration",
        "(:RingfenceMigration)",
        "A migration file that was applied.",
        {
            "number": "its number, unique",
            "name": "its name",
            "checksum": "SHA-256 of its text",
            "at": "when it was applied",
        },
    ),
)

RELATIONSHIPS = (
    Part(
        "EVALUATED",
        "(n)-[:EVALUATED]->(:RingfenceRun)",
        "The evaluation of a node, once ever: `key` is unique.",
        {
            "key": "project and typed key of the node, unique",
            "size": "number of classes in the set at the first alpha",
            "alpha": "the run's first alpha",
            "level": "what p-values were compared with; absent where classes have their own",
            "band": "degree band, class or group that calibrated it; absent where there is none",
            "sampled": "true at nodes of the audit sample; absent at all others",
            "lists": "names of the lists (`[[lists]]`) that it is on; absent at nodes on none",
        },
    ),
    Part(
        "MAY_BE",
        "(n)-[:MAY_BE]->(:RingfenceClass)",
        "A class that the node may be: in the set, or above the lowest level of the run.",
        {"p": "conformal p-value of the class", "in_set": "whether it is in the set"},
    ),
    Part("AUDITS", "(:CoverageAudit)-[:AUDITS]->(:RingfenceRun)", "Which run a row is about."),
)
