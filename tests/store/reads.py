"""What a statement has read: for those inside functions, whose plans nobody sees."""

from __future__ import annotations

from typing import Any

from tests.store.session import Session

LOOK = "select * from pgbeat.look(15, '{}')"


def read_by(session: Session, statement: str = LOOK) -> dict[str, Any]:
    """Return which tables it has read as a whole, how often, and how many rows it has fetched by an index."""
    session.rows("begin")
    session.rows(statement)
    tables = session.rows(
        "select relname, seq_scan, idx_tup_fetch from pg_stat_xact_user_tables where schemaname = 'pgbeat'"
    )
    session.rows("rollback")
    return {
        "as a whole": {table["relname"]: table["seq_scan"] for table in tables if table["seq_scan"]},
        "rows": sum(table["idx_tup_fetch"] or 0 for table in tables),
    }
