"""Where a project keeps its files below `[engine] folder`, and the migration of older folders.

    <folder>/projects/<project>/models, mirror, forward      one project's own (and forward-shadow)
    <folder>/projects/<project>/seed.key                     its seed key
    <folder>/projects/<project>/lists                        measurements of lists, for a page
    <folder>/audit.db, audit.key, neo4j                      shared by all that name this folder

Two projects whose configuration files are in one directory share the folder. A mirror holds which
nodes its project has evaluated, so each project needs its own.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from pathlib import Path

from ringfence.connector.files import make_private_folder
from ringfence.connector.store.engine import Store
from ringfence.connector.store.models import class_names

MAX_NAME_CHARS = 40
MODELS, MIRROR, TABLES = "models", "mirror", "forward"
SHADOW_TABLES = "forward-shadow"


def project_folder(folder: Path, project: str) -> Path:
    """Return the folder of a project's own files.

    The name is made safe for every file system; its hash tells names apart that look the same then.

    >>> project_folder(Path("f"), "fraud").name
    'fraud-f02b95ed0b00'
    >>> project_folder(Path("f"), "../a b/C").parent
    PosixPath('f/projects')
    """
    readable = re.sub(r"[^A-Za-z0-9_-]+", "_", project)[:MAX_NAME_CHARS].strip("_") or "project"
    digest = hashlib.sha256(project.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return folder / "projects" / f"{readable}-{digest}"


def move_old_files(folder: Path, project: str, store: Store) -> None:
    """Move files that the first version kept in `folder` itself to the project's own folder.

    The caller holds the lease. Models are the project's where SQL says so. A mirror moves along
    where every model beside it is the project's; one that several projects have used is thrown
    away, since it can't be told whose nodes it has as evaluated. The models move last: a move that
    was interrupted finds them still there, decides in the same way, and ends.
    """
    beside = _subfolders(folder / MODELS)
    if not beside:
        return
    models = [model for model in beside if model.name in class_names(store, project)]
    if not models:
        return
    place = project_folder(folder, project)
    make_private_folder(place / MODELS)
    for name in (MIRROR, TABLES):
        if len(models) == len(beside) and not (place / name).exists():
            _rename(folder / name, place / name)
        shutil.rmtree(folder / name, ignore_errors=True)
    for model in models:
        if not (place / MODELS / model.name).exists():
            _rename(model, place / MODELS / model.name)
    if not _subfolders(folder / MODELS):
        shutil.rmtree(folder / MODELS, ignore_errors=True)


def _rename(old: Path, new: Path) -> None:
    if old.exists():
        old.rename(new)


def _subfolders(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*") if path.is_dir())
