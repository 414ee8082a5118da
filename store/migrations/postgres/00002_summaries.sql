-- +goose Up

-- One row per service: what its last days would have been under Auto.
CREATE TABLE summaries (
    service  TEXT PRIMARY KEY,
    saved_at BIGINT NOT NULL, -- by the wall clock, as of portraits
    body     BYTEA NOT NULL
);

-- +goose Down
DROP TABLE summaries;
