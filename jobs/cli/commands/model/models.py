"""`ringfence models`: list model versions with their states; show the card of one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ringfence.jobs.cli.comparison_table import print_comparison
from ringfence.jobs.cli.console import open_with_progress, print_report, say, say_sentence, table
from ringfence.jobs.cli.options import AsJson, Config

if TYPE_CHECKING:
    from ringfence.jobs.lifecycle.card import ModelCard
    from ringfence.jobs.lifecycle.versions import ModelVersions

__all__ = ["app"]

app = typer.Typer(rich_markup_mode=None, invoke_without_command=True)


@app.callback()
def models(context: typer.Context, config: Config = None, as_json: AsJson = False) -> None:
    """List model versions: state, data, accuracy, runs, coverage so far."""
    if context.invoked_subcommand is not None:
        context.obj = config
        return
    from ringfence.jobs.config.load import load
    from ringfence.jobs.lifecycle.versions import read_versions
    from ringfence.jobs.project.audit_store import open_audit

    settings = load(config)
    with open_audit(settings) as store:
        versions = read_versions(store, settings.project)
    print_report(versions, as_json, print_versions)


@app.command()
def show(
    context: typer.Context,
    version: Annotated[str, typer.Argument(help="A version, or how its name begins.")],
    format_: Annotated[
        str | None, typer.Option("--format", "-f", help="html, markdown or json.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write it to this file.")
    ] = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Show a version's card: data, accuracy, promise, its life so far, known limits."""
    from ringfence.connector.errors import ConfigError
    from ringfence.jobs.config.load import load
    from ringfence.jobs.lifecycle.card import read_card
    from ringfence.jobs.lifecycle.card_page import FORMATS
    from ringfence.jobs.project.audit_store import open_audit

    name = format_ or (output.suffix.lstrip(".").replace("md", "markdown") if output else None)
    if name is not None and name not in FORMATS:
        raise ConfigError(
            found=f"--format {name}" if format_ else f"--output {output}",
            needed=f"one of {', '.join(FORMATS)}",
        )
    settings = load(config or context.obj)
    with open_audit(settings) as store:
        card = read_card(store, settings.project, version)
    if output is not None:
        output.write_text(FORMATS[name or "html"](card), encoding="utf-8")
        say(f"Wrote {output}")
    elif name is not None:
        typer.echo(FORMATS[name](card), nl=False)
    else:
        print_report(card, as_json, print_card)


@app.command()
def compare(
    context: typer.Context,
    version: Annotated[str, typer.Argument(help="A version, or how its name begins.")],
    against: Annotated[
        str | None, typer.Argument(help="Another one; without it the active version.")
    ] = None,
    stored: Annotated[
        bool, typer.Option("--stored", help="Show the newest on record; compute nothing.")
    ] = False,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Compare two versions, and both with trees and largest class, on the holdout as it is now."""
    if stored:
        from ringfence.jobs.config.load import load
        from ringfence.jobs.lifecycle.versions import stored_report
        from ringfence.jobs.project.audit_store import open_audit

        settings = load(config or context.obj)
        with open_audit(settings) as store:
            report = stored_report(store, settings.project, version, against)
    else:
        from ringfence.connector.extras import require_imports

        require_imports("train", "to compare versions with boosted trees")
        with open_with_progress(config or context.obj, "comparing") as (workspace, progress):
            from ringfence.jobs.training.comparison import run_comparison

            report = run_comparison(workspace, version, against, progress)
    print_report(report, as_json, print_comparison)


def print_versions(versions: ModelVersions) -> None:
    """Show the versions, newest first, and how the one in use came there."""
    if not versions.versions:
        say(f"Project {versions.project} has no model yet. Next: ringfence train.")
        return
    rows = [
        (
            version.version,
            version.state,
            f"{version.train:,}/{version.validation:,}/{version.calibration:,}/{version.holdout:,}",
            version.on_holdout or version.accuracy,
            version.runs,
            version.known,
            None if version.coverage is None else f"{100 * version.coverage:.1f} %",
        )
        for version in reversed(versions.versions)
    ]
    columns = ("version", "state", "data", "accuracy", "runs", "known", "coverage")
    table("Models (data: train/validation/calibration/holdout)", columns, rows)
    for version in versions.versions:
        if version.state == "active":
            say(f"Active: {version.version}, since {version.in_use_since}: {version.reason}.")
    for warning in versions.warnings:
        say_sentence(warning)
    for version in versions.versions:
        if version.shadow is not None:
            say(f"Shadow {version.version}: {version.shadow.words}.")


def print_card(card: ModelCard) -> None:
    """Show the card, one table per section."""
    for section in card.sections:
        table(section.title, ("what", "value"), section.rows)
