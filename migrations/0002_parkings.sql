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

-- What was parked before there was this table. Unit and times stand in signed bytes (proto/tally/v1/receipt.proto), whose
-- fields are in the order of their numbers: in terms the unit (2) comes after the subject (1), which is never empty and has
-- at most 255 bytes; in a receipt the time (9) comes after the id of the receipt before it (8: 0x42, 32 bytes), and a time
-- since 1987 is a varint of eight bytes. Where a time cannot be read, the end of the lease stands for it.
WITH open AS (
    SELECT c.shard, c.call_id, c.number, p.tenant, c.permit_id, c.tool, c.hold, c.lease_end_us, c.state_seq, c.escalated_seq,
           p.terms, CASE WHEN get_byte(p.terms, 1) < 128 THEN get_byte(p.terms, 1) + 2
                         ELSE get_byte(p.terms, 1) - 128 + get_byte(p.terms, 2) * 128 + 3 END AS unit_at
    FROM calls c JOIN permits p ON p.shard = c.shard AND p.permit_id = c.permit_id WHERE c.state = 3
), times AS (
    SELECT r.shard, r.chain_id, r.sequence,
           (SELECT sum((get_byte(r.payload, position('\x4220'::bytea || before.receipt_id || '\x48'::bytea IN r.payload) + 34 + i)
                        & 127)::bigint << (7 * i)) FROM generate_series(0, 7) i)::bigint AS time_us
    FROM open CROSS JOIN LATERAL (VALUES (open.state_seq), (open.escalated_seq)) AS about (sequence)
    JOIN receipts r ON r.shard = open.shard AND r.chain_id = open.permit_id AND r.sequence = about.sequence
    JOIN receipts before ON before.shard = r.shard AND before.chain_id = r.chain_id AND before.sequence = r.sequence - 1
    WHERE position('\x4220'::bytea || before.receipt_id || '\x48'::bytea IN r.payload) > 0
)
INSERT INTO parkings (shard, call_id, number, tenant, permit_id, tool, unit, hold, parked_at_us, parked_seq, escalated_at_us,
                      state)
SELECT open.shard, open.call_id, open.number, open.tenant, open.permit_id, open.tool,
       CASE WHEN get_byte(open.terms, open.unit_at) = 18  -- field 2, bytes
            THEN convert_from(substr(open.terms, open.unit_at + 3, get_byte(open.terms, open.unit_at + 1)), 'UTF8') ELSE '' END,
       open.hold, coalesce(parked.time_us, open.lease_end_us), open.state_seq,
       CASE WHEN open.escalated_seq > 0 THEN coalesce(escalated.time_us, open.lease_end_us) END, 3
FROM open
LEFT JOIN times parked
    ON parked.shard = open.shard AND parked.chain_id = open.permit_id AND parked.sequence = open.state_seq
LEFT JOIN times escalated
    ON escalated.shard = open.shard AND escalated.chain_id = open.permit_id AND escalated.sequence = open.escalated_seq;

-- Reports count calls and attempts of the last days. Rows lie in the table about as they came, so a summary of each
-- stretch of it is enough to skip the others, and costs the hot path next to nothing: an index that every call adds an
-- entry to would cost it a page a lane.
CREATE INDEX calls_in_time ON calls USING brin (first_seen_us, granted_at_us) WITH (autosummarize = on);
CREATE INDEX attempts_earlier_in_time ON attempts (granted_at_us) WHERE granted_at_us IS NOT NULL;

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
