//! The SQL texts, with the schema's name in them.

use std::fmt;
use std::sync::{Arc, OnceLock};

use postrider_core::Order;
use sqlx_core::query::Query;
use sqlx_core::sql_str::AssertSqlSafe;
use sqlx_postgres::{PgArguments, Postgres};

use crate::careful::carefully;
use crate::pooler::SessionMode;
use crate::schema::Schema;

/// Changes the text of a statement, by its file's name: how tests plant bugs to see that they are found.
#[doc(hidden)]
pub type Patch = fn(name: &str, text: &str) -> Option<String>;

/// All statements of one schema. Made once, shared by everybody.
pub(crate) struct Sql {
    pub(crate) schema: Schema,
    pub(crate) record: Text,
    pub(crate) record_plain: Text,
    pub(crate) record_all: Text,
    pub(crate) claim: Text,
    pub(crate) extend: Text,
    pub(crate) extend_by_key: Text,
    pub(crate) release: Text,
    pub(crate) want: Text,
    pub(crate) heard: Text,
    pub(crate) read: [Text; 4],
    pub(crate) read_as_of: [Text; 4],
    pub(crate) stand: Text,
    pub(crate) settle: [Text; 4],
    pub(crate) due: [Text; 3],
    pub(crate) requeue: Text,
    pub(crate) discard: Text,
    pub(crate) states: Text,
    pub(crate) figures: Text,
    pub(crate) inbox: Text,
    pub(crate) effect: Text,
    pub(crate) handled: Text,
    pub(crate) arm: Text,
    pub(crate) disarm: Text,
    pub(crate) running: Text,
    patch: Option<Patch>,
    /// Whether statements may be prepared by name, once a connection.
    pub(crate) session_mode: Arc<SessionMode>,
    /// The same statements, for rows that the server can't send as they are; made when they are needed.
    careful: OnceLock<Arc<Sql>>,
    is_careful: bool,
}

const FILTER: &str = "where ($14::text[] is null or e.stream like any ($14::text[])) \
     and ($15::text[] is null or e.event_type like any ($15::text[])) \
     and ($16::timestamptz is null or e.recorded_at >= $16::timestamptz) \
     and ($17::integer = 1 or {schema}.hash_of({schema}.key_of(e.ordering_key, e.aggregate_type, e.aggregate_id)) \
          % $17::integer = $8::integer)";
/// A short key is told here: calling a function for each event costs more than the look in the index.
const HELD: &str = "(exists (select from {schema}.delivery d where d.subscription = $6::text and d.holds and d.id < e.id \
     and d.key = case when octet_length({schema}.key_of(e.ordering_key, e.aggregate_type, e.aggregate_id)) <= 1000 \
                      then {schema}.key_of(e.ordering_key, e.aggregate_type, e.aggregate_id) \
                      else {schema}.short_key({schema}.key_of(e.ordering_key, e.aggregate_type, e.aggregate_id)) end) \
     or ((select order_policy from {schema}.subscription where name = $6::text) = 'strict' \
         and (select d.id from {schema}.delivery d where d.subscription = $6::text and d.lane = $8::integer and d.holds \
              order by d.id limit 1) < e.id))";
const SCAN: &str = ", scan as materialized (\
     select first.id as first, least(first.id - 1 + $5::bigint, (select max(id) from {schema}.event where id <= {end})) as last \
     from (select id from {schema}.event where id > $1::bigint and id <= {end} order by id limit 1) as first)";
const FRESH: &str = "(select * from {schema}.event where id > $1::bigint and id <= {end} order by id limit $5::bigint) as e order by e.id";
/// The last id that was handed out, as one value that is looked up once; also of a sequence that was restarted and not used since.
const END: &str =
    "(select case when is_called then last_value else last_value - 1 end from {schema}.event_id)";
/// A row at or above the end of the scan, which that end itself may not be.
const WITNESS: &str = "coalesce(\
     (select json_build_object('number', w.id, 'id', w.event_id) from {schema}.event w where w.id >= (select last from scan) order by w.id limit 1), \
     (select json_build_object('number', w.id, 'id', w.event_id) from late w order by w.id desc limit 1))";
/// Whether the lane stands where the lease says, and this is the server that the store knows. A lane that was given back, and
/// that nobody has claimed since, stands there, too.
const STANDS: &str = "{schema}.is_at({system}::bigint) and case \
     when exists (select from {schema}.lane l where l.ctid = {ctid}::text::tid and {standing}) then true \
     else exists (select from {schema}.lane l where {standing}) end";
const STANDING: &str = "l.subscription = {subscription}::text and l.lane = {lane}::integer \
     and l.lease_epoch = {epoch}::bigint and coalesce(l.lease_owner, {owner}::text) = {owner}::text \
     and l.position in ({position}::text, {from}::text)";
const FRESH_OF: &str =
    "{schema}.event e {filter} and e.id > $1::bigint and e.id <= (select last from scan) order by e.id";

/// Where a statement has the parameters of [`STANDS`]: subscription, ctid, lane, epoch, owner, position, where it begins, system.
type Proof = [&'static str; 8];
const READ_PROOF: Proof = ["$6", "$7", "$8", "$9", "$10", "$11", "$12", "$13"];
const DUE_PROOF: Proof = ["$1", "$5", "$2", "$6", "$7", "$8", "$8", "$9"];

fn stands([subscription, ctid, lane, epoch, owner, position, from, system]: Proof) -> String {
    let parts = [
        ("{standing}", STANDING),
        ("{subscription}", subscription),
        ("{ctid}", ctid),
        ("{lane}", lane),
        ("{epoch}", epoch),
        ("{owner}", owner),
        ("{position}", position),
        ("{from}", from),
        ("{system}", system),
    ];
    parts.iter().fold(STANDS.to_owned(), |text, (placeholder, part)| text.replace(placeholder, part))
}

/// Makes a statement of a text, by the name of its file and with these parts in their places.
type Load<'l> = dyn Fn(&str, &str, &[(&str, &str)]) -> Text + 'l;

/// A read without and with a filter, each without and with open deliveries.
fn read(load: &Load<'_>, name: &str, text: &str) -> [Text; 4] {
    [(false, false), (false, true), (true, false), (true, true)].map(|(filtered, open)| {
        let always = name == "read_as_of";
        let parts = [
            ("{fresh}", if filtered { FRESH_OF } else { FRESH }),
            ("{filter}", if filtered || always { FILTER } else { "" }),
            ("{scan}", if filtered { SCAN } else { "" }),
            ("{scanned}", if filtered { "(select last - first + 1 from scan)" } else { "null" }),
            ("{scanned_to}", if filtered { "(select last from scan)" } else { "null" }),
            ("{held}", if open { HELD } else { "false" }),
            ("{witness}", if filtered { WITNESS } else { "null::json" }),
            ("{stands}", &stands(READ_PROOF)),
            ("{end}", END),
        ];
        load(name, text, &parts)
    })
}

/// The looks at what is due, by order.
fn due(load: &Load<'_>) -> [Text; 3] {
    [
        include_str!("../sql/due_by_key.sql"),
        include_str!("../sql/due_in_lane.sql"),
        include_str!("../sql/due_each.sql"),
    ]
    .map(|chosen| {
        let parts = [("{chosen}", chosen), ("{stands}", &stands(DUE_PROOF))];
        load("due", include_str!("../sql/due.sql"), &parts)
    })
}

impl Sql {
    pub(crate) fn new(schema: Schema, patch: Option<Patch>) -> Self {
        Self::build(schema, patch, Arc::default(), false)
    }

    /// The statements that return events, with a mark wherever the server can't send a text: one such text makes it refuse a
    /// whole answer. They look at every text of every row, so they are only for reading again what was refused.
    pub(crate) fn careful(&self) -> Arc<Self> {
        let made =
            || Arc::new(Self::build(self.schema.clone(), self.patch, Arc::clone(&self.session_mode), true));
        Arc::clone(self.careful.get_or_init(made))
    }

    /// The look at what is due under an order.
    pub(crate) fn due_of(&self, order: Order) -> &Text {
        match order {
            Order::Key => &self.due[0],
            Order::Strict => &self.due[1],
            Order::None => &self.due[2],
        }
    }

    /// Whether these are the careful ones.
    pub(crate) fn is_careful(&self) -> bool {
        self.is_careful
    }

    fn build(schema: Schema, patch: Option<Patch>, session_mode: Arc<SessionMode>, is_careful: bool) -> Self {
        let load = |name: &str, text: &str, parts: &[(&str, &str)]| {
            let mut text = patch.and_then(|patch| patch(name, text)).unwrap_or_else(|| text.to_owned());
            for (placeholder, part) in parts {
                text = text.replace(placeholder, part);
            }
            if is_careful {
                text = carefully(&text);
            }
            Text { text: schema.statement(&text).into(), session_mode: Arc::clone(&session_mode) }
        };
        let by_ctid = ("{by_ctid}", "l.ctid = $1::text::tid and");
        let by_key = ("{by_ctid}", "$1::text is not null and");
        let deliveries = ("{deliveries}", include_str!("../sql/settle_deliveries.sql"));
        let settle = |parts: &[(&str, &str)]| load("settle", include_str!("../sql/settle.sql"), parts);
        Self {
            record: load("record", include_str!("../sql/record.sql"), &[]),
            record_plain: load("record", include_str!("../sql/record_plain.sql"), &[]),
            record_all: load("record_all", include_str!("../sql/record_all.sql"), &[]),
            claim: load("claim", include_str!("../sql/claim.sql"), &[]),
            extend: load("extend", include_str!("../sql/extend.sql"), &[by_ctid]),
            extend_by_key: load("extend", include_str!("../sql/extend.sql"), &[by_key]),
            release: load("release", include_str!("../sql/release.sql"), &[]),
            want: load("want", include_str!("../sql/want.sql"), &[]),
            heard: load("heard", include_str!("../sql/heard.sql"), &[]),
            read: read(&load, "read", include_str!("../sql/read.sql")),
            read_as_of: read(&load, "read_as_of", include_str!("../sql/read_as_of.sql")),
            stand: load("stand", include_str!("../sql/stand.sql"), &[]),
            settle: [
                settle(&[("{deliveries}", ""), by_ctid]),
                settle(&[deliveries, by_ctid]),
                settle(&[("{deliveries}", ""), by_key]),
                settle(&[deliveries, by_key]),
            ],
            due: due(&load),
            requeue: load("requeue", include_str!("../sql/requeue.sql"), &[]),
            discard: load("discard", include_str!("../sql/discard.sql"), &[]),
            states: load("states", include_str!("../sql/states.sql"), &[]),
            figures: load("figures", include_str!("../sql/figures.sql"), &[("{most}", "1000000")]),
            inbox: load("inbox", include_str!("../sql/inbox.sql"), &[]),
            effect: load("effect", include_str!("../sql/effect.sql"), &[]),
            handled: load("handled", include_str!("../sql/handled.sql"), &[]),
            arm: load("arm", include_str!("../sql/arm.sql"), &[]),
            disarm: load("disarm", include_str!("../sql/disarm.sql"), &[]),
            running: load("running", include_str!("../sql/running.sql"), &[]),
            schema,
            patch,
            session_mode: Arc::clone(&session_mode),
            careful: OnceLock::new(),
            is_careful,
        }
    }

    /// A text that is used too rarely to have a field.
    pub(crate) fn text(&self, name: &str, text: &str) -> Text {
        let text = self.patch.and_then(|patch| patch(name, text)).unwrap_or_else(|| text.to_owned());
        let text = if self.is_careful { carefully(&text) } else { text };
        Text { text: self.schema.statement(&text).into(), session_mode: Arc::clone(&self.session_mode) }
    }
}

impl fmt::Debug for Sql {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sql({})", self.schema.name)
    }
}

/// A statement's text. It is ours but for the schema's name, which is quoted: that is why it is safe.
#[derive(Clone)]
pub(crate) struct Text {
    text: Arc<str>,
    session_mode: Arc<SessionMode>,
}

impl Text {
    pub(crate) fn query<'q>(&self) -> Query<'q, Postgres, PgArguments> {
        let query = sqlx_core::query::query(AssertSqlSafe(Arc::clone(&self.text)));
        query.persistent(!self.session_mode.is_shared())
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }
}
