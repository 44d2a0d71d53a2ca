"""What a statement has read: for those inside functions, whose plans nobody sees."""

from __future__ import annotations

from typing import Any

from tests.harness.session import Session

LOOK = "select * from pgbeat.look(15, '{}', '{}', '{}')"


def read_by(session: Session, statement: str = LOOK) -> dict[str, Any]:
    """Return which tables it has read as a whole, how often, and how many rows it has fetched by an index."""
    session.rows("begin")
    before = _counted(session)
    session.rows(statement)
    after = _counted(session)
    session.rows("rollback")
    scans = {table: scans - before[table][0] for table, (scans, _) in after.items()}
    return {
        "as a whole": {table: count for table, count in scans.items() if count},
        "rows": sum(fetched - before[table][1] for table, (_, fetched) in after.items()),
    }


def _counted(session: Session) -> dict[str, tuple[int, int]]:
    """Return for each table how often it was read as a whole and how many rows by an index, of late."""
    rows = session.rows(
        "select relname, seq_scan, coalesce(idx_tup_fetch, 0) as fetched from pg_stat_xact_user_tables "
        "where schemaname = 'pgbeat'"
    )
    return {row["relname"]: (row["seq_scan"], row["fetched"]) for row in rows}
