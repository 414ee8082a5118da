-- +goose Up

-- One row per step of a recall, pool and type of job: how long it took lately.
CREATE TABLE paces (
    service  TEXT PRIMARY KEY, -- the key of the pace; named as in the tables of one row a service
    saved_at BIGINT NOT NULL, -- by the wall clock, as of portraits
    body     BYTEA NOT NULL
);

-- +goose Down
DROP TABLE paces;
