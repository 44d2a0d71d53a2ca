"""The roles of the schema as a script, for database administrators: owner, beat, worker, author, reader, person."""

from __future__ import annotations

from importlib import resources

from celery_pgbeat.errors import InvalidSetting
from celery_pgbeat.postgres.statements import checked_schema, rendered

ROLES = ("owner", "beat", "worker", "author", "reader", "person")
LONGEST_NAME = 63  # bytes; Postgres cuts the rest off, and then two roles would be one


def role_names(schema: str) -> dict[str, str]:
    """Return the name of each role; it begins with the schema's name.

    Raises:
        InvalidSetting: the schema's name cannot be used in SQL, or is too long for that.

    Example:
        >>> role_names("pgbeat")["author"]
        'pgbeat_author'
    """
    names = {role: f"{checked_schema(schema)}_{role}" for role in ROLES}
    if max(map(len, names.values())) > LONGEST_NAME:
        longest = LONGEST_NAME - max(map(len, ROLES)) - 1
        raise InvalidSetting(
            f"pgbeat_schema is {schema!r}, with {len(schema)} characters: the names of the roles begin with it, so it "
            f"can have {longest} at most"
        )
    return names


def roles_script(schema: str) -> str:
    """Return the SQL that makes the roles of an existing schema, and grants each what it needs and no more.

    Raises:
        InvalidSetting: the schema's name cannot be used in SQL, or is too long.
    """
    text = (resources.files("celery_pgbeat.postgres") / "roles.sql").read_text(encoding="utf-8")
    names = role_names(schema)
    text = rendered(text, schema)
    for role, name in names.items():
        text = text.replace(f"{{{role}}}", f'"{name}"')
    return text.replace("{names}", f"array[{', '.join(repr(name) for name in names.values())}]")
