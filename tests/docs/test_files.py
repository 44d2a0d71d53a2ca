"""docs/files.md: its lines are imported and exported just so."""

from __future__ import annotations

from click.testing import CliRunner

from celery_pgbeat.cli import main
from tests.docs.pages import ROOT, blocks


def test_the_lines_of_the_page_are_imported_and_exported_as_they_are(migrated_database: str) -> None:
    (lines,) = [block.text for block in blocks(ROOT / "docs" / "files.md") if block.text.startswith("{")]
    imported = CliRunner().invoke(main, ["--url", migrated_database, "import", "-"], input=lines)

    assert (0, True) == (imported.exit_code, "3 added, 0 changed, 0 removed, 0 equal.\n" in imported.stdout)
    assert lines.strip() == CliRunner().invoke(main, ["--url", migrated_database, "export"]).stdout.strip()
