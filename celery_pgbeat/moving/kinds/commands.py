"""Entries that are commands of a shell or of SQL: a Celery task of the mover's own runs them, and gets them as args."""

from __future__ import annotations

from dataclasses import replace

from celery_pgbeat.declare.columns import LONGEST_NAME
from celery_pgbeat.moving.answers import Answer, Refused
from celery_pgbeat.moving.kind import Request

NEEDS_TASK = "it is a command, not a Celery task: give --task, a task of yours that runs the command it gets"


def named(request: Request, answer: Answer) -> Answer:
    """Return the answer with the task that runs commands; a refusal if none was named, or if it is one already."""
    if isinstance(answer, Refused):
        return answer
    return Refused(answer.name, NEEDS_TASK) if request.task is None else replace(answer, task=request.task)


def name_of(command: str) -> str:
    """Return a command as the name of a row: on one line, and cut.

    Example:
        >>> name_of("/usr/bin/backup   --all")
        '/usr/bin/backup --all'
    """
    words = "".join(character if character.isprintable() else " " for character in command).split()
    return " ".join(words)[:LONGEST_NAME]
