-- Parked attempts and what became of them, look-ups, webhooks.

-- One row for each attempt that was ever parked, written and updated by the transaction that decides. It is what reports
-- count, so that no receipt has to be opened for them.
CREATE TABLE parkings (
    shard           smallint NOT NULL,
    call_id         uuid NOT NULL,
    number          integer NOT NULL,      -- of the attempt
    tenant          text NOT NULL REFERENCES tenants,
    permit_id       uuid NOT NULL,
    tool            text NOT NULL,
    unit            text NOT NULL,
    hold            bigint NOT NULL,
    parked_at_us    bigint NOT NULL,
    parked_seq      bigint NOT NULL,       -- of its CALL_UNCERTAIN
    escalated_at_us bigint,
    closed_at_us    bigint,                -- null: still parked
    closed_by       smallint,              -- Closer; a correction changes the end, not who closed it first
    state           smallint NOT NULL,     -- of the attempt: 3 while parked, then 4, 5 or 7
    charged         bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (shard, call_id, number),
    CONSTRAINT parkings_closed CHECK ((closed_at_us IS NULL) = (state = 3) AND (closed_at_us IS NULL) = (closed_by IS NULL)),
    CONSTRAINT parkings_state CHECK (state IN (3, 4, 5, 7))
);
CREATE INDEX parkings_by_time ON parkings (tenant, parked_at_us);
CREATE INDEX parkings_open ON parkings (tenant, parked_at_us) WHERE closed_at_us IS NULL;

-- What was parked before there was this table.
INSERT INTO parkings (shard, call_id, number, tenant, permit_id, tool, unit, hold, parked_at_us, parked_seq, state)
SELECT c.shard, c.call_id, c.number, p.tenant, c.permit_id, c.tool, '', c.hold, c.lease_end_us, c.state_seq, 3
FROM calls c JOIN permits p ON p.shard = c.shard AND p.permit_id = c.permit_id WHERE c.state = 3;

-- What look-ups answered. Erasable, kept to a number for each attempt, moves nothing.
CREATE TABLE look_ups (
    look_up_id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    shard           smallint NOT NULL,
    call_id         uuid NOT NULL,
    attempt_id      uuid NOT NULL,
    at_us           bigint NOT NULL,
    principal_id    uuid NOT NULL,
    kind            text NOT NULL,
    provider        text NOT NULL,
    finding         smallint NOT NULL CONSTRAINT look_ups_finding CHECK (finding BETWEEN 1 AND 5),
    detail          text NOT NULL,
    body            bytea NOT NULL,
    next_look_us    bigint NOT NULL        -- 0: no wish
);
CREATE INDEX look_ups_by_call ON look_ups (shard, call_id, look_up_id);

CREATE TABLE webhooks (
    webhook_id      uuid PRIMARY KEY,
    tenant          text NOT NULL REFERENCES tenants,
    url             text NOT NULL,
    sealed_secret   bytea NOT NULL,
    sealed_former   bytea,                 -- signs too until former_until_us
    former_until_us bigint,
    created_at_us   bigint NOT NULL,
    delivered       bigint NOT NULL DEFAULT 0,
    given_up        bigint NOT NULL DEFAULT 0,
    last_delivered_us bigint,
    last_error      text NOT NULL DEFAULT ''
);
CREATE INDEX webhooks_by_tenant ON webhooks (tenant);

-- Messages to be sent, one row for each webhook, written by the transaction that decides; a row goes once its message was
-- taken or given up. Order within a call is by `message`, which the deciding transaction's lock on the call's row gives.
CREATE TABLE outbox (
    message         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    webhook_id      uuid NOT NULL REFERENCES webhooks ON DELETE CASCADE,
    message_id      uuid NOT NULL,         -- webhook-id: the same for every try
    call_id         uuid NOT NULL,
    created_at_us   bigint NOT NULL,
    body            text NOT NULL,
    tries           integer NOT NULL DEFAULT 0,
    next_try_us     bigint NOT NULL        -- while it is being tried: when another replica may take it over
);
CREATE INDEX outbox_in_order ON outbox (webhook_id, call_id, message);
CREATE INDEX outbox_due ON outbox (webhook_id, next_try_us);
