-- What the consumers keep. They may have a database of their own; its inbox is Postrider's.

-- The read model. `last_sequence` is the number of the newest event of the account that is in it.
create table if not exists account_balance_view (
    account_id          bigint not null primary key,
    amount              bigint not null,
    currency            varchar(3) not null,
    last_transaction_id bigint not null,
    last_sequence       bigint not null,
    updated_at          datetime(6) not null
) engine = InnoDB default charset = utf8mb4 collate = utf8mb4_bin;

-- The audit feed keeps every event as it came, of every type and version.
create table if not exists audit_feed (
    event_id       binary(16) not null primary key,
    event_type     varchar(200) not null,
    transaction_id bigint not null,
    account_id     bigint not null,
    sequence       bigint,
    schema_version int not null,
    payload        longtext,
    occurred_at    datetime(6) not null,
    recorded_at    datetime(6) not null,
    received_at    datetime(6) not null,
    key feed_of_transaction (transaction_id)
) engine = InnoDB default charset = utf8mb4 collate = utf8mb4_bin;

-- The document's table of what consumers have processed, over Postrider's inbox: one row per consumer and leg. The inbox knows event ids
-- alone; what they are about is in the feed, or in the log where consumers share its database: then what a consumer has processed is
-- seen before the feed has it. The read model's second mark of a leg, by its text, is in neither, and is not counted twice.
create or replace view processed_events as
select coalesce(a.transaction_id, cast(e.aggregate_id as signed)) as transaction_id,
       coalesce(a.account_id, cast(e.ordering_key as signed)) as account_id,
       convert(i.consumer using utf8mb4) as consumer,
       cast('1970-01-01 00:00:00' + interval i.handled_at microsecond as datetime(6)) as processed_at
from postrider_inbox i
left join audit_feed a on a.event_id = i.event_id
left join postrider_event e on e.event_id = i.event_id and e.stream = 'ledger'
where a.event_id is not null or e.event_id is not null;
