-- +goose Up

-- One row per cycle that decided something. Cycles that decided nothing new are merged into one row: until, last_revision and cycles say
-- how far it reaches. Times are microseconds since 1970.
CREATE TABLE records (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    leader_epoch  INTEGER NOT NULL,
    revision      INTEGER NOT NULL,
    at            INTEGER NOT NULL,
    until         INTEGER NOT NULL,
    last_revision INTEGER NOT NULL,
    cycles        INTEGER NOT NULL,
    digest        TEXT    NOT NULL,
    body          BLOB, -- NULL for merged cycles
    UNIQUE (leader_epoch, revision, at)
);
CREATE INDEX records_at ON records (at);

-- What each cycle did, or held back, by what it concerned.
CREATE TABLE subjects (
    record  INTEGER NOT NULL REFERENCES records (id) ON DELETE CASCADE,
    seq     INTEGER NOT NULL,
    kind    TEXT    NOT NULL,
    name    TEXT    NOT NULL,
    action  TEXT    NOT NULL,
    reason  TEXT    NOT NULL,
    message TEXT    NOT NULL,
    outcome TEXT    NOT NULL,
    PRIMARY KEY (record, seq)
) WITHOUT ROWID;
CREATE INDEX subjects_name ON subjects (kind, name, record);

-- One row per service.
CREATE TABLE portraits (
    service  TEXT PRIMARY KEY,
    saved_at INTEGER NOT NULL, -- by the wall clock: which service is gone does not depend on a virtual one
    body     BLOB    NOT NULL
) WITHOUT ROWID;

-- The newest tides of each service.
CREATE TABLE tides (
    service TEXT    NOT NULL,
    made    INTEGER NOT NULL,
    body    BLOB    NOT NULL,
    PRIMARY KEY (service, made)
) WITHOUT ROWID;

-- One row per cycle with the sizings of all services.
CREATE TABLE decisions (
    id   INTEGER PRIMARY KEY AUTOINCREMENT,
    at   INTEGER NOT NULL, -- the newest of its decisions
    body BLOB    NOT NULL
);
CREATE INDEX decisions_at ON decisions (at);

-- +goose Down
DROP TABLE decisions;
DROP TABLE tides;
DROP TABLE portraits;
DROP TABLE subjects;
DROP TABLE records;
