"""The fixtures themselves: each test gets an empty database, and the servers are real."""

from sqlalchemy import create_engine, inspect, text


def test_a_graph_left_full_by_one_test(graph):
    graph.run("CREATE CONSTRAINT only FOR (n:Left) REQUIRE n.id IS UNIQUE")
    graph.run("CREATE INDEX other FOR (n:Left) ON (n.at)")
    graph.run("UNWIND range(1, 25000) AS i CREATE (n:Left {id: i})-[:NEXT]->(:Other)")
    assert graph.run("MATCH (n) RETURN count(n) AS n") == [{"n": 50000}]


def test_is_empty_for_the_next(graph):
    assert graph.run("MATCH (n) RETURN count(n) AS n") == [{"n": 0}]
    assert graph.run("SHOW CONSTRAINTS") == []
    assert [row["type"] for row in graph.run("SHOW INDEXES")] == ["LOOKUP", "LOOKUP"]


def test_a_sql_database_starts_empty_and_can_be_filled(sql_url):
    engine = create_engine(sql_url)
    assert inspect(engine).get_table_names() == []
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE t (x INTEGER)"))
        connection.execute(text("INSERT INTO t VALUES (1)"))
    assert inspect(engine).get_table_names() == ["t"]
    engine.dispose()


def test_and_the_next_one_knows_nothing_of_it(sql_url):
    engine = create_engine(sql_url)
    assert inspect(engine).get_table_names() == []
    engine.dispose()
