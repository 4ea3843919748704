-- The ledger. Amounts are in the smallest unit of the currency; times are UTC.
create table if not exists transactions (
    id          bigint not null primary key,
    type        varchar(20) not null,
    status      varchar(20) not null default 'POSTED',
    reverses    bigint,
    reversed_by bigint,
    memo        text,
    occurred_at datetime(6) not null,
    unique key transaction_is_reversed_once (reverses),
    constraint transaction_type check (type in ('DEPOSIT', 'WITHDRAWAL', 'TRANSFER', 'REVERSAL')),
    constraint transaction_status check (status in ('POSTED', 'REVERSED'))
) engine = InnoDB default charset = utf8mb4 collate = utf8mb4_bin;

create table if not exists journal_entries (
    id             bigint not null auto_increment primary key,
    transaction_id bigint not null,
    account_id     bigint not null,
    side           varchar(6) not null,
    amount         bigint not null,
    key entries_of_account (account_id),
    constraint entry_of_transaction foreign key (transaction_id) references transactions (id),
    constraint entry_side check (side in ('DEBIT', 'CREDIT')),
    constraint entry_amount check (amount > 0)
) engine = InnoDB default charset = utf8mb4 collate = utf8mb4_bin comment = 'debits and credits of each transaction';

create table if not exists balances (
    account_id bigint not null primary key,
    amount     bigint not null,
    version    bigint not null,
    constraint balance_not_below_zero check (amount >= 0)
) engine = InnoDB default charset = utf8mb4 collate = utf8mb4_bin;

-- The document's table, over Postrider's. An event that no relay has seen yet is PENDING as well. DISCARDED is the one state that
-- the document does not have: a person decided that the event is not to be sent.
create or replace view outbox_event as
select e.id, e.aggregate_type, cast(e.aggregate_id as signed) as aggregate_id, e.event_type, e.payload,
       case s.state when 'done' then 'PROCESSED' when 'dead' then 'FAILED' when 'discarded' then 'DISCARDED'
                    else 'PENDING' end as status,
       case s.state when 'done' then greatest(s.attempts - 1, 0) else coalesce(s.attempts, 0) end as retry_count,
       e.recorded_at as created_at, cast(s.delivered_at as datetime(6)) as processed_at
from postrider_event e
left join postrider_event_state s on s.event_id = e.event_id and s.subscription = 'ledger-to-kafka'
where e.stream = 'ledger';
