-- +goose Up

-- One row per service: its good and bad minutes, and the quantile in force.
CREATE TABLE accounts (
    service  TEXT PRIMARY KEY,
    saved_at BIGINT NOT NULL, -- by the wall clock, as of portraits
    body     BYTEA NOT NULL
);

-- +goose Down
DROP TABLE accounts;
