"""Checks that calibration nodes still have the classes that they are counted with.

A class that was corrected in the graph counts from then on; a node whose class was withdrawn, or
whose key another node has now, is out of the calibration. Each is recorded before it counts.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from ringfence.connector.mirror import Mirror
from ringfence.connector.neo4j.classes import node_states
from ringfence.connector.records import Correction, Member
from ringfence.connector.store import corrections
from ringfence.connector.store.models import find_active_manifest, manifest_of, members
from ringfence.connector.store.writer import Writer
from ringfence.jobs.project.workspace import Workspace


def correct_some(
    workspace: Workspace, writer: Writer, version: str, classes: Sequence[str], mirror: Mirror
) -> int:
    """Compare `check_nodes` calibration nodes with the graph, in turn; return how many changed."""
    known = _calibration(workspace, version)
    size = min(workspace.settings.engine.check_nodes, len(known))
    first = mirror.members_checked % max(len(known), 1)
    changed = _find(workspace, version, classes, (known + known)[first : first + size])
    corrections.record_corrections(writer, version, changed)
    mirror.members_checked = first + size
    return len(changed)


def correct_all(workspace: Workspace, writer: Writer, version: str | None = None) -> int:
    """Compare all calibration nodes of a model, by default of the one in use; count changes."""
    version, changed = find_all(workspace, version)
    corrections.record_corrections(writer, version, changed)
    return len(changed)


def find_all(workspace: Workspace, version: str | None = None) -> tuple[str, list[Correction]]:
    """Return the model and which of its calibration nodes differ in the graph."""
    recorded = (
        find_active_manifest(workspace.store, workspace.project)
        if version is None
        else manifest_of(workspace.store, workspace.project, version)
    )
    if recorded is None:
        return "", []
    manifest = json.loads(recorded)
    version = str(manifest["version"])
    known = _calibration(workspace, version)
    return version, _find(workspace, version, manifest["classes"], known)


def describe_corrections(workspace: Workspace, version: str, classes: Sequence[str]) -> list[str]:
    """Return a note on how many nodes have another class than at the training; or none."""
    newest = corrections.newest_corrections(workspace.store, workspace.project, version).values()
    out = sum(correction.label not in classes for correction in newest)
    if not newest:
        return []
    return [
        f"{len(newest) - out} calibration nodes count with a class that was corrected after the "
        f"training, {out} are left out (class withdrawn or unknown to the model, or key reused)"
    ]


def _find(
    workspace: Workspace, version: str, classes: Sequence[str], known: Sequence[Member]
) -> list[Correction]:
    so_far = corrections.newest_corrections(workspace.store, workspace.project, version)
    size, changed = workspace.settings.engine.read_rows, []
    for start in range(0, len(known), size):
        part = known[start : start + size]
        now = node_states(workspace.graph, workspace.mapping, [member.node_key for member in part])
        changed += corrections.find_corrections(part, so_far, now, classes)
    return changed


def _calibration(workspace: Workspace, version: str) -> list[Member]:
    known = members(workspace.store, workspace.project, version, "calibration")
    return sorted(known, key=lambda member: member.node_key)
