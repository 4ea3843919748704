-- The transaction service: accounts and transfers. Amounts are whole won.
create table if not exists accounts (
    id      text primary key,
    balance bigint not null check (balance >= 0)
) with (fillfactor = 50);

-- The client chooses the id of a transfer, so that one that comes again is known. The event may have left the log by then.
create table if not exists transactions (
    id           uuid primary key,
    from_account text not null references accounts,
    to_account   text not null references accounts,
    amount       bigint not null check (amount > 0),
    memo         text not null,
    completed_at bigint not null,
    event_id     uuid not null
);

-- Fraud detection. It would have a database of its own; here it shares one, so that one clock measures both ends.
create schema if not exists fds;

create table if not exists fds.risk_log (
    event_id       uuid primary key,
    transaction_id uuid not null,
    from_account   text not null,
    to_account     text not null,
    amount         bigint not null,
    score          integer not null check (score between 0 and 100),
    flagged        boolean not null,
    headers        jsonb not null,
    completed_at   bigint not null,
    logged_at      timestamptz not null default clock_timestamp()
);

create index if not exists risk_log_sender on fds.risk_log (from_account, completed_at);
