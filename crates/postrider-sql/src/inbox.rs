//! What a consumer has handled, written in the consumer's own transaction.

/// The type `Inbox` of a store, with the docs that stand before its name, and the outbox's method that makes one.
#[macro_export]
macro_rules! inbox {
    ($(#[$docs:meta])* $inbox:ident for $outbox:ty, on $connection:ty) => {
        $(#[$docs])*
        #[derive(Debug, Clone)]
        pub struct $inbox {
            consumer: ::std::sync::Arc<str>,
            clock: ::postrider_core::Clock,
        }

        impl $outbox {
            /// The inbox of a consumer, in this database.
            pub fn inbox(&self, consumer: impl Into<String>) -> $inbox {
                $inbox { consumer: consumer.into().into(), clock: self.clock.clone() }
            }
        }

        impl $inbox {
            /// Marks an event as handled, in the transaction of `conn`; returns whether it was the first time.
            ///
            /// If it returns `true`, make the change in the same transaction. If it returns `false`, skip the change: another
            /// transaction already made it.
            pub async fn first_time(
                &self,
                conn: &mut $connection,
                event_id: ::postrider_core::Uuid,
            ) -> ::postrider_core::Result<bool> {
                ::postrider_core::Limits::check_consumer(&self.consumer)?;
                let mark = Sql::default().query($crate::statement!("inbox.sql")).bind(&*self.consumer);
                let mark = mark.bind(event_id).bind($crate::clock::given(&self.clock));
                Ok(mark.execute(conn, "inbox").await? > 0)
            }

            /// Marks a text instead of an event id, such as `"transaction:account"`: for duplicates that are different events.
            ///
            /// The whole text counts, byte for byte; it must have 1 to 500 bytes and no NUL character. The mark is stored as the id
            /// that [`inbox_key`](postrider_core::inbox_key) makes of it.
            pub async fn first_time_by_key(
                &self,
                conn: &mut $connection,
                key: &str,
            ) -> ::postrider_core::Result<bool> {
                self.first_time(conn, ::postrider_core::inbox_key(key)?).await
            }
        }
    };
}
