//! The contracts that a store of a numbered log keeps by one call each of the module that is named after the work.

/// Implements [`EventLog`](postrider_core::EventLog) for a store, by the functions of the modules `subscribe`, `lane`, `read`,
/// `delivery` and `settle`, which must be in scope. `$again` is a macro that runs a call whose transaction the server may end, and
/// runs it again if the server did. The store has the fields `poller` and `bell`: whether its relays ask for what is new, or look
/// once per poll interval.
#[macro_export]
macro_rules! event_log {
    ($store:ty, $bell:ty, $again:ident) => {
        #[::async_trait::async_trait]
        impl ::postrider_core::EventLog for $store {
            async fn subscribe(
                &self,
                subscription: &::postrider_core::Subscription,
            ) -> ::postrider_core::Result<::postrider_core::Subscribed> {
                $again!(subscribe::subscribe(self, subscription))
            }

            async fn claim(
                &self,
                subscription: &str,
                owner: &str,
                lease: ::std::time::Duration,
            ) -> ::postrider_core::Result<Option<::postrider_core::Lease>> {
                $again!(lane::claim(self, subscription, owner, lease))
            }

            async fn extend(
                &self,
                lease: &mut ::postrider_core::Lease,
                by: ::std::time::Duration,
                reading: Option<&::postrider_core::Position>,
            ) -> ::postrider_core::Result<::postrider_core::LeaseStatus> {
                $again!(lane::extend(self, lease, by, reading))
            }

            async fn release(&self, lease: ::postrider_core::Lease) -> ::postrider_core::Result<()> {
                $again!(lane::release(self, &lease))
            }

            async fn read(
                &self,
                lease: &::postrider_core::Lease,
                from: &::postrider_core::Position,
                limit: u32,
            ) -> ::postrider_core::Result<::postrider_core::Batch> {
                read::read(self, lease, from, limit).await
            }

            async fn due(
                &self,
                lease: &::postrider_core::Lease,
                limit: u32,
            ) -> ::postrider_core::Result<::postrider_core::DueBatch> {
                delivery::due(self, lease, limit).await
            }

            async fn settle(
                &self,
                lease: &mut ::postrider_core::Lease,
                settlement: &::postrider_core::Settlement,
            ) -> ::postrider_core::Result<::postrider_core::LeaseStatus> {
                $again!(settle::settle(self, lease, settlement))
            }

            fn bell(&self) -> Box<dyn ::postrider_core::Bell> {
                match self.bell {
                    true => Box::new(<$bell>::new(::std::sync::Arc::clone(&self.poller))),
                    false => Box::new($crate::SilentBell),
                }
            }
        }
    };
}

/// Implements [`Coordinate`](postrider_core::Coordinate) for a store, by the functions of the modules `relays` and `leader_lease`,
/// which must be in scope. `$again` is that of [`event_log!`](crate::event_log).
#[macro_export]
macro_rules! coordinate {
    ($store:ty, $again:ident) => {
        #[::async_trait::async_trait]
        impl ::postrider_core::Coordinate for $store {
            async fn heartbeat(
                &self,
                relay: &::postrider_core::RelayReport,
            ) -> ::postrider_core::Result<Vec<::postrider_core::RelayInfo>> {
                $again!(relays::heartbeat(self, relay))
            }

            async fn deregister(&self, relay: ::postrider_core::Uuid) -> ::postrider_core::Result<()> {
                relays::deregister(self, relay).await
            }

            async fn acquire_leader_lease(
                &self,
                task: &str,
                owner: &str,
                lease: ::std::time::Duration,
            ) -> ::postrider_core::Result<Option<::postrider_core::LeaderLease>> {
                $again!(leader_lease::take(self, task, owner, lease))
            }

            async fn save_leader_note(
                &self,
                task: &str,
                owner: &str,
                note: &str,
            ) -> ::postrider_core::Result<bool> {
                leader_lease::note(self, task, owner, note).await
            }

            async fn release_leader_lease(&self, task: &str, owner: &str) -> ::postrider_core::Result<()> {
                leader_lease::leave(self, task, owner).await
            }
        }
    };
}
