"""From the JSON of the benchmarks to docs/benchmarks/README.md and its plots.

python -m benchmarks.report
"""

from __future__ import annotations

import json
from typing import Any

from benchmarks.measuring import RESULTS
from benchmarks.report_texts import (
    COLUMNS,
    COMMANDS,
    IN_PER_CENT,
    NAMES,
    NOTES,
    PART_COLUMNS,
    PART_TITLES,
    SHARES,
    SUMMARY,
    TITLES,
)


def load(name: str) -> dict[str, Any] | None:
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def table(rows: list[dict[str, Any]], columns: dict[str, str]) -> str:
    lines = ["| " + " | ".join(columns.values()) + " |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(cell(row.get(name)) for name in columns) + " |" for row in rows]
    return "\n".join(lines)


def tables(name: str, rows: list[dict[str, Any]]) -> list[str]:
    """The table of a benchmark; one for each of its parts where these have columns of their own."""
    if name not in PART_COLUMNS:
        return [table(rows, COLUMNS[name])]
    made = []
    for part, columns in PART_COLUMNS[name].items():
        of_part = [row for row in rows if row["part"] == part]
        made += [f"**{PART_TITLES[part]}**", table(of_part, columns)] if of_part else []
    return made


def cell(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        if value and abs(value) < 1e-4:
            return f"{value:.0e}"
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def in_per_cent(row: dict[str, Any]) -> dict[str, Any]:
    return {
        name: round(100 * value, 1) if name in SHARES and value is not None else value
        for name, value in row.items()
    }


def section(name: str, body: dict[str, Any]) -> str:
    machine = body["machine"]
    rows = [in_per_cent(row) for row in body["rows"]] if name in IN_PER_CENT else body["rows"]
    parts = [f"## {TITLES[name]}", NOTES[name], *tables(name, rows)]
    if body.get("summary"):
        parts.append(table([in_per_cent(row) for row in body["summary"]], SUMMARY))
    if body.get("note"):
        parts.append(f"Note: {body['note']}.")
    if body.get("curve"):
        parts += ["1,000 new nodes, uniform attachment, graphs of growing size:",
                  table(body["curve"], COLUMNS["incremental"])]  # fmt: skip
    if body.get("exponents"):
        fitted = ", ".join(f"{key} {value}" for key, value in body["exponents"].items())
        parts.append(f"Powers of the number of nodes, fitted on the three largest: {fitted}.")
    if body.get("profile"):
        parts.append("What importing spends, ms on the clock by package:")
        parts.append("\n".join(describe_imports(body["profile"])))
    plot = f"![{TITLES[name]}]({name}.png)" if draw(name, body) else ""
    parts += [plot] if plot else []
    command = f"`python -m benchmarks.{name}`"
    parts.append(
        f"{machine['cores']} cores, load {machine['load']}, one thread reads "
        f"{machine['bandwidth_gb_per_s']} GB/s, {machine['at']}. {COMMANDS.get(name, command)}."
    )
    return "\n\n".join(parts)


def describe_imports(profile: dict[str, Any]) -> list[str]:
    """Say what each command spends on imports; older results have one profile, of scoring."""
    if not isinstance(next(iter(profile.values())), dict):
        profile = {"scoring": profile}
    return [
        f"- {name}: " + ", ".join(f"{package} {ms:g}" for package, ms in spent.items())
        for name, spent in profile.items()
    ]


def draw(name: str, body: dict[str, Any]) -> bool:
    """Draw the benchmark's plot where there is one and matplotlib is installed."""
    if name in {"drift", "drift_flights", "drift_typed"}:
        return draw_modes(name, body)
    if name == "efficiency":
        return draw_sizes(name, body)
    if name == "late_classes":  # drawn with the lives, which are not kept
        return (RESULTS / f"{name}.png").exists()
    curves = CURVES[name](body) if name in CURVES else {}
    if not curves:
        return False
    try:
        import matplotlib
    except ImportError:
        return (RESULTS / f"{name}.png").exists()
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4.2))
    colours: dict[str, str] = {}
    for label, (x, y, style) in curves.items():
        colour = colours.setdefault(label.partition(",")[0], f"C{len(colours)}")
        axes.plot(x, y, style, color=colour, label=label, marker="o", markersize=3)
    axes.set(xscale="log", xlabel=AXES[name][0], ylabel=AXES[name][1])
    if name == "run":  # flat lines: how flat is seen from zero
        axes.set_ylim(bottom=0)
    else:
        axes.set_yscale("log")
    axes.grid(visible=True, which="major", alpha=0.3)
    axes.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    figure.tight_layout()
    figure.savefig(RESULTS / f"{name}.png", dpi=130)
    pyplot.close(figure)
    return True


def draw_modes(name: str, body: dict[str, Any]) -> bool:
    """Draw coverage by way to calibrate, one panel per world."""
    try:
        import matplotlib
    except ImportError:
        return (RESULTS / f"{name}.png").exists()
    matplotlib.use("Agg")
    from matplotlib import pyplot

    of = [row.get("world") or f"trained on {row['trained']} flights" for row in body["rows"]]
    worlds = list(dict.fromkeys(of))
    names = list(dict.fromkeys(row["mode"] for row in body["rows"]))
    size = (2.6 * len(worlds) + 4, 0.28 * len(names) + 1.2)
    figure, [panels] = pyplot.subplots(1, len(worlds), figsize=size, sharey=True, squeeze=False)
    for axes, world in zip(panels, worlds, strict=True):
        own = {row["mode"]: row for row, its in zip(body["rows"], of, strict=True) if its == world}
        y = [names.index(mode) for mode in own]
        axes.plot([100 * row["worst"] for row in own.values()], y, "|", color="C1", label="worst")
        axes.plot([100 * row["covered"] for row in own.values()], y, "o", color="C0", label="all")
        axes.axvline(90, color="black", linewidth=0.8)
        axes.set_title(world, fontsize=8)
        axes.set_xlabel("covered %", fontsize=8)
        axes.set_yticks(range(len(names)), names, fontsize=7)
        axes.grid(visible=True, alpha=0.3)
    panels[0].invert_yaxis()
    panels[-1].legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(RESULTS / f"{name}.png", dpi=110, bbox_inches="tight")
    pyplot.close(figure)
    return True


def draw_sizes(name: str, body: dict[str, Any]) -> bool:
    """Draw set sizes against APS within bands, and worst classes, one row per data set."""
    try:
        import matplotlib
    except ImportError:
        return (RESULTS / f"{name}.png").exists()
    matplotlib.use("Agg")
    from matplotlib import pyplot

    data = list(dict.fromkeys(row["data"] for row in body["rows"]))
    kinds: dict[str, list[dict[str, Any]]] = {}
    for row in body["rows"]:
        kind = "chosen" if row["score"].startswith("auto") else row["score"]
        kinds.setdefault(f"{row['rule']}, {kind}", []).append(row)
    figure, panels = pyplot.subplots(1, 2, figsize=(10, 4.2), sharey=True)
    for number, (label, rows) in enumerate(kinds.items()):
        y, chosen = [data.index(row["data"]) for row in rows], label.endswith("chosen")
        colour = "black" if chosen else f"C{number % 10}"
        shape = "|" if chosen else {"auto": "o", "NodeEx": "s"}.get(rows[0]["rule"], "x")
        for axes, column in zip(panels, ("against APS", "worst class"), strict=True):
            x = [100 * row[column] for row in rows]
            size = 14 if chosen else 5
            axes.plot(x, y, shape, color=colour, label=label, markersize=size, alpha=0.8)
    panels[0].set_yticks(range(len(data)), data, fontsize=8)
    panels[0].invert_yaxis()
    panels[0].set_xlabel("set size against APS within bands, %")
    panels[1].set_xlabel("coverage of the worst class, %")
    for axes in panels:
        axes.grid(visible=True, alpha=0.3)
    panels[1].legend(fontsize=7, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    figure.tight_layout()
    figure.savefig(RESULTS / f"{name}.png", dpi=110)
    pyplot.close(figure)
    return True


def _incremental(body: dict[str, Any]) -> dict[str, Any]:
    rows = [*(body.get("curve") or []), *(row for row in body["rows"] if on_the_curve(row))]
    curves = {}
    for network in dict.fromkeys(row["network"] for row in rows):
        own = [row for row in rows if row["network"] == network]
        x = [row["nodes"] for row in own]
        curves[f"{network}, full"] = (x, [row["full_seconds"] for row in own], "--")
        curves[f"{network}, 1,000 new"] = (x, [row["seconds"] for row in own], "-")
    return curves


def on_the_curve(row: dict[str, Any]) -> bool:
    """The million's row of the table that continues the curve."""
    large = row["nodes"] >= 1_000_000 and row["attachment"] == "uniform"
    return large and row["new"] == 1_000 and row["network"] != "appnp"


def _scale(body: dict[str, Any]) -> dict[str, Any]:
    x = [row["nodes"] for row in body["rows"]]
    lines = {"full pass": "full_seconds", "run with 1,000 new": "run_seconds",
             "forward of the run": "run_forward"}  # fmt: skip
    return {label: (x, [row[key] for row in body["rows"]], "-") for label, key in lines.items()}


def _run(body: dict[str, Any]) -> dict[str, Any]:
    first = body["rows"][0]
    own = [r for r in body["rows"] if all(r[k] == first[k] for k in ("network", "score"))]
    if len(own) < 2:
        return {}
    x = [row["nodes"] for row in own]
    lines = {"whole run": "seconds", "read": "read (s)", "write": "write graph (s)",
             "forward": "forward (s)", "decide in SQL": "decide (s)",
             "save mirror": "save mirror (s)"}  # fmt: skip
    curves = {label: (x, [row[key] for row in own], "-") for label, key in lines.items()}
    both = [row["own_cpu"] + row["server_cpu"] for row in own]
    curves["ringfence + Neo4j, CPU"] = (x, both, "--")
    curves["ringfence, CPU"] = (x, [row["own_cpu"] for row in own], "--")
    return curves


CURVES = {"incremental": _incremental, "run": _run, "scale": _scale}
AXES = {
    name: ("nodes in the graph", "seconds" if name == "run" else "CPU seconds") for name in CURVES
}


def main() -> None:
    found = [(name, body) for name in NAMES if (body := load(name))]
    text = "# Benchmarks\n\nWritten by `make bench`; ratios travel, seconds don't.\n\n"
    text += "\n\n".join(section(name, body) for name, body in found) + "\n"
    (RESULTS / "README.md").write_text(text, encoding="utf-8")
    print(f"wrote {RESULTS / 'README.md'}: {', '.join(name for name, _ in found)}")


if __name__ == "__main__":
    main()
