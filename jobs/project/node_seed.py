"""What the random numbers of a version's nodes are keyed with: its seed key, or its seed.

A version's manifest has the digest of its seed key, which the audit chain seals with the manifest.
A version without one is from before there were seed keys: u and all that its runs draw by a node's
key come from `[model] seed`, as they always did. Split, holdout and training stay on seed and
project name for every version: who calibrates does not depend on the key.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ringfence.connector.errors import ConfigError, ModelError
from ringfence.connector.store.models import manifests
from ringfence.jobs.config.settings import Settings
from ringfence.jobs.project.seed_key import (
    KEY_FILE,
    MAKE_KEY,
    VARIABLE,
    SeedKey,
    SeedKeys,
    seed_keys,
    short_name,
)
from ringfence.jobs.project.workspace import Workspace

SEED_KEY = "seed_key"  # of a manifest: the digest of the version's seed key
BACK_UP = (
    "back it up and keep it secret: every machine that scores needs it, and whoever has it can "
    "compute every node's random number"
)


def node_seed(settings: Settings, manifest: Mapping[str, Any]) -> int:
    """Return what a version's u, and all that is drawn by a node's key in its runs, is keyed with.

    The one place that knows: its seed key, found by the digest in the manifest; `[model] seed` of
    a version from before there were seed keys.
    """
    digest = manifest.get(SEED_KEY)
    if digest is None:
        return int(manifest["seed"])
    keys = seed_keys(settings)
    key = keys.find(digest)
    if key is None:
        raise _lost_key(keys, str(manifest["version"]), digest)
    return key.value


def key_for_training(workspace: Workspace, new_key: bool = False) -> tuple[SeedKey, str]:
    """Return the key of the next version, and a sentence where it was made now.

    A key is made where the project has never had one, or where `new_key` asks for another: never
    in the place of one that is lost, since every version before it would be lost with it.
    """
    keys = seed_keys(workspace.settings)
    named = named_digests(manifests(workspace.store, workspace.project))
    newest = next(reversed(named.items()), None)
    key = keys.current()
    if new_key:
        return _another_key(keys, key, newest)
    if newest is not None and (key is None or key.digest != newest[1]):
        raise _lost_key(keys, *newest)
    if key is not None:
        return key, ""
    made = keys.write()
    return made, f"a seed key was made in {made.place}; {BACK_UP}"


def _another_key(
    keys: SeedKeys, key: SeedKey | None, newest: tuple[str, str] | None
) -> tuple[SeedKey, str]:
    """The configured key where it is another one, else a new one in the file."""
    if keys.configured is None:
        keys.set_aside()
        made = keys.write()
        return made, f"a new seed key was made in {made.place}; {BACK_UP}"
    if key is not None and (newest is None or key.digest != newest[1]):
        return key, f"the version has the new seed key of {VARIABLE}; {BACK_UP}"
    raise ConfigError(
        found=f"--new-seed-key, but {VARIABLE} holds the key of the versions so far",
        needed="another key in the variable, or none: then one is made in a file",
        next_step=MAKE_KEY,
    )


def named_digests(recorded: Sequence[str]) -> dict[str, str]:
    """Return the digests of the seed keys that manifests name, by version, oldest first."""
    every = (json.loads(manifest) for manifest in recorded)
    return {
        str(manifest["version"]): str(manifest[SEED_KEY])
        for manifest in every
        if manifest.get(SEED_KEY) is not None
    }


def missing_keys(settings: Settings, recorded: Sequence[str]) -> dict[str, str]:
    """Return the digests of keys that are not here, by version."""
    keys = seed_keys(settings)
    named = named_digests(recorded)
    return {version: digest for version, digest in named.items() if keys.find(digest) is None}


def describe_missing_keys(settings: Settings, recorded: Sequence[str]) -> str:
    """Say which versions' u can't be recomputed here, and how to give the key; empty where all can.

    For whoever reads a record without being trusted with the key: all else can be checked.
    """
    try:
        missing = missing_keys(settings, recorded)
    except ConfigError as error:
        return f"the random number u of nodes can't be recomputed here: {error.found}"
    except (KeyError, TypeError, ValueError):  # someone edited a manifest: `verify` says which
        return "the random number u of nodes can't be recomputed: a manifest can't be read"
    if not missing:
        return ""
    names = ", ".join(sorted({short_name(digest) for digest in missing.values()}))
    return (
        f"the random number u of nodes can't be recomputed here for {', '.join(missing)}: the seed "
        f"key {names} is not here. Everything else was checked. Whoever is given the key can set "
        f"{VARIABLE}"
    )


def _lost_key(keys: SeedKeys, version: str, digest: str) -> ModelError:
    """The key of a version is not here, or another one is in its place."""
    current = keys.current()
    here = (
        f"{VARIABLE} is not set and {keys.file} is missing"
        if current is None
        else f"{current.place} holds another key ({current.name})"
    )
    return ModelError(
        found=f"the seed key of model {version} ({short_name(digest)}) is not here: {here}",
        needed="the key that the version was trained with; with another one every node would have "
        "another random number, and nobody could check the sets",
        next_step=f"restore {KEY_FILE} from a backup or set {VARIABLE}. Only where the key is lost "
        "for good: ringfence train --new-seed-key, which makes another key for new versions",
    )
