-- +goose Up

-- One row per service: its good and bad minutes, and the quantile in force.
CREATE TABLE accounts (
    service  TEXT PRIMARY KEY,
    saved_at INTEGER NOT NULL, -- by the wall clock, as of portraits
    body     BLOB NOT NULL
) WITHOUT ROWID;

-- +goose Down
DROP TABLE accounts;
