"""Loops over rows, as most programs read a graph; a process of their own each.

    BENCH_PASSWORD=… python -m benchmarks.row_loops WAY URI

Prints seconds as JSON. Nothing here may import the driver before the plain way has shut its Rust
extension out.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable

QUERIES = {
    "nodes": "MATCH (n:Account) RETURN n.id, n.features, n.kind, n.created_at",
    "relationships": "MATCH (a:Account)-[:PAID]->(b:Account) RETURN a.id, b.id",
}
WAYS = ("plain driver", "driver with Rust", "py2neo")


def seconds(rows: Callable[[str], object]) -> dict[str, float]:
    found = {}
    for name, query in QUERIES.items():
        start = time.perf_counter()
        sum(1 for _ in rows(query))  # type: ignore[attr-defined]
        found[name] = time.perf_counter() - start
    return found


def by_driver(uri: str, password: str) -> dict[str, float]:
    from neo4j import GraphDatabase

    with GraphDatabase.driver(uri, auth=("neo4j", password)) as driver, driver.session() as session:
        return seconds(session.run)


def by_py2neo(uri: str, password: str) -> dict[str, float]:
    from py2neo import Graph

    return seconds(Graph(uri, auth=("neo4j", password)).run)


def has_rust() -> bool:
    from neo4j._codec.packstream import RUST_AVAILABLE

    return bool(RUST_AVAILABLE)


def main(way: str, uri: str) -> None:
    password = os.environ["BENCH_PASSWORD"]
    if way == "py2neo":
        print(json.dumps(by_py2neo(uri, password)))
        return
    if way == "plain driver":
        sys.modules["neo4j._rust"] = None  # type: ignore[assignment]
    if has_rust() != (way == "driver with Rust"):
        raise SystemExit(f"{way}: the Rust extension is {'on' if has_rust() else 'off'}")
    print(json.dumps(by_driver(uri, password)))


if __name__ == "__main__":
    main(*sys.argv[1:])
