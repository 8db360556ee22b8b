"""The schema of a history, step by step; a store at version n has seen the first n steps.

Rule: a step that was released is never changed, only followed by another. Ids and JSON are kept as
bytes: they may hold NUL and halves of surrogate pairs, which no text column takes.

    conversations   one row each; ``turns`` is how many it has, and so the next sequence number
    commits         what was stored together, under (conversation, run, sequence): a retry is found
    turns           one row each, gapless; ``digest`` tells damage that the database does not see
                    (and ``settled_digest`` that of a record)
    calls           one row per client call; ``answered`` is the turn with its result; without one,
                    ``settled`` is what its handler gave already, and without that it is unresolved
"""

from __future__ import annotations

__all__ = ["POSTGRES", "SQLITE"]

SQLITE: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE streamnorm_conversations (
            key INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, system BLOB, service_id BLOB,
            turns INTEGER NOT NULL DEFAULT 0)""",
        """CREATE TABLE streamnorm_commits (
            conversation INTEGER NOT NULL REFERENCES streamnorm_conversations ON DELETE CASCADE,
            run BLOB NOT NULL, sequence INTEGER NOT NULL, first INTEGER NOT NULL,
            count INTEGER NOT NULL, digest BLOB NOT NULL,
            PRIMARY KEY (conversation, run, sequence))""",
        """CREATE TABLE streamnorm_turns (
            conversation INTEGER NOT NULL REFERENCES streamnorm_conversations ON DELETE CASCADE,
            seq INTEGER NOT NULL, body BLOB NOT NULL, digest BLOB NOT NULL,
            PRIMARY KEY (conversation, seq))""",
        """CREATE TABLE streamnorm_calls (
            conversation INTEGER NOT NULL REFERENCES streamnorm_conversations ON DELETE CASCADE,
            seq INTEGER NOT NULL, position INTEGER NOT NULL, id BLOB NOT NULL, name BLOB NOT NULL,
            checksum TEXT NOT NULL, answered INTEGER,
            PRIMARY KEY (conversation, seq, position))""",
        "CREATE INDEX streamnorm_calls_by_id ON streamnorm_calls (conversation, id, seq)",
    ),
    ("ALTER TABLE streamnorm_calls ADD COLUMN settled BLOB",),
    ("ALTER TABLE streamnorm_calls ADD COLUMN settled_digest BLOB",),
)

POSTGRES: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE streamnorm_conversations (
            key BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id BYTEA NOT NULL UNIQUE,
            system BYTEA, service_id BYTEA, turns BIGINT NOT NULL DEFAULT 0)""",
        """CREATE TABLE streamnorm_commits (
            conversation BIGINT NOT NULL REFERENCES streamnorm_conversations ON DELETE CASCADE,
            run BYTEA NOT NULL, sequence BIGINT NOT NULL, first BIGINT NOT NULL,
            count BIGINT NOT NULL, digest BYTEA NOT NULL,
            PRIMARY KEY (conversation, run, sequence))""",
        """CREATE TABLE streamnorm_turns (
            conversation BIGINT NOT NULL REFERENCES streamnorm_conversations ON DELETE CASCADE,
            seq BIGINT NOT NULL, body BYTEA NOT NULL, digest BYTEA NOT NULL,
            PRIMARY KEY (conversation, seq))""",
        """CREATE TABLE streamnorm_calls (
            conversation BIGINT NOT NULL REFERENCES streamnorm_conversations ON DELETE CASCADE,
            seq BIGINT NOT NULL, position BIGINT NOT NULL, id BYTEA NOT NULL, name BYTEA NOT NULL,
            checksum TEXT NOT NULL, answered BIGINT,
            PRIMARY KEY (conversation, seq, position))""",
        "CREATE INDEX streamnorm_calls_by_id ON streamnorm_calls (conversation, id, seq)",
    ),
    ("ALTER TABLE streamnorm_calls ADD COLUMN settled BYTEA",),
    ("ALTER TABLE streamnorm_calls ADD COLUMN settled_digest BYTEA",),
)
