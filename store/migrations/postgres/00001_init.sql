-- +goose Up

-- One row per cycle that decided something. Cycles that decided nothing new are merged into one row: until, last_revision and cycles say
-- how far it reaches. Times are microseconds since 1970.
CREATE TABLE records (
    id            BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    leader_epoch  BIGINT NOT NULL,
    revision      BIGINT NOT NULL,
    at            BIGINT NOT NULL,
    until         BIGINT NOT NULL,
    last_revision BIGINT NOT NULL,
    cycles        BIGINT NOT NULL,
    digest        TEXT    NOT NULL,
    body          BYTEA, -- NULL for merged cycles
    UNIQUE (leader_epoch, revision, at)
);
CREATE INDEX records_at ON records (at);

-- What each cycle did, or held back, by what it concerned.
CREATE TABLE subjects (
    record  BIGINT NOT NULL REFERENCES records (id) ON DELETE CASCADE,
    seq     BIGINT NOT NULL,
    kind    TEXT    NOT NULL,
    name    TEXT    NOT NULL,
    action  TEXT    NOT NULL,
    reason  TEXT    NOT NULL,
    message TEXT    NOT NULL,
    outcome TEXT    NOT NULL,
    PRIMARY KEY (record, seq)
);
CREATE INDEX subjects_name ON subjects (kind, name, record);

-- One row per service.
CREATE TABLE portraits (
    service  TEXT PRIMARY KEY,
    saved_at BIGINT NOT NULL, -- by the wall clock: which service is gone does not depend on a virtual one
    body     BYTEA   NOT NULL
);

-- The newest tides of each service.
CREATE TABLE tides (
    service TEXT    NOT NULL,
    made    BIGINT NOT NULL,
    body    BYTEA   NOT NULL,
    PRIMARY KEY (service, made)
);

-- One row per cycle with the sizings of all services.
CREATE TABLE decisions (
    id   BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at   BIGINT NOT NULL, -- the newest of its decisions
    body BYTEA   NOT NULL
);
CREATE INDEX decisions_at ON decisions (at);

-- +goose Down
DROP TABLE decisions;
DROP TABLE tides;
DROP TABLE portraits;
DROP TABLE subjects;
DROP TABLE records;
