-- +goose Up

-- One row per service that names a calendar: what its days did to it.
CREATE TABLE days (
    service  TEXT PRIMARY KEY,
    saved_at BIGINT NOT NULL, -- by the wall clock, as of portraits
    body     BYTEA NOT NULL
);

-- +goose Down
DROP TABLE days;
