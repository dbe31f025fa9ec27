-- The tables of the authority. Times are microseconds since the Unix epoch by the database's clock (`…_us`); money is in
-- minor units; enum columns hold the numbers of proto/tally/v1.
--
-- `shard` leads the keys of everything the hot path touches. It is a function of tenant and subject, a lane of a replica
-- serves a contiguous range of shards, and so the rows of different lanes lie on different index pages. Without that,
-- serializable transactions abort each other over pages although they share no row.

CREATE TABLE tenants (
    tenant          text PRIMARY KEY CONSTRAINT tenants_name CHECK (tenant ~ '^[a-z0-9][a-z0-9._-]{0,62}$'),
    chain_id        uuid NOT NULL UNIQUE,
    sealed_secret   bytea NOT NULL,       -- the HMAC secret of its intent, key and fingerprint hashes
    created_at_us   bigint NOT NULL,
    sequence        bigint NOT NULL,      -- of its own chain's last receipt
    head            bytea NOT NULL
);

CREATE TABLE principals (
    principal_id        uuid PRIMARY KEY,
    tenant              text REFERENCES tenants,          -- null: all tenants
    role                smallint NOT NULL CONSTRAINT principals_role CHECK (role BETWEEN 1 AND 5),
    name                text NOT NULL,
    credential_sha256   bytea CONSTRAINT principals_credential UNIQUE,
    certificate_sha256  bytea CONSTRAINT principals_certificate UNIQUE,
    created_at_us       bigint NOT NULL,
    disabled_at_us      bigint,
    hard                boolean NOT NULL DEFAULT false,
    CONSTRAINT principals_one_way_in CHECK ((credential_sha256 IS NULL) <> (certificate_sha256 IS NULL)),
    CONSTRAINT principals_tenant_unless_admin CHECK ((tenant IS NULL) = (role = 1))
);
CREATE INDEX principals_by_tenant ON principals (tenant, principal_id);

CREATE TABLE signing_keys (
    key_id          bytea PRIMARY KEY CONSTRAINT signing_keys_id CHECK (length(key_id) = 32),
    name            text NOT NULL,         -- the issuer, as in the C2SP form
    public_key      bytea NOT NULL CONSTRAINT signing_keys_public CHECK (length(public_key) = 32),
    sealed_seed     bytea NOT NULL,
    not_before_us   bigint NOT NULL,
    not_after_us    bigint                 -- null: in use
);
CREATE UNIQUE INDEX signing_keys_one_in_use ON signing_keys ((true)) WHERE not_after_us IS NULL;

-- Receipts of every chain: a permit's (chain_id = permit_id) or a tenant's own (shard 0).
CREATE TABLE receipts (
    shard               smallint NOT NULL,
    chain_id            uuid NOT NULL,
    sequence            bigint NOT NULL CONSTRAINT receipts_sequence CHECK (sequence >= 1),
    receipt_id          bytea NOT NULL,    -- SHA-256 of what is signed
    payload             bytea NOT NULL,    -- exactly as signed
    signature           bytea NOT NULL,
    call_previous_seq   bigint,            -- the same call's receipt before this one; null: not about a call, 0: its first
    CONSTRAINT receipts_chain PRIMARY KEY (shard, chain_id, sequence)
);
CREATE INDEX receipts_by_id ON receipts (receipt_id);

-- A permit as minted. Never updated.
CREATE TABLE permits (
    shard           smallint NOT NULL,
    permit_id       uuid NOT NULL,
    tenant          text NOT NULL REFERENCES tenants,
    subject         text NOT NULL,
    token_sha256    bytea NOT NULL CONSTRAINT permits_token UNIQUE,
    terms           bytea NOT NULL,        -- tally.v1.PermitTerms
    expires_at_us   bigint NOT NULL,
    created_at_us   bigint NOT NULL,
    scopes          smallint NOT NULL,     -- bits of the intent scopes (1 << IntentScope) of its grants with effects
    PRIMARY KEY (shard, permit_id)
);
CREATE UNIQUE INDEX permits_by_tenant ON permits (tenant, permit_id);
CREATE INDEX permits_by_scopes ON permits (tenant, scopes, expires_at_us);

-- What changes of a permit. `…_seq` name receipts of its chain; 0: none.
CREATE TABLE permit_state (
    shard               smallint NOT NULL,
    permit_id           uuid NOT NULL,
    version             bigint NOT NULL,
    revoked_seq         bigint NOT NULL DEFAULT 0,
    closing_seq         bigint NOT NULL DEFAULT 0,
    closed_seq          bigint NOT NULL DEFAULT 0,
    denial_limit_seq    bigint NOT NULL DEFAULT 0,
    refusals            bigint NOT NULL DEFAULT 0,
    open_calls          bigint NOT NULL DEFAULT 0,
    attempts            bigint NOT NULL DEFAULT 0,
    calls               bigint NOT NULL DEFAULT 0,
    succeeded           bigint NOT NULL DEFAULT 0,   -- attempts that ended so
    tool_error          bigint NOT NULL DEFAULT 0,
    released            bigint NOT NULL DEFAULT 0,
    not_happened        bigint NOT NULL DEFAULT 0,
    sequence            bigint NOT NULL,
    head                bytea NOT NULL,
    budget              bigint,            -- null: unlimited
    held                bigint NOT NULL DEFAULT 0,
    spent               bigint NOT NULL DEFAULT 0,
    overrun             bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (shard, permit_id),
    FOREIGN KEY (shard, permit_id) REFERENCES permits,
    CONSTRAINT permit_state_counts CHECK (refusals BETWEEN 0 AND 10000 AND open_calls BETWEEN 0 AND 100000),
    -- Every attempt is open or has ended in one way.
    CONSTRAINT permit_state_attempts CHECK (attempts = open_calls + succeeded + tool_error + released + not_happened),
    CONSTRAINT permit_state_closed CHECK (closed_seq = 0 OR (closing_seq > 0 AND open_calls = 0 AND held = 0)),
    CONSTRAINT permit_state_taken CHECK (held >= 0 AND spent >= 0 AND overrun >= 0),
    -- Rule 3. Only a contradiction, a correction, a late answer or a reported amount raises `overrun`; Authorize never does.
    CONSTRAINT permit_state_budget CHECK (budget IS NULL OR held + spent <= budget + overrun)
) WITH (fillfactor = 50);

CREATE TABLE grants (
    shard           smallint NOT NULL,
    permit_id       uuid NOT NULL,
    grant_index     integer NOT NULL CONSTRAINT grants_index CHECK (grant_index BETWEEN 1 AND 256),
    version         bigint NOT NULL,
    cap             bigint,                -- null: unlimited
    budget          bigint,                -- null: unlimited
    slots           bigint NOT NULL DEFAULT 0,
    slot_overrun    bigint NOT NULL DEFAULT 0,
    held            bigint NOT NULL DEFAULT 0,
    spent           bigint NOT NULL DEFAULT 0,
    overrun         bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (shard, permit_id, grant_index),
    FOREIGN KEY (shard, permit_id) REFERENCES permits,
    CONSTRAINT grants_taken CHECK (slots >= 0 AND slot_overrun >= 0 AND held >= 0 AND spent >= 0 AND overrun >= 0),
    -- Rules 2 and 3, as above.
    CONSTRAINT grants_cap CHECK (cap IS NULL OR slots <= cap + slot_overrun),
    CONSTRAINT grants_budget CHECK (budget IS NULL OR held + spent <= budget + overrun)
) WITH (fillfactor = 50);

CREATE TABLE evidence (
    evidence_id     uuid PRIMARY KEY,
    shard           smallint NOT NULL,
    call_id         uuid NOT NULL,
    attempt_id      uuid NOT NULL,
    principal_id    uuid NOT NULL,
    source          text NOT NULL,
    reference       text NOT NULL,
    reason          text NOT NULL,
    observed_at_us  bigint NOT NULL,
    recorded_at_us  bigint NOT NULL,
    receipt_seq     bigint NOT NULL,       -- the receipt that carries its commitment; 0: none
    body            bytea,                 -- null: erased
    salt            bytea
);
CREATE INDEX evidence_by_call ON evidence (shard, call_id);

-- One row a key: a call, another name of a call (bound_to), or a key that was only ever refused. The row is also the
-- call's last attempt (a call's state is its last attempt's), so that rule 1 needs no counting: no other attempt of the
-- call has a place in which it could be open.
CREATE TABLE calls (
    shard               smallint NOT NULL,
    call_id             uuid NOT NULL,     -- carries its shard, see lib/keys/uuid.h
    permit_id           uuid NOT NULL,
    version             bigint NOT NULL,
    key                 text NOT NULL,
    tool                text NOT NULL,
    grant_index         integer NOT NULL,
    fp_arguments        bytea NOT NULL,
    fp_amount           bigint,
    fp_intent           bytea,
    first_seen_us       bigint NOT NULL,
    bound_to            uuid,
    bound_seq           bigint NOT NULL,
    refusal             text NOT NULL,
    refusal_seq         bigint NOT NULL,
    intent              bytea,
    explicit_intent     bytea,
    ever_uncertain      boolean NOT NULL,
    contradicted        integer NOT NULL,
    result_attempt      integer NOT NULL,
    last_seq            bigint NOT NULL,
    attention           text,
    claim_id            uuid,
    claim_until_us      bigint,
    claimed_by          text,
    -- the last attempt; number 0: none yet
    number              integer NOT NULL,
    earlier             uuid[],            -- the attempts before it; their ends stand in `attempts`
    attempt_id          uuid,
    state               smallint NOT NULL, -- of the last attempt; REFUSED without one
    by_verdict          boolean NOT NULL,
    read_no_answer      boolean NOT NULL,
    has_result          boolean NOT NULL,
    slot                boolean NOT NULL,
    undelivered         boolean NOT NULL,
    late_not_sent       boolean NOT NULL,
    hold                bigint NOT NULL,
    held                bigint NOT NULL,
    charged             bigint NOT NULL,
    granted_at_us       bigint NOT NULL,
    lease_us            bigint NOT NULL,
    send_within_us      bigint NOT NULL,
    lease_end_us        bigint NOT NULL,
    sent_at_us          bigint NOT NULL,
    content             bytea,
    attached            bytea,
    allowed_seq         bigint NOT NULL,
    state_seq           bigint NOT NULL,   -- the receipt that brought the present state (or refused, or bound the key)
    state_receipt       bytea,
    superseded          bytea,
    escalated_seq       bigint NOT NULL,
    attached_seq        bigint NOT NULL,
    principal_id        text NOT NULL,
    resolution          uuid REFERENCES evidence,  -- of the last attempt's verdict
    -- erasable
    arguments           bytea,
    arguments_salt      bytea,
    result              bytea,
    result_salt         bytea,
    result_size         bigint NOT NULL,
    partial_answer      bytea,
    PRIMARY KEY (shard, call_id),
    CONSTRAINT calls_key UNIQUE (shard, permit_id, key),
    -- Rule 6: no state without its receipt.
    CONSTRAINT calls_state_has_receipt FOREIGN KEY (shard, permit_id, state_seq) REFERENCES receipts,
    -- Rule 4: only a verdict, with evidence, ends an attempt as not happened.
    CONSTRAINT calls_not_happened_has_evidence CHECK (state <> 7 OR (by_verdict AND resolution IS NOT NULL)),
    CONSTRAINT calls_state CHECK (state BETWEEN 1 AND 7 AND (state = 1) = (number = 0)),
    -- Rule 5: what is open keeps slot and hold.
    CONSTRAINT calls_open_keeps_hold CHECK (state NOT IN (2, 3) OR (slot AND held = hold AND charged = 0)),
    CONSTRAINT calls_ended_holds_nothing CHECK (state IN (2, 3) OR held = 0)
) WITH (fillfactor = 50);
CREATE INDEX calls_attention ON calls (shard, call_id) WHERE attention IS NOT NULL;

-- The register of attempt ids: one use each, tombstones (call_id null) included. `state` and what follows it are filled
-- in when a later attempt takes the attempt's place in `calls`.
CREATE TABLE attempts (
    attempt_id          uuid CONSTRAINT attempts_id PRIMARY KEY,
    shard               smallint NOT NULL,
    permit_id           uuid NOT NULL,
    call_id             uuid,
    number              integer NOT NULL,
    voided_seq          bigint NOT NULL DEFAULT 0,
    state               smallint,
    by_verdict          boolean,
    read_no_answer      boolean,
    has_result          boolean,
    slot                boolean,
    undelivered         boolean,
    late_not_sent       boolean,
    hold                bigint,
    held                bigint,
    charged             bigint,
    granted_at_us       bigint,
    lease_us            bigint,
    send_within_us      bigint,
    lease_end_us        bigint,
    sent_at_us          bigint,
    content             bytea,
    attached            bytea,
    allowed_seq         bigint,
    state_seq           bigint,
    state_receipt       bytea,
    superseded          bytea,
    escalated_seq       bigint,
    attached_seq        bigint,
    principal_id        text,
    CONSTRAINT attempts_tombstone CHECK ((call_id IS NULL) = (voided_seq > 0)),
    -- Rule 1: an attempt that is not its call's last has ended.
    CONSTRAINT attempts_earlier_ended CHECK (state IS NULL OR state IN (4, 5, 6, 7)),
    CONSTRAINT attempts_earlier_holds_nothing CHECK (state IS NULL OR held = 0)
);

-- One row an intent and scope: who has it open (claimed by insert, never by a read), and which call did it last.
-- A READ's attempt stands here too while it is open, under its call's own id, so that its lease is found.
CREATE TABLE intents (
    shard           smallint NOT NULL,
    intent          bytea NOT NULL,
    open_call       uuid,
    open_permit     uuid,
    lease_end_us    bigint,                -- of the open attempt while AUTHORIZED; null once parked or ended
    done_call       uuid,
    done_permit     uuid,
    done_at_us      bigint,
    done_until_us   bigint,
    CONSTRAINT intents_one_each PRIMARY KEY (shard, intent),
    CONSTRAINT intents_open CHECK ((open_call IS NULL) = (open_permit IS NULL)),
    CONSTRAINT intents_done CHECK ((done_call IS NULL) = (done_at_us IS NULL))
) WITH (fillfactor = 50);
CREATE INDEX intents_leases ON intents (lease_end_us) WHERE lease_end_us IS NOT NULL;
CREATE INDEX intents_parked ON intents (open_call) WHERE open_call IS NOT NULL AND lease_end_us IS NULL;

-- Emptied by crash recovery, and empty on a standby that takes over: whoever finds another boot than before knows that
-- transaction ids may have been given out twice, so that pg_xact_status('committed') may speak of another transaction.
CREATE UNLOGGED TABLE boots (
    one     boolean PRIMARY KEY CHECK (one),
    boot    uuid NOT NULL
);
