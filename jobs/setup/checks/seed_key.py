"""Whether the seed keys of the model versions are here, and nobody can guess the one in use."""

from __future__ import annotations

import json
from collections.abc import Iterator

from ringfence.connector.errors import RingfenceError
from ringfence.connector.store.engine import Store
from ringfence.connector.store.models import find_active_manifest, manifests
from ringfence.jobs.config.settings import Settings
from ringfence.jobs.project.node_seed import SEED_KEY, missing_keys, node_seed
from ringfence.jobs.project.seed_key import SeedKey, seed_keys, short_name
from ringfence.jobs.setup.finding import Finding, from_error

GUESSABLE = "who can guess it and choose the keys of nodes can choose their sets (SECURITY.md)"


def check_seed_key(store: Store, settings: Settings) -> Iterator[Finding]:
    """The key of the model in use is here and random; so are the keys of other versions."""
    try:
        recorded = find_active_manifest(store, settings.project)
        key = seed_keys(settings).current()
        if recorded is None:
            yield _before_training(key)
            return
        manifest = json.loads(recorded)
        if manifest.get(SEED_KEY) is None:
            yield Finding(
                "warning",
                f"u of {manifest['version']} comes from [model] seed: {GUESSABLE}",
                "ringfence train, which gives the next version a seed key",
            )
        else:
            node_seed(settings, manifest)
            yield from _check_key(seed_keys(settings).find(manifest[SEED_KEY]))
        for version, digest in missing_keys(settings, manifests(store, settings.project)).items():
            text = f"the seed key of {version} ({short_name(digest)}) is not here: it can't be used"
            yield Finding("warning", text, "restore seed.key from a backup or set its variable")
    except RingfenceError as error:
        yield from_error(error)


def _before_training(key: SeedKey | None) -> Finding:
    if key is None:
        return Finding("ok", "no seed key yet: the first training makes one")
    return next(_check_key(key))


def _check_key(key: SeedKey | None) -> Iterator[Finding]:
    if key is None:
        return
    if key.is_guessable:
        yield Finding(
            "warning",
            f"the seed key in {key.place} is guessable: {GUESSABLE}",
            "ringfence train --new-seed-key, for anything but a demo or a test",
        )
        return
    yield Finding(
        "ok",
        f"the seed key {key.name} is in {key.place}; every machine that scores needs the same one, "
        "and a backup has to hold it",
    )
